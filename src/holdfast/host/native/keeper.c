/* The keeper: the process that was started, which outlives servers.
 *
 * It holds what must not end with a server: the arena, the stage, the listening sockets,
 * and the server's end of every shim's socket, so that no shim notices when a server
 * dies.  It makes the shims, as a fork server does.  It has the spare fork a server, hands
 * it everything (handover.c), and has another one forked when that dies.  When the keeper
 * itself dies, the server ends everything; when both are dead, the shims do.
 *
 * It waits in ppoll only: nobody whom it talks to can hold it up.
 */

#define _GNU_SOURCE
#include "keeper.h"
#include "children.h"
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
#include <time.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

enum {
    EARLY_DEATHS_MOST = 5,         /* So many servers in a row may die before they serve, */
    DOWN_MS = 30000,               /* and for so long there may be none that serves. */
    LEAVE_MS = 2000,               /* How long we wait at the end until everybody is gone. */
    GIVEN_UP = 70,                 /* The exit code if there can be no server. */
    USAGE_WORDS = 12,              /* Arguments that there are at least, with the name of the program. */
    FIRST_HELD = 3,                /* The number of the first of the descriptors that we are given. */
    HELD = 4,
};

/* Which signals came. */
static volatile sig_atomic_t terminate_came, hangup_came;

static void on_child(int number) { (void)number; }
static void on_terminate(int number) { (void)number, terminate_came = 1; }
static void on_hangup(int number) { (void)number, hangup_came = 1; }

/* ---- The end of everything. */

void keeper_kill_server(const struct keeper *keeper)
{
    if (keeper->process >= 0)
        syscall(SYS_pidfd_send_signal, keeper->process, SIGKILL, NULL, 0);
}

static void close_server(struct keeper *keeper)
{
    if (keeper->server >= 0)
        close(keeper->server);
    keeper->server = -1, keeper->is_full = 0;
}

void keeper_leave(struct keeper *keeper, int code)
{
    if (keeper->leave_by)
        return;
    keeper->code = code, keeper->leave_by = now_ms() + LEAVE_MS;
    close_server(keeper);
    for (int at = 0; at < keeper->shims.count; at++)
        shutdown(keeper->shims.list[at].end, SHUT_RDWR);
    spare_kill(keeper); /* It has nothing to lose, and may be busy with its imports. */
    if (keeper->spare >= 0)
        close(keeper->spare);
    keeper->spare = -1;
}

/* Says a sentence, unless whoever should read it does not: a pipe that has room has room for one. */
static void say(const char *sentence)
{
    struct pollfd polled = {STDERR_FILENO, POLLOUT, 0};
    if (poll(&polled, 1, 0) > 0 && polled.revents & POLLOUT)
        dprintf(STDERR_FILENO, "holdfast: %s\n", sentence);
}

static void give_up(struct keeper *keeper, const char *why)
{
    if (keeper->leave_by)
        return;
    say(why);
    keeper_kill_server(keeper);
    keeper_leave(keeper, GIVEN_UP);
}

/* Whether we have waited long enough for those who end. */
static int may_leave(struct keeper *keeper)
{
    pid_t dead;
    if (!has_children(&dead))
        return 1;
    /* What the spare or the server was trying out when it ended is ours now, and nobody waits for it. */
    shims_kill_strays(&keeper->shims);
    if (now_ms() < keeper->leave_by)
        return 0;
    keeper_kill_server(keeper);
    return 1;
}

/* ---- The end of a server. */

static void tell_gone(struct keeper *keeper)
{
    const struct order gone = {.kind = ORDER_GONE};
    for (int at = 0; at < keeper->shims.count; at++) {
        struct made_shim *shim = &keeper->shims.list[at];
        if (shim->is_owed && (send(shim->end, &gone, sizeof gone, MSG_NOSIGNAL | MSG_DONTWAIT) > 0
                              || peer_is_gone(errno)))
            shim->is_owed = 0;
    }
}

static int owes_gone(const struct keeper *keeper)
{
    for (int at = 0; at < keeper->shims.count; at++)
        if (keeper->shims.list[at].is_owed)
            return 1;
    return 0;
}

