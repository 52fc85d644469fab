/* The messages between the server and a shim.
 *
 * Written by docs/generate.py from the table in host/orders.py: change that, not this. */

#ifndef HOLDFAST_MESSAGES_H
#define HOLDFAST_MESSAGES_H

#include <stdint.h>

/* Of these messages; the first byte that a fork server sends. A program that was compiled from another version would
 * take one path for another, and write to it. */
enum { MESSAGES_VERSION = 5 };

/* Bytes behind the head of an order; what is longer comes in a file of its own. */
enum { INLINE_MOST = 65536 };

/* Pids in one report. */
enum { SURVIVORS_MOST = 256 };

/* Different denials of one command; further ones are only counted. */
enum { DENIALS_MOST = 64 };

/* Bytes of what was denied, with the NUL at its end. */
enum { OP_MOST = 16 };

/* Bytes of what it was denied on. */
enum { SUBJECT_MOST = 1024 };

/* Places for descriptors that a shim holds. */
enum { PLACES_MOST = 5 };

/* What a shim can be told. */
enum order_kind {
    /* Start a command. */
    ORDER_START = 1,
    /* The command's pid is no longer needed: reap it once it has exited. */
    ORDER_RELEASE = 2,
    /* Kill the whole tree. */
    ORDER_KILL = 3,
    /* Send the signal whose number is in `flags` to the command's group. */
    ORDER_SIGNAL = 4,
    /* Report STATE, with `flags` in its `asked`, and then again all that was reported of the command. */
    ORDER_ASK = 5,
    /* Hold the descriptor that comes too; `flags` is its place. */
    ORDER_HOLD = 6,
    /* Close what is held in the places whose bits are set in `flags`. */
    ORDER_DROP = 7,
    /* The server has died: kill the whole tree of a command that has no key. */
    ORDER_GONE = 8,
};

/* What a descriptor is to the server that a shim holds for it.  All but CURSOR belong to the command, and are closed
 * when the shim is free again. */
enum held_place {
    /* The pipe to the command's standard input. */
    PLACE_STDIN = 0,
    /* The pipe from its standard output, or its terminal. */
    PLACE_STDOUT = 1,
    /* The pipe from its standard error. */
    PLACE_STDERR = 2,
    /* How far the output was taken; it belongs to the shim. */
    PLACE_CURSOR = 3,
    /* How far the input was written. */
    PLACE_STDIN_CURSOR = 4,
};

/* How a command is to be started. */
enum start_flag {
    /* One descriptor comes in place of standard files: a terminal, which becomes all three of them. */
    START_TERMINAL = 1,
    /* The program is searched for, in directories that follow its name. */
    START_SEARCH = 2,
    /* What belongs behind the head is in a file, the last descriptor. */
    START_IN_FILE = 4,
    /* Standard input comes too; without it the command reads nothing. */
    START_HAS_STDIN = 8,
    /* The command runs in a sandbox: there is a filter of its system calls. */
    START_CONFINED = 16,
    /* A Landlock ruleset comes as a descriptor, after the standard files. */
    START_RULESET = 32,
    /* Bubblewrap makes the sandbox: the arguments for it come as a descriptor, after the standard files. */
    START_WRAPPED = 64,
    /* The filter hands calls over: denials are reported. */
    START_WITNESS = 128,
    /* Calls that change files are made by the shim, which refuses what the kernel cannot refuse. */
    START_GUARD = 256,
    /* Drop all capabilities; bubblewrap does that itself. */
    START_POWERLESS = 512,
    /* Inside of bubblewrap's mounts Landlock keeps special files from being written, too. */
    START_DOMAIN = 1024,
    /* The network may be used. */
    START_NETWORK = 2048,
};

/* What a shim does after it has let go of the command's pid. */
enum release_flag {
    /* Do not report that the tree is empty. */
    RELEASE_QUIETLY = 1,
};

