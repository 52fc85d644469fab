/* A shim: the parent of one command, and the place where everybody whom the command leaves behind ends up.
 *
 * It is a child subreaper: a process whose parent has ended becomes its child, whatever
 * session or group it has moved to.  So it can reap and kill the whole tree (tree.c).
 *
 * It takes orders and sends reports over a socket (messages.h).  When the socket closes,
 * whoever ordered the command is gone, and the tree is killed.  After a command whose
 * tree has ended by itself, another one may follow.
 *
 * A command with a key outlives the server: the keeper has the server's end of the socket,
 * too.  For such a command the shim holds the server's ends of its pipes, and says
 * everything again to the next server that asks.  It never waits anywhere but in ppoll, so
 * that it can answer at once.
 */

#define _GNU_SOURCE
#include "shim.h"
#include "spawn.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
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
    ANSWER_NS = 5000000,   /* Until an answer that could not be sent is tried again. */
    FILES_MOST = STANDARD_FILES + 2 + PLACES_MOST, /* With an order: what a sandbox needs, and the order itself, too. */
    CONTROL = 3,           /* The number that the socket gets. */
};
_Static_assert((int)FILES_MOST <= (int)RECEIVE_MOST, "an order fits into a message");

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
    shim_report_exited(shim, value, detail, &usage);
}

/* ---- What is known and held of a command. */

int shim_has_tree(const struct shim *shim) { return shim->state != NO_COMMAND && shim->state != OVER; }

void shim_drop(struct shim *shim, uint32_t places)
{
    for (int place = 0; place < PLACES_MOST; place++)
        if (places >> place & 1 && shim->places[place] >= 0)
            close(shim->places[place]), shim->places[place] = -1;
}

static void hold(struct shim *shim, uint32_t place, int *files, int *count)
{
    if (*count != 1 || place >= PLACES_MOST || (shim->state == NO_COMMAND && place != PLACE_CURSOR))
        return;
    shim_drop(shim, 1U << place);
    shim->places[place] = files[0], *count = 0;
}

/* The command is over, and nobody needs to know of it: the next one may come. */
static void become_free(struct shim *shim)
{
    if (shim->sandbox.spoiled)
        _exit(0);
    shim_drop(shim, ~(1U << PLACE_CURSOR));
    shim_forget_denials(shim);
    memset(&shim->usage, 0, sizeof shim->usage);
    shim->state = NO_COMMAND, shim->goal = WATCH, shim->quiet = 0, shim->leader = 0, shim->key = 0;
}

/* ---- Orders. */

/* Whether who gives the orders is gone.  What was ordered before, and not yet read, is then not wanted any more: it may
 * name what belongs to others by now. */
static int is_hung_up(const struct shim *shim)
{
    struct pollfd end = {shim->control, 0, 0};
    return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR);
}

static void release(struct shim *shim, uint32_t flags)
{
    if (shim->state == OVER && shim->goal == RELEASE) {
        become_free(shim);
        return;
    }
    if (shim->goal == WATCH)
        shim->goal = RELEASE;
    shim->quiet = !!(flags & RELEASE_QUIETLY);
}

/* Takes a command.  After a KILL there is none: whoever sends one has not read yet that the last one is over. */
static void begin(struct shim *shim, const struct order *order, char *body, size_t size, int *files, int *count)
{
    if (shim->state == OVER && shim->goal == KILL)
        return;
    if (shim->state != NO_COMMAND || (!(order->flags & START_IN_FILE) && order->size != size))
        _exit(EXIT_BROKEN);
    shim_start(shim, order, body, files, *count);
    *count = 0;
}

