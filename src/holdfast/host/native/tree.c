/* The tree of a command: reaping it, killing it, and signals to the command's group.
 *
 * To end the whole tree a shim kills its own children until it has none: it is a child
 * subreaper, so every death makes children of grandchildren.  A child that is not
 * reaped keeps its pid, so nobody else is ever hit.
 */

#define _GNU_SOURCE
#include "children.h"
#include "shim.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1UL << 2) /* From Linux 6.9 on. */
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

void usage_add(struct usage *sum, const struct rusage *used)
{
    sum->user_us += (uint64_t)used->ru_utime.tv_sec * 1000000 + used->ru_utime.tv_usec;
    sum->system_us += (uint64_t)used->ru_stime.tv_sec * 1000000 + used->ru_stime.tv_usec;
    if ((uint64_t)used->ru_maxrss > sum->peak_kib)
        sum->peak_kib = used->ru_maxrss;
}

/* Who has ended, with what it used, and without reaping it.  The C library's waitid has no place for the usage. */
static int look_at(int kind, pid_t pid, siginfo_t *info, struct rusage *used)
{
    return syscall(SYS_waitid, kind, pid, info, WEXITED | WNOHANG | WNOWAIT, used);
}

/* ---- Who is there. */

struct census {
    pid_t leader;
    int others, saw_leader;
};

static void count_child(void *context, pid_t pid)
{
    struct census *census = context;
    census->others += pid != census->leader;
    census->saw_leader |= pid == census->leader;
}

int tree_has_others(struct shim *shim)
{
    struct census census = {.leader = shim->leader};
    /* A list without the command, which is not reaped, is no list of ours. */
    return !for_each_child(count_child, &census) || !census.saw_leader || census.others;
}

struct survivors {
    int32_t pids[SURVIVORS_MOST];
    uint32_t count;
    int saw_any;
};

static void note_survivor(void *context, pid_t pid)
{
    struct survivors *survivors = context;
    char state = state_of(pid);
    survivors->saw_any = 1;
    if (state && state != 'Z' && survivors->count < SURVIVORS_MOST)
        survivors->pids[survivors->count++] = pid;
}

void tree_report_survivors(struct shim *shim)
{
    struct survivors survivors = {.count = 0};
    pid_t dead;
    for_each_child(note_survivor, &survivors);
    if (!survivors.saw_any && has_children(&dead))
        survivors.pids[survivors.count++] = getpid(); /* For those below us whom we cannot see. */
    shim_report_survivors(shim, survivors.pids, survivors.count);
}

/* ---- Signals to the group of the command.
 *
 * Its number is the command's pid, which is ours until we reap it.  After that it is
 * the group's for as long as it has members, and then a stranger's: what we hold
 * instead is a descriptor, which never means anybody else.  Before Linux 6.9 it cannot
 * stand for the group; then the group is killed from a dead child of ours that was in
 * it, which keeps the number until we reap it. */

void shim_forget_group(struct shim *shim)
{
    if (shim->group >= 0)
        close(shim->group);
    shim->group = -1, shim->hunting = 0;
}

static void kill_member(void *context, pid_t pid)
{
    const struct shim *shim = context;
    if (getpgid(pid) == shim->leader)
        kill(pid, SIGKILL);
}

void shim_signal(struct shim *shim, int number)
{
    if (!shim_has_tree(shim))
        return;
    if (shim->state != REAPED)
        kill(-shim->leader, number);
    else if (shim->group >= 0
             && syscall(SYS_pidfd_send_signal, shim->group, number, NULL, PIDFD_SIGNAL_PROCESS_GROUP) < 0
             && errno == EINVAL && number == SIGKILL) {
        shim->hunting = 1;
        for_each_child(kill_member, shim);
    }
}

/* ---- Reaping. */

