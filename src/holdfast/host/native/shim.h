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

/* Where the command of a shim is in its life.  It only ever goes forward, and from REAPED back to NO_COMMAND. */
enum command_state {
    NO_COMMAND,                    /* There is none: a START may come. */
    STARTING,                      /* Bubblewrap runs, and whether the command does is not known yet. */
    RUNNING,
    EXITED,                        /* That was reported.  It is not reaped, so nobody else gets its pid. */
    REAPED,                        /* Others of its tree may be left. */
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
    struct sandbox sandbox;
};

/* Is a shim that takes its orders from a socket, until its end. */
_Noreturn void shim_run(int control);

/* The command has exited, or bubblewrap without a command: reports what the kernel says of it. */
void shim_exited(struct shim *shim, const siginfo_t *info, const struct rusage *used);

/* ---- start.c */

/* Starts a command.  Ends the shim if it does not start. */
void shim_start(struct shim *shim, const struct order *order, char *body, int *files, int file_count);

/* ---- report.c */

/* Sends a report over a socket, with the usage of a tree if there is one.  0 if it was sent or nobody is there to read
 * it; -1 if it could not be sent for so long that it is given up. */
int send_report(int socket, enum news kind, int32_t value, uint32_t detail, const struct usage *usage);

/* Sends a report.  Ends the shim if that is not possible: a server that never reads of it would wait without end. */
void shim_report(struct shim *shim, enum news kind, int32_t value, uint32_t detail, const struct usage *usage);
void shim_report_started(struct shim *shim);
void shim_report_denials(struct shim *shim);
void shim_report_survivors(struct shim *shim, const int32_t *pids, uint32_t count);
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