/* When the next server may be started: at once, unless the last ones have not lived for long. */
static void plan_restart(struct keeper *keeper)
{
    int64_t now = now_ms(), *oldest = &keeper->restarts[keeper->restart_count % AT_ONCE];
    if (keeper->restart_count < AT_ONCE || now - *oldest > AT_ONCE_MS)
        keeper->pause = 0;
    else if (!keeper->pause)
        keeper->pause = PAUSE_LEAST_MS;
    else
        keeper->pause = keeper->pause * 2 < PAUSE_MOST_MS ? keeper->pause * 2 : PAUSE_MOST_MS;
    *oldest = now, keeper->restart_count++;
    keeper->restart_at = now + keeper->pause;
}

/* Its socket has ended. */
static void server_ended(struct keeper *keeper)
{
    int served = keeper->phase == SERVING;
    close_server(keeper);
    if (keeper->has_code || keeper->is_terminated) {
        keeper_leave(keeper, keeper->has_code ? keeper->code : 0);
        return;
    }
    keeper_kill_server(keeper); /* It could have closed its socket and go on: there must not be two. */
    keeper->phase = keeper->process >= 0 ? DYING : ABSENT;
    keeper->early_deaths = served ? 0 : keeper->early_deaths + 1;
    if (!keeper->down_since && keeper->generation)
        keeper->down_since = now_ms();
    keeper->shims.handed = 0;
    for (int at = 0; at < keeper->shims.count; at++)
        keeper->shims.list[at].is_owed = 1;
    tell_gone(keeper);
    plan_restart(keeper);
    if (keeper->early_deaths >= EARLY_DEATHS_MOST)
        give_up(keeper, "the server dies whenever it is started: everything is ended");
}

static void forget_process(struct keeper *keeper)
{
    close(keeper->process);
    keeper->process = -1, keeper->shims.others[SERVER_CHILD] = 0;
    keeper->phase = ABSENT;
    shims_drop_unread(&keeper->shims);
}

/* ---- What a server says. */

static void take_listener(struct keeper *keeper, const char *label, size_t size, int socket)
{
    int at = 0;
    while (at < keeper->listener_count
           && (keeper->listeners[at].size != size || memcmp(keeper->listeners[at].label, label, size)))
        at++;
    if (at == LISTENERS_MOST) {
        close(socket);
        return;
    }
    struct kept_listener *listener = &keeper->listeners[at];
    if (at == keeper->listener_count)
        keeper->listener_count++;
    else
        close(listener->socket);
    listener->socket = socket, listener->size = size;
    memcpy(listener->label, label, size);
}

/* Takes a message, and returns how many of its descriptors it has taken. */
static int obey(struct keeper *keeper, const char *text, size_t size, const int *files, int count)
{
    int32_t code;
    switch (text[0]) {
    case 'A':
        if (count != 2)
            return 0;
        shims_make(&keeper->shims, files[0], files[1]);
        return 2;
    case 'L':
        if (count != 1)
            return 0;
        take_listener(keeper, text + 1, size - 1, files[0]);
        return 1;
    case 'K':
        handover_taken(keeper);
        return 0;
    case 'R':
        if (keeper->phase == RISING || (keeper->phase == TAKING && keeper->step == END_TAKEN))
            keeper->phase = SERVING, keeper->down_since = 0, keeper->early_deaths = 0, keeper->pause = 0;
        return 0;
    case 'S':
        if (size == 1 + sizeof code)
            memcpy(&code, text + 1, sizeof code), keeper->has_code = 1, keeper->code = code & 0xff;
        keeper->heard_at = now_ms();
        return 0;
    }
    return 0;
}

static void receive_server(struct keeper *keeper)
{
    char text[1 + LABEL_MOST];
    int files[2], count;
    ssize_t got;
    do
        count = receive_descriptors(keeper->server, text, sizeof text, files, 2, &got);
    while (got < 0 && errno == ECONNRESET); /* What it said before it went comes after that. */
    if (got == 0 || (got < 0 && peer_is_gone(errno)))
        server_ended(keeper);
    if (got <= 0)
        return;
    for (int taken = obey(keeper, text, got, files, count); taken < count; taken++)
        close(files[taken]);
}

