/* The shims of a fork server or of the keeper. */

#define _GNU_SOURCE
#include "shims.h"
#include "children.h"
#include "confine.h"
#include "shim.h"
#include "system.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SWEEP_MS = 5000,               /* How long we try to kill what a shim left that did not end by itself. */
    UNREAD_MOST = 1000,            /* Messages of one shim that are dropped at a time. */
};

/* ---- Making them. */

/* Has room for one more shim; -1 if there is no memory for it. */
static int make_room(struct shims *shims)
{
    if (shims->count < shims->room)
        return 0;
    int room = shims->room ? shims->room * 2 : 64;
    struct made_shim *more = realloc(shims->list, room * sizeof *more);
    if (!more)
        return -1;
    shims->list = more, shims->room = room;
    return 0;
}

/* The server that asked for it knows it. */
static void add(struct shims *shims, struct made_shim made)
{
    if (shims->handed < shims->count)
        shims->list[shims->count] = shims->list[shims->handed];
    shims->list[shims->handed++] = made;
    shims->count++;
}

static _Noreturn void become_shim(const struct shims *shims, int control)
{
    if (shims->has_files_limit)
        set_limits(&shims->files, 1);
    ignore_signals();
    shim_run(control);
}

void shims_make(struct shims *shims, int control, int end)
{
    pid_t pid = make_room(shims) < 0 ? -1 : fork();
    if (pid == 0)
        become_shim(shims, control);
    if (pid > 0)
        add(shims, (struct made_shim){.pid = pid, .end = end});
    else {
        struct report report = {.kind = REPORT_FAILED, .value = errno, .detail = STAGE_FORK};
        send(control, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (end >= 0)
            close(end);
    }
    close(control);
}

void shims_drop_unread(struct shims *shims)
{
    char text[64];
    for (int at = shims->handed; at < shims->count; at++)
        for (int most = UNREAD_MOST; most && recv(shims->list[at].end, text, sizeof text, MSG_DONTWAIT) > 0; most--)
            ;
}

/* ---- Their ends. */

static int find_shim(const struct shims *shims, pid_t pid)
{
    for (int at = 0; at < shims->count; at++)
        if (shims->list[at].pid == pid)
            return at;
    return -1;
}

static void remove_shim(struct shims *shims, int at)
{
    if (shims->list[at].end >= 0)
        close(shims->list[at].end);
    if (at < shims->handed) { /* Those that were handed over stay in front. */
        shims->list[at] = shims->list[--shims->handed];
        at = shims->handed;
    }
    shims->list[at] = shims->list[--shims->count];
}

void shims_reap(struct shims *shims)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (WIFSTOPPED(status)) {
            kill(pid, SIGCONT); /* A command can stop its shim, but not for long. */
            continue;
        }
        for (int other = 0; other < OTHER_CHILDREN; other++)
            if (shims->others[other] == pid)
                shims->others[other] = 0;
        int at = find_shim(shims, pid);
        if (at < 0)
            continue;
        remove_shim(shims, at);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            shims->sweep_until = now_ms() + SWEEP_MS;
    }
}

static void kill_stray(void *context, pid_t pid)
{
    struct shims *shims = context;
    siginfo_t info;
    for (int other = 0; other < OTHER_CHILDREN; other++)
        if (shims->others[other] == pid)
            return;
    if (find_shim(shims, pid) < 0 && !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT))
        kill(pid, SIGKILL), shims->strays++;
}

int shims_kill_strays(struct shims *shims)
{
    shims->strays = 0;
    return for_each_child(kill_stray, shims) && !shims->strays;
}

void shims_sweep(struct shims *shims)
{
    if (shims->sweep_until && (shims_kill_strays(shims) || now_ms() > shims->sweep_until))
        shims->sweep_until = 0;
}
