/* What a shim and the processes that it starts in a sandbox say to each other. */

#ifndef HOLDFAST_INIT_H
#define HOLDFAST_INIT_H

#include <stdint.h>

/* What comes over the socket of a sandbox to the shim. */
struct init_news {
    uint32_t event;
    int32_t value;         /* The number of an error, an exit code or a signal. */
};
enum init_event {
    INIT_LISTENER = 1,     /* Comes with the descriptor on which the filter hands calls over. */
    INIT_RUNS,             /* The command runs. */
    INIT_EXITED,           /* It has exited with this code, */
    INIT_KILLED,           /* or was killed by this signal. */
    INIT_FAILED,           /* It does not run: the sandbox cannot be made, */
    INIT_HIDDEN,           /* the program cannot be seen in it, */
    INIT_NO_DIRECTORY,     /* or one of these is at fault. */
    INIT_NO_LIMIT,
    INIT_NO_PROGRAM,
    INIT_NO_GROUP,
};

/* What the init of bubblewrap's sandboxes is given: descriptors with these numbers. */
enum {
    INIT_ARGUMENTS = 3,    /* The arguments of bubblewrap, */
    INIT_PROGRAM = 4,      /* the file of this program, */
    INIT_SOCKET = 5,       /* the socket to the shim, */
    INIT_LOAD = 6,         /* a file that says what to start, */
    INIT_GROUPS = 7,       /* and from here on the control groups that the command is to enter. */
};

/* The beginning of the file in INIT_LOAD.  Limits follow, the filter, and texts: the directory, the program, paths that
 * may be written, arguments, variables. */
struct load {
    uint32_t limits;
    uint32_t filter_size;
    uint32_t witness;      /* Whether the filter hands calls over. */
    uint32_t domain;       /* Whether Landlock keeps special files outside of `writable` from being written. */
    uint32_t writable;
    uint32_t arguments;
    uint32_t variables;
    uint32_t groups;
};

/* The program as `fork_server init`: the first process inside of bubblewrap's sandboxes, which starts the command and
 * reports its end.  Returns an exit status. */
int run_init(void);

#endif