/* ---- Servers. */

static void order_server(struct keeper *keeper)
{
    int ends[2];
    keeper->restart_at = now_ms() + PAUSE_LEAST_MS; /* If it cannot be done now. */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    char kind = 'F';
    if (send_descriptors(keeper->spare, &(struct iovec){&kind, 1}, 1, &ends[1], 1) < 0) {
        if (errno == ETOOMANYREFS)
            shims_drop_unread(&keeper->shims);
        close(ends[0]);
    } else {
        keeper->server = ends[0], keeper->phase = ORDERED;
        keeper->generation++, keeper->heard_at = now_ms();
    }
    close(ends[1]);
}

/* Whether somebody takes nothing of what it is told, or does not end although it said so. */
static int is_stuck(const struct keeper *keeper)
{
    int waits = keeper->phase == ORDERED || keeper->phase == TAKING || keeper->has_code;
    return waits && now_ms() >= keeper->heard_at + keeper->patience;
}

static void tend_server(struct keeper *keeper)
{
    if (keeper->phase == ABSENT && keeper->spare_is_ready && now_ms() >= keeper->restart_at)
        order_server(keeper);
    if (keeper->phase == TAKING)
        handover_go(keeper);
    if (is_stuck(keeper)) {
        if (keeper->phase == ORDERED)
            spare_kill(keeper);
        else
            keeper_kill_server(keeper);
        keeper->heard_at = now_ms();
    }
    if (keeper->phase == RISING || keeper->phase == SERVING) {
        if (keeper->owes_terminate && handover_tell(keeper, 'T'))
            keeper->owes_terminate = 0;
        if (keeper->owes_hangup && handover_tell(keeper, 'U'))
            keeper->owes_hangup = 0;
    }
    if (keeper->down_since && now_ms() >= keeper->down_since + DOWN_MS)
        give_up(keeper, "there has been no server for too long: everything is ended");
}

static void notice_signals(struct keeper *keeper)
{
    if (hangup_came)
        hangup_came = 0, keeper->owes_hangup = 1;
    if (!terminate_came)
        return;
    terminate_came = 0;
    keeper->is_terminated = keeper->owes_terminate = 1;
    if (keeper->phase == ABSENT || keeper->phase == DYING)
        keeper_leave(keeper, 0);
}

/* ---- Its life. */

static void earlier(int64_t *when, int64_t other)
{
    if (!*when || other < *when)
        *when = other;
}

/* When something has to be done though nothing happens; 0 for never. */
static int64_t next_deadline(const struct keeper *keeper)
{
    int64_t when = 0;
    int is_up = keeper->phase == RISING || keeper->phase == SERVING;
    if (keeper->shims.sweep_until)
        earlier(&when, now_ms() + SWEEP_PAUSE_MS);
    if (keeper->leave_by) {
        earlier(&when, keeper->leave_by);
        return when;
    }
    if (owes_gone(keeper))
        earlier(&when, now_ms() + RETRY_MS);
    if (keeper->spare < 0 && !keeper->shims.others[SPARE_CHILD])
        earlier(&when, keeper->spare_at);
    if (keeper->phase == ABSENT && keeper->spare_is_ready)
        earlier(&when, keeper->restart_at);
    if (keeper->phase == ORDERED || keeper->phase == TAKING || keeper->has_code)
        earlier(&when, keeper->heard_at + keeper->patience);
    int waits_for_taking = keeper->step == BATCH_TAKEN || keeper->step == END_TAKEN;
    if (!keeper->is_full && ((keeper->phase == TAKING && !waits_for_taking)
                             || (is_up && (keeper->owes_terminate || keeper->owes_hangup))))
        earlier(&when, now_ms() + RETRY_MS);
    if (keeper->down_since)
        earlier(&when, keeper->down_since + DOWN_MS);
    return when;
}

