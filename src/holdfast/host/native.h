/* What the parts of the nursery know of each other: nursery.c makes wardens and is them, confine.c puts a
 * command into its sandbox, witness.c sees what the sandbox refuses. */

#ifndef HOLDFAST_NATIVE_H
#define HOLDFAST_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What neither a nursery nor a warden may die of; their children hear everything again. */
extern const int deaf[10];
void hear_again(void);

/* ---- confine.c */

struct confinement {
    const void *filter;    /* For seccomp: instructions, and how many bytes they take. */
    size_t filter_size;
    int ruleset;           /* For Landlock; -1 without. */
    int socket;            /* Where the witness's descriptor goes; -1 without a witness. */
    int powerless;         /* Whether to give up what only root may; bubblewrap does that itself. */
};

struct limit {
    uint64_t resource, soft, hard;
};

/* 0 if all are in force. */
int set_limits(const struct limit *limits, uint32_t count);

/* Give up rights for good.  -1 and errno if that cannot be. */
int confine(const struct confinement *confinement);

/* Take one descriptor off a socket without waiting; -1 if there is none. */
int take_descriptor(int socket, void *data, size_t size, ssize_t *got);

/* Have a directory to mount on; -1 if something else is there.  Give it back, and it is gone after the last. */
int mask_take(const char *path);
void mask_give(const char *path, int fd);

/* The first process of a sandbox that has its own process numbers: starts the command and tells its end. */
enum { INNER_ARGS = 3, INNER_PROGRAM = 4, INNER_SOCKET = 5, INNER_LOAD = 6 };
struct load {              /* What is in INNER_LOAD: this, limits, the filter, then texts. */
    uint32_t limits;
    uint32_t filter_size;
    uint32_t witness;
    uint32_t unused;
    uint32_t arguments;
    uint32_t variables;
};
struct inner_news {
    uint32_t what;
    int32_t value;         /* An error number, an exit code or a signal. */
};
enum { INNER_LISTENER = 1, INNER_RUNS = 2, INNER_FAILED = 3, INNER_HIDDEN = 4, INNER_EXITED = 5, INNER_KILLED = 6 };
enum { INNER_NO_DIRECTORY = 7, INNER_NO_LIMIT = 8, INNER_NO_PROGRAM = 9 };
int inner(void);

/* 0 if calls can be handed to a witness here. */
int probe(void);

/* ---- witness.c */

enum { OP_LENGTH = 16, SUBJECT_LENGTH = 1024, DENIALS_MOST = 64 };
struct denial {
    uint32_t count;
    char op[OP_LENGTH];
    char subject[SUBJECT_LENGTH];
};
extern struct denial denials[DENIALS_MOST];
extern int denial_count, denials_dropped;

/* `rules` are texts, one after the other: a letter and a path: w for what can be written, m for what
 * is not there and only covered, r and d for everything else. */
void witness_begin(int listener, const char *rules, uint32_t rule_count, int guards);
/* Readable when a call waits; -1 when nobody is left who could make one.  What was seen is kept. */
int witness_descriptor(void);
void witness_answer(void);
void witness_end(void);

#endif
