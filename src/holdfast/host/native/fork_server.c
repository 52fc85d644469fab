/* The fork server: makes a shim for every command (shim.c).
 *
 * It is small, so that a fork of it is cheap, and the server, which is large, is never
 * forked.  It is the parent of all shims, and takes over the tree of one that was
 * killed.  Over its socket it is sent one end of a new socket for each shim to make.
 *
 * The same program is also the keeper (keeper.c), and the init of bubblewrap's sandboxes
 * (init.c).
 *
 * usage: fork_server [FILES_SOFT FILES_HARD], with a socket as descriptor 3
 */

#define _GNU_SOURCE
#include "confine.h"
#include "init.h"
#include "keeper.h"
#include "shims.h"
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
    LIMIT_WORDS = 3,       /* Arguments, with the name of the program, if there is a limit of files. */
};

/* Makes the shim that is asked for next.  Ends with the server. */
static void make_shim(struct shims *shims)
{
    char byte;
    ssize_t got;
    int control = -1;
    int count = receive_descriptors(SOCKET, &byte, 1, &control, 1, &got);
    if (got == 0)
        _exit(0);
    if (got > 0 && count)
        shims_make(shims, control, -1);
}

static void on_child(int number) { (void)number; }

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
    struct shims shims = {0};
    const unsigned char version = MESSAGES_VERSION;
    sigset_t waiting;
    sigemptyset(&waiting);
    if (send(SOCKET, &version, 1, MSG_NOSIGNAL) != 1)
        return 1;
    for (;;) {
        struct pollfd polled = {SOCKET, POLLIN, 0};
        struct timespec pause = {0, SWEEP_PAUSE_MS * 1000000};
        int ready = ppoll(&polled, 1, shims.sweep_until ? &pause : NULL, &waiting);
        shims_reap(&shims);
        shims_sweep(&shims);
        if (ready > 0)
            make_shim(&shims);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "init"))
        return run_init();
    if (argc == 2 && !strcmp(argv[1], "probe"))
        return probe();
    if (argc > 1 && !strcmp(argv[1], "keep"))
        return run_keeper(argc, argv);
    if (argc != 1 && argc != LIMIT_WORDS) {
        fprintf(stderr, "usage: fork_server [FILES_SOFT FILES_HARD], with a socket as descriptor 3\n");
        return 2;
    }
    settle(argc, argv);
    return run_fork_server();
}
