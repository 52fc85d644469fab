/* Making the child that becomes a command. */

#ifndef HOLDFAST_SPAWN_H
#define HOLDFAST_SPAWN_H

#include "confine.h"
#include "messages.h"

#include <stdint.h>
#include <sys/types.h>

enum { STANDARD_FILES = 3 };

/* What a child is to become.  Texts belong to the order. */
struct program {
    const char *cwd, *name;
    const char *path;              /* Where `name` is searched for; NULL if it is a file. */
    const char *groups;            /* Directories of control groups: texts, one after the other. */
    uint32_t group_count;
    char **argv, **env;
    const struct limit *limits;
    uint32_t limit_count;
    const uint32_t *user;          /* The user that it becomes, as `user_become` takes it; */
    uint32_t user_ids;             /* how many numbers that are: 0 for our own user. */
    int files[STANDARD_FILES];
    int terminal;                  /* Whether the files are the terminal of its session. */
    int confined;                  /* Whether it runs in a sandbox. */
    struct confinement confinement;
    const char *wrapper;           /* Bubblewrap, if that makes the sandbox; then also: */
    int wrapper_arguments;         /* a file with its arguments, */
    int init_socket;               /* the socket of its init to the shim, */
    int domain;                    /* whether Landlock keeps special files from being written, */
    const char *rules;             /* and the rules of the sandbox, of which those with a w may be written. */
    uint32_t rule_count;
};

/* Why a child did not become its program.  The child writes it: it shares our memory until the program runs. */
struct failure {
    volatile int stage, error;     /* Of enum start_stage; 0 if nothing failed. */
};

/* The pid of a child that runs the program, or bubblewrap; -1 and errno if none could be made.  If `failure` has a
 * stage afterwards, the child has failed and has to be reaped. */
pid_t spawn(const struct program *program, struct failure *failure);

/* In a child: ends it, because of errno. */
_Noreturn void fail(struct failure *failure, enum start_stage stage);

/* In a child: opens the file of a control group that takes pids, for writing.  Ends the child if that cannot be, or if
 * there is something else at the path, which is then left as it is. */
int open_control_group(const char *path, struct failure *failure);

#endif
