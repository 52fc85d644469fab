/* A shim: the parent of one command, and the place where everybody whom the command leaves behind ends up.
 *
 * It is a child subreaper: a process whose parent has ended becomes its child, whatever
 * session or group it has moved to.  So it can reap and kill the whole tree (tree.c).
 *
 * It takes orders and sends reports over a socket (messages.h).  When the socket closes,
 * whoever ordered the command is gone, and the tree is killed.  After a command whose
 * tree has ended by itself, another one may follow.
 */

#define _GNU_SOURCE
#include "shim.h"
#include "spawn.h"
#include "system.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    HOLD_MS = 1000,        /* How long the pids of the killed are kept from others. */
    PATIENCE_MS = 1000,    /* How long the killed may take before they are reported as survivors. */
    SOON_NS = 2000000,     /* Who is killed is gone in a moment, and then its children are ours. */
    LATER_NS = 100000000,
    FILES_MOST = STANDARD_FILES + 2, /* Descriptors with an order: what a sandbox needs, and the order itself. */
};

/* ---- News from the sandbox, and the exit. */

static int receive_from_sandbox(struct shim *shim)
{
    if (!sandbox_receive(&shim->sandbox))
        return 0;
    if (shim->state == STARTING && shim->sandbox.last.event == INIT_RUNS) {
        shim->state = RUNNING;
        shim_report_started(shim);
    }
    return 1;
}

void shim_exited(struct shim *shim, const siginfo_t *info, const struct rusage *used)
{
    struct sandbox *sandbox = &shim->sandbox;
    struct usage usage = shim->usage;
    while (receive_from_sandbox(shim))
        ;
    if (shim->state == STARTING) /* There is no command: bubblewrap has said why, or its init. */
        shim_report_failed(shim, sandbox_failed_stage(sandbox), sandbox->last.value);
    int value = info->si_status, killed = info->si_code != CLD_EXITED;
    if (sandbox->last.event == INIT_EXITED || sandbox->last.event == INIT_KILLED)
        value = sandbox->last.value, killed = sandbox->last.event == INIT_KILLED;
    shim_report_denials(shim);
    usage_add(&usage, used);
    shim->state = EXITED;
    shim->left_others = tree_has_others(shim);
    if (!shim->left_others)
        sandbox_give_masks(sandbox); /* Whoever reads the report finds everything as it was. */
    uint32_t detail = (killed ? EXIT_BY_SIGNAL : 0) | (shim->left_others ? 0 : EXIT_ALONE);
    shim_report(shim, REPORT_EXITED, value, detail, &usage);
}

/* ---- Orders. */

/* Whether who gives the orders is gone.  What was ordered before, and not yet read, is then not wanted any more: it may
 * name what belongs to others by now. */
static int is_hung_up(const struct shim *shim)
{
    struct pollfd end = {shim->control, 0, 0};
    return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR);
}

static void obey(struct shim *shim, const struct order *order, char *body, size_t size, int *files, int count)
{
    switch (order->kind) {
    case ORDER_START:
        if (shim->state != NO_COMMAND)
            _exit(EXIT_BROKEN);
        if (!(order->flags & START_IN_FILE) && order->size != size)
            _exit(EXIT_BROKEN);
        shim_start(shim, order, body, files, count);
        break;
    case ORDER_RELEASE:
        if (shim->goal == WATCH)
            shim->goal = RELEASE;
        shim->quiet = !!(order->flags & RELEASE_QUIETLY);
        break;
    case ORDER_KILL:
        shim->goal = KILL;
        break;
    case ORDER_SIGNAL:
        shim_signal(shim, order->flags);
        break;
    }
}

static void receive_order(struct shim *shim)
{
    static _Alignas(8) char buffer[sizeof(struct order) + INLINE_MOST];
    int files[FILES_MOST], count = 0;
    ssize_t got = 0;
    if (!is_hung_up(shim))
        count = receive_descriptors(shim->control, buffer, sizeof buffer, files, FILES_MOST, &got);
    if (got < 0 && errno == EMFILE) {
        if (shim->state != NO_COMMAND)
            _exit(EXIT_BROKEN);
        shim_report_failed(shim, STAGE_FORK, EMFILE);
    }
    if (got < 0 && !peer_is_gone(errno))
        return; /* It is still there when we ask again. */
    if (got <= 0) {
        shim->orphaned = 1, shim->goal = KILL;
        return;
    }
    const struct order *order = (const struct order *)buffer;
    if ((size_t)got < sizeof *order)
        _exit(EXIT_BROKEN);
    obey(shim, order, buffer + sizeof *order, got - sizeof *order, files, count);
}

/* ---- Its life. */

/* Nobody is left of the tree.  Ends the shim if no other command can follow. */
static void finish(struct shim *shim)
{
    char ignored[64];
    sandbox_end(&shim->sandbox);
    if (!shim->quiet)
        shim_report(shim, REPORT_EMPTY, 0, 0, &shim->usage);
    if (shim->held_count)
        usleep(HOLD_MS * 1000);
    if (shim->goal == KILL && !shim->orphaned)
        /* Our own pid stays ours for as long as anybody reads. */
        for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);)
            got = recv(shim->control, ignored, sizeof ignored, 0);
    if (shim->goal == KILL || shim->sandbox.spoiled)
        _exit(0);
    shim_forget_group(shim);
    memset(&shim->usage, 0, sizeof shim->usage);
    shim->state = NO_COMMAND, shim->goal = WATCH, shim->quiet = 0, shim->leader = 0;
}

/* While a tree is being killed: how long to wait before the next attempt. */
static struct timespec pause_of(struct shim *shim)
{
    int64_t now = now_ms();
    if (!shim->killing_since)
        shim->killing_since = now;
    if (now - shim->killing_since <= PATIENCE_MS)
        return (struct timespec){0, SOON_NS};
    if (!shim->survivors_reported)
        tree_report_survivors(shim), shim->survivors_reported = 1;
    return (struct timespec){0, LATER_NS};
}

/* Waits for an order, for news from the sandbox, or for the end of a child. */
static void wait_for_events(struct shim *shim, const sigset_t *waiting)
{
    struct timespec pause;
    if (shim->goal == KILL)
        pause = pause_of(shim);
    struct pollfd polled[] = {{shim->orphaned ? -1 : shim->control, POLLIN, 0}, {shim->sandbox.socket, POLLIN, 0}};
    if (ppoll(polled, 2, shim->goal == KILL ? &pause : NULL, waiting) <= 0)
        return;
    if (polled[1].revents)
        receive_from_sandbox(shim);
    if (polled[0].revents)
        receive_order(shim);
}

_Noreturn void shim_run(int control)
{
    struct shim shim = {.control = control, .group = -1, .sandbox = {.socket = -1}};
    sigset_t waiting;
    setsid();
    prctl(PR_SET_NAME, "holdfast-shim");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* SIGCHLD is blocked except while waiting, so no death is missed between a look and the wait. */
    sigprocmask(SIG_SETMASK, NULL, &waiting);
    sigdelset(&waiting, SIGCHLD);
    for (;;) {
        if (shim.state != NO_COMMAND && !(shim.goal == KILL ? tree_kill(&shim) : tree_reap(&shim)))
            finish(&shim);
        if (shim.state == NO_COMMAND && shim.orphaned)
            _exit(0);
        if (shim.state == NO_COMMAND)
            shim.goal = WATCH; /* What was ordered came when nobody was left. */
        wait_for_events(&shim, &waiting);
    }
}