/* What a shim can report. */
enum news {
    /* The command runs: `value` is its pid, `shim` that of the shim. */
    REPORT_STARTED = 1,
    /* It does not: `value` is the number of an error, `detail` a StartStage. */
    REPORT_FAILED = 2,
    /* It has exited: `value` is a code or a signal, `detail` has ExitFlag. */
    REPORT_EXITED = 3,
    /* Nobody is left of the tree. */
    REPORT_EMPTY = 4,
    /* Some were killed and are still there: `value` of them, whose pids follow as int32_t. */
    REPORT_SURVIVORS = 5,
    /* The sandbox refused something `value` times: what, a NUL, and on what follow. All denials come just before
     * EXITED. */
    REPORT_DENIAL = 6,
    /* Answers ASK: `value` is the pid of the command, `detail` has a bit for each place in use. */
    REPORT_STATE = 7,
};

/* What a shim was told about its command. */
enum state_flag {
    /* That its pid is no longer needed. */
    STATE_RELEASED = 1,
    /* To kill its tree. */
    STATE_KILLED = 2,
    /* Not told but known: it runs, or ran. */
    STATE_STARTED = 4,
};

/* How a command ended. */
enum exit_flag {
    /* It was killed by a signal. */
    EXIT_BY_SIGNAL = 1,
    /* It has left nobody behind. */
    EXIT_ALONE = 2,
};

/* Where a start failed. */
enum start_stage {
    STAGE_FORK = 1,
    STAGE_TERMINAL = 2,
    STAGE_DIRECTORY = 3,
    STAGE_SEARCH = 4,
    STAGE_PROGRAM = 5,
    STAGE_LIMIT = 6,
    /* A control group cannot be entered. */
    STAGE_GROUP = 7,
    /* The sandbox cannot be made. */
    STAGE_SANDBOX = 8,
    /* The program is there, but cannot be seen from within the sandbox. */
    STAGE_HIDDEN = 9,
    /* What the order names as a control group is none. */
    STAGE_NO_GROUP = 10,
    /* The user cannot be changed. */
    STAGE_USER = 11,
};

/* The head of an order. With START there follow the limits, the numbers of the user, the filter, and texts that each
 * end with a NUL: the directory of the command, its control groups, its program, where to search for that,
 * bubblewrap, masks, rules, arguments, variables. A user is a uid, a gid and those of the supplementary groups, of
 * 32 bits each. The descriptors are the standard files, what the sandbox needs, what is to be held in the sequence
 * of the places, the file. */
struct order {
    uint32_t kind; /* OrderKind */
    uint32_t flags; /* of the kind, or the number of a signal */
    uint32_t arguments; /* how many texts are arguments */
    uint32_t variables; /* how many are variables */
    uint32_t limits; /* how many limits come first */
    uint32_t groups; /* directories of control groups to enter */
    uint32_t size; /* bytes behind the head, or in the file */
    uint32_t filter; /* bytes of the filter of system calls */
    uint32_t masks; /* directories that exist only for the sandbox to mount on */
    uint32_t rules; /* rules of the sandbox, for the witness */
    uint32_t hold; /* places of the descriptors to hold, a bit each */
    uint32_t user; /* how many numbers name the user; 0: the shim's own */
    uint64_t key; /* a number never used twice; 0: the command ends with the server */
};
_Static_assert(sizeof(struct order) == 56, "it is laid out as in Python");

/* A limit of the command. */
struct limit {
    uint64_t resource; /* RLIMIT_... */
    uint64_t soft;
    uint64_t hard;
};
_Static_assert(sizeof(struct limit) == 24, "it is laid out as in Python");

/* The head of a report. */
struct report {
    uint32_t kind; /* News */
    int32_t value;
    uint32_t detail;
    uint32_t shim;
    uint64_t user_us; /* processor time of the tree */
    uint64_t system_us;
    uint64_t peak_kib; /* memory of the largest process */
};
_Static_assert(sizeof(struct report) == 40, "it is laid out as in Python");

/* What follows the head of STATE. */
struct state {
    uint64_t key; /* that of the command; 0 if it has none */
    uint32_t asked; /* the number that came with ASK */
    uint32_t flags; /* StateFlag */
};
_Static_assert(sizeof(struct state) == 16, "it is laid out as in Python");

#endif