/* Reaps a child that is dead. */
static void bury(struct shim *shim, pid_t pid)
{
    if (shim->hunting && getpgid(pid) == shim->leader)
        kill(-shim->leader, SIGKILL);
    if (pid == shim->leader) {
        if (shim->left_others)
            shim->group = syscall(SYS_pidfd_open, pid, 0);
        shim->state = REAPED;
    }
    waitpid(pid, NULL, 0);
}

struct reaping {
    struct shim *shim;
    int reaped;
};

static void reap_other(void *context, pid_t pid)
{
    struct reaping *reaping = context;
    struct rusage used;
    if (pid != reaping->shim->leader && wait4(pid, NULL, WNOHANG, &used) > 0)
        usage_add(&reaping->shim->usage, &used), reaping->reaped = 1;
}

/* Reaps all but the command, whose pid is kept: whoever ordered it sends signals to that. */
static void reap_others(struct shim *shim)
{
    struct reaping reaping = {.shim = shim, .reaped = 1};
    /* Who is reaped is missing from the list that is being read, and hides the next. */
    while (reaping.reaped) {
        reaping.reaped = 0;
        for_each_child(reap_other, &reaping);
    }
}

int tree_reap(struct shim *shim)
{
    for (;;) {
        siginfo_t info = {0};
        struct rusage used;
        if (shim->state == EXITED && shim->goal == WATCH) {
            reap_others(shim);
            return 1;
        }
        if (look_at(P_ALL, 0, &info, &used) < 0) {
            if (errno == ECHILD)
                return 0;
            continue;
        }
        if (!info.si_pid)
            return 1;
        if (info.si_pid == shim->leader && shim->state < EXITED) {
            shim_exited(shim, &info, &used);
            continue;
        }
        usage_add(&shim->usage, &used);
        bury(shim, info.si_pid);
    }
}

/* ---- Killing. */

struct killing {
    struct shim *shim;
    int alive, changed, seen_held;
};

static int is_held(const struct shim *shim, pid_t pid)
{
    for (int at = 0; at < shim->held_count; at++)
        if (shim->held[at] == pid)
            return 1;
    return 0;
}

/* Kills a child, or reaps it if it is dead.
 *
 * One that had left the group of the command keeps its pid for a moment: others than
 * us leave such a process alive, so somebody may be about to kill it by its number,
 * and must not hit a stranger. */
static void end_child(void *context, pid_t pid)
{
    struct killing *killing = context;
    struct shim *shim = killing->shim;
    siginfo_t info = {0};
    struct rusage used;
    if (is_held(shim, pid)) {
        killing->seen_held++;
        return;
    }
    if (look_at(P_PID, pid, &info, &used) < 0) {
        killing->alive |= errno != ECHILD;
        return;
    }
    if (!info.si_pid) {
        kill(pid, SIGKILL);
        killing->alive = 1;
        return;
    }
    killing->changed = 1;
    if (pid == shim->leader && shim->state < EXITED)
        shim_exited(shim, &info, &used);
    usage_add(&shim->usage, &used);
    int escaped = pid != shim->leader && getpgid(pid) != shim->leader;
    if (escaped && !shim->orphaned && shim->held_count < HELD_MOST)
        shim->held[shim->held_count++] = pid;
    else
        bury(shim, pid);
}

/* That nobody is to be seen is no proof: only the kernel's word is, that we have no child.  Those whose pids are held
 * are children still; a list that shows all of them is whole. */
int tree_kill(struct shim *shim)
{
    struct killing killing;
    do {
        pid_t dead = 0;
        killing = (struct killing){.shim = shim};
        if (!for_each_child(end_child, &killing))
            killing.alive = 1;
        if (!killing.alive && !killing.changed
            && (shim->held_count ? killing.seen_held < shim->held_count : has_children(&dead))) {
            killing.alive = 1;
            if (dead || shim->state != REAPED)
                end_child(&killing, dead ? dead : shim->leader);
        }
    } while (killing.changed); /* Who is reaped hides others in the list. */
    return killing.alive;
}