static void obey(struct shim *shim, const struct order *order, char *body, size_t size, int *files, int count)
{
    switch (order->kind) {
    case ORDER_START:
        begin(shim, order, body, size, files, &count);
        break;
    case ORDER_RELEASE:
        release(shim, order->flags);
        break;
    case ORDER_KILL:
        if (shim->state != OVER)
            shim->goal = KILL;
        break;
    case ORDER_SIGNAL:
        shim_signal(shim, order->flags);
        break;
    case ORDER_ASK:
        shim->is_asked = 1, shim->asked = order->flags;
        break;
    case ORDER_HOLD:
        hold(shim, order->flags, files, &count);
        break;
    case ORDER_DROP:
        shim_drop(shim, order->flags);
        break;
    case ORDER_GONE:
        if (shim_has_tree(shim) && !shim->key)
            shim->goal = KILL;
        shim->is_asked = 0; /* Whoever asked is not there any more. */
        break;
    }
    while (count) /* Those that nobody has taken. */
        close(files[--count]);
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

/* Nobody is left of the tree.  After a KILL the shim stays for as long as anybody is at the other end of its socket,
 * which keeps its own pid from others.  With a key it stays as it is until it is released again: what was in the pipes
 * at the end may be there still. */
static void finish(struct shim *shim)
{
    sandbox_end(&shim->sandbox);
    shim_forget_group(shim);
    if (!shim->quiet)
        shim_report(shim, REPORT_EMPTY, 0, 0, &shim->usage);
    shim->state = OVER;
    if (shim->held_count)
        shim->held_until = now_ms() + HOLD_MS;
    if (shim->goal != KILL && (!shim->key || shim->quiet))
        become_free(shim);
}

/* Whether nobody needs the shim any more. */
static int is_done(const struct shim *shim)
{
    return shim->orphaned && !shim_has_tree(shim) && now_ms() >= shim->held_until;
}

/* While a tree is being killed: how long to wait before the next attempt. */
static int64_t kill_pause(struct shim *shim)
{
    int64_t now = now_ms();
    if (!shim->killing_since)
        shim->killing_since = now;
    if (now - shim->killing_since <= PATIENCE_MS)
        return SOON_NS;
    if (!shim->survivors_reported)
        tree_report_survivors(shim), shim->survivors_reported = 1;
    return LATER_NS;
}

/* How long to wait for events, in nanoseconds; -1 for as long as it takes. */
static int64_t pause_of(struct shim *shim)
{
    int64_t pause = -1;
    if (shim_has_tree(shim) && shim->goal == KILL)
        pause = kill_pause(shim);
    else if (shim->orphaned)
        pause = (shim->held_until - now_ms() + 1) * 1000000;
    if (shim->is_asked && (pause < 0 || pause > ANSWER_NS))
        pause = ANSWER_NS;
    return pause;
}

/* Waits for an order, for news from the sandbox, or for the end of a child. */
static void wait_for_events(struct shim *shim, const sigset_t *waiting)
{
    int64_t pause = pause_of(shim);
    struct timespec time = {pause / 1000000000, pause % 1000000000};
    struct pollfd polled[] = {{shim->orphaned ? -1 : shim->control, POLLIN, 0}, {shim->sandbox.socket, POLLIN, 0}};
    if (ppoll(polled, 2, pause < 0 ? NULL : &time, waiting) <= 0)
        return;
    if (polled[1].revents)
        receive_from_sandbox(shim);
    if (polled[0].revents)
        receive_order(shim);
}

/* Keeps nothing of whoever has forked us but the socket. */
static void settle_descriptors(int control)
{
    if (control != CONTROL && dup2(control, CONTROL) < 0)
        _exit(EXIT_BROKEN);
    fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
    close_from(CONTROL + 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int at = 0; at < STANDARD_FILES && null >= 0; at++)
        dup2(null, at);
    if (null >= STANDARD_FILES)
        close(null);
}

_Noreturn void shim_run(int control)
{
    struct shim shim = {.control = CONTROL, .group = -1, .sandbox = {.socket = -1}};
    sigset_t waiting;
    settle_descriptors(control);
    for (int place = 0; place < PLACES_MOST; place++)
        shim.places[place] = -1;
    setsid();
    prctl(PR_SET_NAME, "holdfast-shim");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* SIGCHLD is blocked except while waiting, so no death is missed between a look and the wait. */
    sigprocmask(SIG_SETMASK, NULL, &waiting);
    sigdelset(&waiting, SIGCHLD);
    for (;;) {
        if (shim_has_tree(&shim) && !(shim.goal == KILL ? tree_kill(&shim) : tree_reap(&shim)))
            finish(&shim);
        if (is_done(&shim))
            _exit(0);
        if (shim.state == NO_COMMAND)
            shim.goal = WATCH; /* What was ordered came when nobody was left. */
        if (shim.is_asked)
            shim_answer(&shim);
        wait_for_events(&shim, &waiting);
    }
}
