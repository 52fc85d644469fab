/* The fork server: makes a shim for every command (shim.c).
 *
 * It is small, so that a fork of it is cheap, and the server, which is large, is never
 * forked.  It is the parent of all shims, and takes over the tree of one that was
 * killed.  Over its socket it is sent one end of a new socket for each shim to make.
 *
 * The same program is also the init of bubblewrap's sandboxes (init.c).
 *
 * usage: fork_server [FILES_SOFT FILES_HARD], with a socket as descriptor 3
 */

#define _GNU_SOURCE
#include "children.h"
#include "confine.h"
#include "init.h"
#include "shim.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SOCKET = 3,
    SWEEP_MS = 5000,       /* How long it tries to kill what a shim left that did not end by itself, */
    SWEEP_PAUSE_NS = 2000000, /* and the pause between two attempts. */
    LIMIT_WORDS = 3,       /* Arguments, with the name of the program, if there is a limit of files. */
};

struct fork_server {
    pid_t *shims;
    int count, room;
    int64_t sweep_until;   /* 0 if there is nothing to sweep. */
    int strays;            /* How many were found alive in this attempt. */
};

/* ---- Shims. */

static int find_shim(const struct fork_server *server, pid_t pid)
{
    for (int at = 0; at < server->count; at++)
        if (server->shims[at] == pid)
            return at;
    return -1;
}

static void kill_stray(void *context, pid_t pid)
{
    struct fork_server *server = context;
    siginfo_t info;
    if (find_shim(server, pid) < 0 && !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT))
        kill(pid, SIGKILL), server->strays++;
}

/* Takes note of shims that have ended.  One that did not end by itself left its tree to us. */
static void reap_shims(struct fork_server *server)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (WIFSTOPPED(status)) {
            kill(pid, SIGCONT); /* A command can stop its shim, but not for long. */
            continue;
        }
        int at = find_shim(server, pid);
        if (at < 0)
            continue;
        server->shims[at] = server->shims[--server->count];
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            server->sweep_until = now_ms() + SWEEP_MS;
    }
}

static void sweep(struct fork_server *server)
{
    if (!server->sweep_until)
        return;
    server->strays = 0;
    int whole = for_each_child(kill_stray, server);
    if ((whole && !server->strays) || now_ms() > server->sweep_until)
        server->sweep_until = 0;
}

/* Has room for one more shim; -1 if there is no memory for it. */
static int make_room(struct fork_server *server)
{
    if (server->count < server->room)
        return 0;
    int room = server->room ? server->room * 2 : 64;
    pid_t *more = realloc(server->shims, room * sizeof *more);
    if (!more)
        return -1;
    server->shims = more, server->room = room;
    return 0;
}

/* Makes the shim that is asked for next.  Ends with the server. */
static void make_shim(struct fork_server *server)
{
    char byte;
    ssize_t got;
    int control = -1;
    int count = receive_descriptors(SOCKET, &byte, 1, &control, 1, &got);
    if (got == 0)
        _exit(0);
    if (got < 0 || !count)
        return;
    if (make_room(server) == 0) {
        pid_t pid = fork();
        if (pid == 0)
            shim_run(control);
        if (pid > 0)
            server->shims[server->count++] = pid;
        else
            send_report(control, REPORT_FAILED, errno, STAGE_FORK, NULL);
    }
    close(control);
}

/* ---- Its life. */

static void on_child(int number) { (void)number; }

/* Sets every signal back to its default, even those that the C library keeps to itself. */
static void reset_signals(void)
{
    enum { SIGNALS = 64, MASK_BYTES = 8 };
    unsigned long by_default[8] = {0};
    for (int number = 1; number <= SIGNALS; number++)
        syscall(SYS_rt_sigaction, number, by_default, NULL, MASK_BYTES);
}

static void settle(int argc, char **argv)
{
    /* Before the limit falls, so that no number is above it. */
    close_from(SOCKET + 1);
    if (argc == LIMIT_WORDS) {
        const struct limit files = {RLIMIT_NOFILE, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10)};
        set_limits(&files, 1);
    }
    fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
    setsid();
    prctl(PR_SET_NAME, "holdfast-fork");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    reset_signals();
    ignore_signals();
    struct sigaction notice = {.sa_handler = on_child};
    sigaction(SIGCHLD, &notice, NULL);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static int run_fork_server(void)
{
    struct fork_server server = {0};
    const unsigned char version = MESSAGES_VERSION;
    sigset_t waiting;
    sigemptyset(&waiting);
    if (send(SOCKET, &version, 1, MSG_NOSIGNAL) != 1)
        return 1;
    for (;;) {
        struct pollfd polled = {SOCKET, POLLIN, 0};
        struct timespec pause = {0, SWEEP_PAUSE_NS};
        int ready = ppoll(&polled, 1, server.sweep_until ? &pause : NULL, &waiting);
        reap_shims(&server);
        sweep(&server);
        if (ready > 0)
            make_shim(&server);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "init"))
        return run_init();
    if (argc == 2 && !strcmp(argv[1], "probe"))
        return probe();
    if (argc != 1 && argc != LIMIT_WORDS) {
        fprintf(stderr, "usage: fork_server [FILES_SOFT FILES_HARD], with a socket as descriptor 3\n");
        return 2;
    }
    settle(argc, argv);
    return run_fork_server();
}