static void wait_for_events(struct keeper *keeper, const sigset_t *waiting)
{
    int64_t when = next_deadline(keeper), pause = when ? when - now_ms() : 0;
    if (pause < 0)
        pause = 0;
    struct timespec time = {pause / 1000, pause % 1000 * 1000000};
    struct pollfd polled[] = {{keeper->spare, POLLIN, 0},
                              {keeper->server, POLLIN | (keeper->is_full ? POLLOUT : 0), 0},
                              {keeper->phase == DYING ? keeper->process : -1, POLLIN, 0}};
    if (ppoll(polled, sizeof polled / sizeof *polled, when ? &time : NULL, waiting) <= 0)
        return;
    if (polled[1].revents & ~POLLOUT)
        receive_server(keeper);
    if (polled[2].revents)
        forget_process(keeper);
}

static int live(struct keeper *keeper, const sigset_t *waiting)
{
    for (;;) {
        shims_reap(&keeper->shims);
        shims_sweep(&keeper->shims);
        notice_signals(keeper);
        if (keeper->leave_by) {
            if (may_leave(keeper))
                return keeper->code;
        } else {
            tell_gone(keeper);
            spare_tend(keeper);
            tend_server(keeper);
        }
        wait_for_events(keeper, waiting);
    }
}

/* ---- Its beginning. */

static void handle(int number, void (*handler)(int), sigset_t *blocked)
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
    sigaddset(blocked, number);
}

/* The signals that are handled come while we wait, and at no other time. */
static void settle_signals(struct keeper *keeper)
{
    struct sigaction hangup;
    sigset_t blocked;
    sigaction(SIGHUP, NULL, &hangup);
    keeper->hangup_was_ignored = hangup.sa_handler == SIG_IGN;
    reset_signals();
    ignore_signals();
    sigemptyset(&blocked);
    handle(SIGCHLD, on_child, &blocked);
    handle(SIGTERM, on_terminate, &blocked);
    handle(SIGINT, on_terminate, &blocked);
    handle(SIGHUP, on_hangup, &blocked); /* Also under nohup: the server knows what it means then. */
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* Gives what we hold the numbers from FIRST_HELD on, and closes everything else.  -1 if it is not there. */
static int settle_descriptors(int *held)
{
    int copies[HELD];
    for (int at = 0; at < FIRST_HELD; at++)
        if (fcntl(at, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return -1;
    for (int at = 0; at < HELD; at++)
        if ((copies[at] = fcntl(held[at], F_DUPFD_CLOEXEC, FIRST_HELD + HELD)) < 0)
            return -1;
    for (int at = 0; at < HELD; at++)
        if ((held[at] = dup3(copies[at], FIRST_HELD + at, O_CLOEXEC)) < 0)
            return -1;
    close_from(FIRST_HELD + HELD);
    return 0;
}

int run_keeper(int argc, char **argv)
{
    struct keeper keeper = {.server = -1, .process = -1};
    sigset_t waiting;
    if (argc < USAGE_WORDS || strcmp(argv[USAGE_WORDS - 2], "--")) {
        fprintf(stderr, "usage: fork_server keep SPARE SPARE_PID ARENA STAGE_OUT STAGE_IN FILES_SOFT FILES_HARD"
                        " PATIENCE_MS -- COMMAND...\n");
        return 2;
    }
    int held[HELD] = {atoi(argv[2]), atoi(argv[4]), atoi(argv[5]), atoi(argv[6])};
    if (settle_descriptors(held) < 0) {
        perror("holdfast: the keeper has not what it is to hold");
        return 2;
    }
    keeper.spare = held[0], keeper.arena = held[1], keeper.stage[0] = held[2], keeper.stage[1] = held[3];
    keeper.shims.others[SPARE_CHILD] = atoi(argv[3]);
    keeper.shims.has_files_limit = !!strcmp(argv[7], "-");
    keeper.shims.files = (struct limit){RLIMIT_NOFILE, strtoull(argv[7], NULL, 10), strtoull(argv[8], NULL, 10)};
    keeper.patience = atoll(argv[9]), keeper.command = argv + USAGE_WORDS - 1;
    prctl(PR_SET_NAME, "holdfast-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    settle_signals(&keeper);
    sigemptyset(&waiting);
    return live(&keeper, &waiting);
}
