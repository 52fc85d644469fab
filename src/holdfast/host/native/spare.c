/* The spare, from which servers are forked, as the keeper sees it. */

#define _GNU_SOURCE
#include "keeper.h"
#include "system.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { SPARE_SOCKET = 3 };         /* The number under which a spare that we start finds its end. */

void spare_kill(const struct keeper *keeper)
{
    pid_t pid = keeper->shims.others[SPARE_CHILD]; /* We have not reaped it, so nobody else has its pid. */
    if (pid)
        kill(pid, SIGKILL);
}

/* ---- What it says. */

/* The spare has forked a server.  If its socket has ended by now, we wait for its end, too. */
static void take_process(struct keeper *keeper, const char *text, int process)
{
    int32_t pid;
    memcpy(&pid, text + 1, sizeof pid);
    keeper->shims.others[SERVER_CHILD] = pid;
    if (keeper->process >= 0)
        close(keeper->process);
    keeper->process = process >= 0 ? process : (int)syscall(SYS_pidfd_open, pid, 0);
    if (keeper->phase == ORDERED)
        keeper->phase = TAKING, keeper->step = HELLO, keeper->heard_at = now_ms();
    else if (keeper->phase == ABSENT && keeper->process >= 0)
        keeper->phase = DYING, keeper_kill_server(keeper);
}

/* Takes one message.  0 if there is none, -1 if the spare is gone. */
static int receive(struct keeper *keeper)
{
    char text[8];
    ssize_t got;
    int process = -1, count = receive_descriptors(keeper->spare, text, sizeof text, &process, 1, &got);
    if (got == 0 || (got < 0 && peer_is_gone(errno) && errno != ECONNRESET))
        return -1;
    if (got < 0)
        return errno == ECONNRESET; /* What it said before it went comes after that. */
    if (text[0] == 'R')
        keeper->spare_is_ready = 1, keeper->spare_pause = 0;
    if (text[0] == 'P' && got == 1 + sizeof(int32_t))
        take_process(keeper, text, process);
    else if (count)
        close(process);
    return 1;
}

/* ---- Starting another one. */

static _Noreturn void become_spare(const struct keeper *keeper, int end)
{
    char **command = keeper->command;
    sigset_t none;
    restore_signals();
    if (keeper->hangup_was_ignored)
        signal(SIGHUP, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (dup2(end, SPARE_SOCKET) < 0 || setenv("HOLDFAST_SPARE", "3", 1) < 0)
        _exit(EXIT_BROKEN);
    close_from(SPARE_SOCKET + 1);
    execvp(command[0], command);
    _exit(127);
}

static void start(struct keeper *keeper)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        become_spare(keeper, ends[1]);
    close(ends[1]);
    if (pid < 0)
        close(ends[0]);
    else
        keeper->spare = ends[0], keeper->shims.others[SPARE_CHILD] = pid;
}

/* The last one may be there still, without its socket; but there is one spare at a time. */
static void has_ended(struct keeper *keeper)
{
    spare_kill(keeper);
    close(keeper->spare);
    keeper->spare = -1, keeper->spare_at = now_ms() + keeper->spare_pause;
    keeper->spare_is_ready = 0;
}

void spare_tend(struct keeper *keeper)
{
    int said = 0;
    if (keeper->spare >= 0) {
        int is_there = !!keeper->shims.others[SPARE_CHILD];
        while ((said = receive(keeper)) > 0)
            ;
        if (said < 0 || !is_there)
            has_ended(keeper);
    }
    if (keeper->spare < 0 && !keeper->shims.others[SPARE_CHILD] && now_ms() >= keeper->spare_at) {
        keeper->spare_pause = keeper->spare_pause ? keeper->spare_pause * 2 : PAUSE_LEAST_MS;
        if (keeper->spare_pause > PAUSE_MOST_MS)
            keeper->spare_pause = PAUSE_MOST_MS;
        start(keeper);
        if (keeper->spare < 0)
            keeper->spare_at = now_ms() + keeper->spare_pause;
    }
}
