/* The keeper: the process that was started, which outlives servers. */

#ifndef HOLDFAST_KEEPER_H
#define HOLDFAST_KEEPER_H

#include "shims.h"

#include <stdint.h>

enum {
    KEEPER_PROTOCOL = 1,           /* Of the messages to servers.  What they are is said in host/keeper.py. */
    LABEL_MOST = 255,              /* Bytes of the label of a listener. */
    LISTENERS_MOST = 32,
    AT_ONCE = 3,                   /* So many restarts of the server are made without a pause, */
    AT_ONCE_MS = 10000,            /* in this time. */
    PAUSE_LEAST_MS = 100,          /* The pause before further ones, which doubles each time, */
    PAUSE_MOST_MS = 5000,          /* up to this. */
    RETRY_MS = 5,                  /* Until something is tried again that there was no memory for. */
};

struct kept_listener {
    int socket;
    size_t size;
    char label[LABEL_MOST];
};

/* Where the present server is in its life. */
enum server_phase {
    ABSENT,                        /* There is none. */
    ORDERED,                       /* The spare was told to fork it, and has not said yet that it has. */
    TAKING,                        /* It is being handed what we hold. */
    RISING,                        /* It has everything. */
    SERVING,                       /* It has said that its listeners are served. */
    DYING,                         /* Its socket has ended; its process may still be there. */
};

/* What of the hand-over comes next. */
enum handover_step { HELLO, LISTENERS, BATCH, BATCH_TAKEN, END, END_TAKEN };

struct keeper {
    struct shims shims;
    int arena, stage[2];
    struct kept_listener listeners[LISTENERS_MOST];
    int listener_count;
    int64_t patience;              /* How long a server or a spare may take nothing of what it is told. */

    char **command;                /* By which a spare is started. */
    int spare;                     /* The socket to it; -1 if there is none. */
    int spare_is_ready;
    int64_t spare_at;              /* When another one may be started, */
    int64_t spare_pause;           /* and how long the last wait for that was. */

    enum server_phase phase;
    int server;                    /* The socket to it; -1 if there is none. */
    int process;                   /* A descriptor of its process; -1 if that is not known. */
    uint64_t generation;
    enum handover_step step;
    int next_listener;
    int is_full;                   /* Whether its socket is; then we wait until it is not. */
    int64_t heard_at;              /* When the server or the spare last took what it was told. */
    int64_t restart_at, pause;     /* When the next one may be started; the last pause before that. */
    int64_t restarts[AT_ONCE];     /* When the last ones were, */
    int restart_count;             /* and how many there were in all. */
    int64_t down_since;            /* 0 while there is a server that has served, or was none yet. */
    int early_deaths;              /* How many in a row have died before they served. */

    int is_terminated;             /* Whether we were told to stop everything, */
    int owes_terminate;            /* and whether the server has yet to be told so. */
    int owes_hangup;
    int hangup_was_ignored;        /* Whether whoever started us had servers ignore SIGHUP. */
    int has_code;                  /* Whether the server said that it ends on purpose. */
    int code;                      /* The exit code, then or while we leave. */
    int64_t leave_by;              /* 0 unless we leave. */
};

/* Is the keeper until its end; returns its exit code.
 *
 * usage: fork_server keep SPARE SPARE_PID ARENA STAGE_OUT STAGE_IN FILES_SOFT FILES_HARD PATIENCE_MS -- COMMAND...
 */
int run_keeper(int argc, char **argv);

/* Ends everything, and then the keeper. */
void keeper_leave(struct keeper *keeper, int code);

/* Kills the present server, if its process is known. */
void keeper_kill_server(const struct keeper *keeper);

/* ---- spare.c */

/* Takes what the spare has said, and starts another one if it has ended. */
void spare_tend(struct keeper *keeper);
void spare_kill(const struct keeper *keeper);

/* ---- handover.c */

/* Sends what the server can take now of the hand-over. */
void handover_go(struct keeper *keeper);
/* The server has taken what it was sent last. */
void handover_taken(struct keeper *keeper);
/* Sends one letter; 0 if that is not possible now. */
int handover_tell(struct keeper *keeper, char letter);

#endif
