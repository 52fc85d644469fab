/* The shims of a fork server or of the keeper: how they are made, and what becomes of those that ended. */

#ifndef HOLDFAST_SHIMS_H
#define HOLDFAST_SHIMS_H

#include "messages.h"

#include <stdint.h>
#include <sys/types.h>

enum { SWEEP_PAUSE_MS = 2 };       /* Between two attempts to kill what a shim left. */

/* Children that are no shims. */
enum other_child { SPARE_CHILD, SERVER_CHILD, OTHER_CHILDREN };

struct made_shim {
    pid_t pid;
    int end;                       /* The server's end of its socket; -1 if we do not have it. */
    int is_owed;                   /* Whether it has yet to be told that the server has died. */
};

struct shims {
    struct made_shim *list;
    int count, room;
    int handed;                    /* How many of them, the first ones, the present server knows. */
    pid_t others[OTHER_CHILDREN];  /* Children that are left alone; 0 where there is none, or it was reaped. */
    int64_t sweep_until;           /* 0 if there is nothing to sweep. */
    int strays;                    /* How many were found alive in this attempt. */
    struct limit files;            /* The limit of open files for shims, */
    int has_files_limit;           /* if it is not ours. */
};

/* Makes a shim that has `control`, which belongs to the function, as has `end`.  If that is not possible the other end
 * of the socket is told why. */
void shims_make(struct shims *shims, int control, int end);

/* Drops what the last server did not read of the shims that the present one does not know.  The next one asks each shim
 * anyway.  But descriptors may be in there, and while too many are on their way the kernel sends no more. */
void shims_drop_unread(struct shims *shims);

/* Reaps all children that have ended.  A shim that did not end by itself has left its tree to us. */
void shims_reap(struct shims *shims);

/* Kills what such shims have left, if there is anything. */
void shims_sweep(struct shims *shims);

/* Kills all children that are neither shims nor left alone.  Whether there are none. */
int shims_kill_strays(struct shims *shims);

#endif
