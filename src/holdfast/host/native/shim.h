/* A shim: the parent of one command, and of everybody whom the command leaves behind. */

#ifndef HOLDFAST_SHIM_H
#define HOLDFAST_SHIM_H

#include "messages.h"
#include "sandbox.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum { HELD_MOST = 256 };          /* Pids of killed processes that are kept from others for a while. */

/* Where the command of a shim is in its life.  It only ever goes forward, and from OVER back to NO_COMMAND. */
enum command_state {
    NO_COMMAND,                    /* There is none: a START may come. */
    STARTING,                      /* Bubblewrap runs, and whether the command does is not known yet. */
    RUNNING,
    EXITED,                        /* That was reported.  It is not reaped, so nobody else gets its pid. */
    REAPED,                        /* Others of its tree may be left. */
    OVER,                          /* Nobody is left.  What is known and held of it stays until it is not needed. */
};

/* What was ordered last. */
enum shim_goal {
    WATCH,                         /* Keep the command's pid after it has exited. */
    RELEASE,                       /* The pid is not needed. */
    KILL,                          /* Kill everybody. */
};

struct usage {
    uint64_t user_us, system_us, peak_kib;
};

struct shim {
    int control;                   /* The socket over which orders come and reports go. */
    int orphaned;                  /* Whether nobody is at its other end any more. */
    enum command_state state;
    enum shim_goal goal;
    int quiet;                     /* Whether that the tree is empty need not be reported. */
    pid_t leader;                  /* The command; also the number of its process group. */
    struct usage usage;            /* Of those who were reaped. */
    int left_others;               /* Whether others were left when the command exited. */
    int group;                     /* A descriptor that stands for the group, after the command was reaped; or -1. */
    int hunting;                   /* Whether those of the group are killed one by one: see shim_signal. */
    pid_t held[HELD_MOST];         /* Killed, and not reaped yet: see end_child in tree.c. */
    int held_count;
    int64_t killing_since;         /* When the tree was first found alive after a KILL, */
    int survivors_reported;        /* and whether those who do not die were reported. */
    int64_t held_until;            /* After the end of the tree: how long the pids above are kept. */
    struct sandbox sandbox;

    uint64_t key;                  /* Of a command that outlives the server; 0 of one that does not. */
    int places[PLACES_MOST];       /* Descriptors that are held for the server; -1 where there is none. */
    int is_asked;                  /* Whether an ASK has no answer yet, */
    uint32_t asked;                /* and its number. */
    struct report exit;            /* The report of the exit, and those of denials, for whoever asks. */
    struct denial *denials;
    uint32_t denial_count;
};

/* Is a shim that takes its orders from a socket, until its end. */
_Noreturn void shim_run(int control);

/* Whether there may be somebody in the tree of its command. */
int shim_has_tree(const struct shim *shim);

/* The command has exited, or bubblewrap without a command: reports what the kernel says of it. */
void shim_exited(struct shim *shim, const siginfo_t *info, const struct rusage *used);

/* ---- start.c */

/* Starts a command.  Ends the shim if it does not start. */
void shim_start(struct shim *shim, const struct order *order, char *body, int *files, int file_count);

/* Closes what is held in the places whose bits are set. */
void shim_drop(struct shim *shim, uint32_t places);

/* ---- report.c */

/* Sends a report.  Ends the shim if that is not possible: a server that never reads of it would wait without end. */
void shim_report(struct shim *shim, enum news kind, int32_t value, uint32_t detail, const struct usage *usage);
void shim_report_started(struct shim *shim);
void shim_report_exited(struct shim *shim, int32_t value, uint32_t detail, const struct usage *usage);
void shim_report_denials(struct shim *shim);
void shim_report_survivors(struct shim *shim, const int32_t *pids, uint32_t count);
/* Answers an ASK: reports its state, and again all that was reported of the command.  If that cannot be sent now, the
 * question stays, and nothing is lost. */
void shim_answer(struct shim *shim);
void shim_forget_denials(struct shim *shim);
/* Reports that the command does not run, and ends the shim. */
_Noreturn void shim_report_failed(struct shim *shim, enum start_stage stage, int error);

/* ---- tree.c */

void usage_add(struct usage *sum, const struct rusage *used);

/* Reaps who has ended; returns whether anybody is left. */
int tree_reap(struct shim *shim);
/* Kills everybody and reaps who is dead; returns whether anybody is left to be killed. */
int tree_kill(struct shim *shim);
/* Whether the command has left anybody behind. */
int tree_has_others(struct shim *shim);
/* Reports those who were killed and are still there. */
void tree_report_survivors(struct shim *shim);

/* Sends a signal to the group of the command, and to nobody else. */
void shim_signal(struct shim *shim, int number);
void shim_forget_group(struct shim *shim);

#endif
