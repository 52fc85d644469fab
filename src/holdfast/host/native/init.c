/* The init of bubblewrap's sandboxes: the process with number 1 there.
 *
 * It is this same program, handed in as a descriptor, since it need not be visible
 * inside.  It starts the command, confined, and reports to the shim how that went and
 * how the command ended.  When it ends, the kernel kills everybody else inside.
 */

#define _GNU_SOURCE
#include "init.h"
#include "confine.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The load, read. */
struct task {
    struct load *load;
    const struct limit *limits;
    struct confinement confinement;
    const char *cwd, *program, *writable;
    char **argv, **env;
};

/* Why the command does not run; the child that shares our memory writes it. */
struct init_failure {
    volatile int event, error;
};

static void send_news(enum init_event event, int value)
{
    struct init_news news = {event, value};
    send(INIT_SOCKET, &news, sizeof news, MSG_NOSIGNAL);
}

static char *next_text(char **at)
{
    char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

/* Reads what to start.  -1 if that is not possible. */
static int read_task(struct task *task)
{
    struct stat facts;
    if (fstat(INIT_LOAD, &facts) < 0)
        return -1;
    char *base = mmap(NULL, facts.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, INIT_LOAD, 0);
    close(INIT_LOAD), close(INIT_PROGRAM), close(INIT_ARGUMENTS);
    if (base == MAP_FAILED)
        return -1;
    struct load *load = task->load = (struct load *)base;
    task->limits = (const struct limit *)(load + 1);
    char *at = base + sizeof *load + load->limits * sizeof(struct limit);
    task->confinement = (struct confinement){at, load->filter_size, -1, load->witness ? INIT_SOCKET : -1, 0};
    at += load->filter_size;
    task->cwd = next_text(&at);
    task->program = next_text(&at);
    task->writable = at;
    for (uint32_t i = 0; i < load->writable; i++)
        next_text(&at);
    task->argv = calloc((size_t)load->arguments + load->variables + 2, sizeof(char *));
    if (!task->argv)
        return -1;
    task->env = task->argv + load->arguments + 1;
    for (uint32_t i = 0; i < load->arguments; i++)
        task->argv[i] = next_text(&at);
    for (uint32_t i = 0; i < load->variables; i++)
        task->env[i] = next_text(&at);
    return 0;
}

/* Only the command enters them, and not bubblewrap or this process: its limits are not about those. */
static int enter_groups(uint32_t count)
{
    for (uint32_t at = 0; at < count; at++)
        if (write(INIT_GROUPS + at, "0", 1) != 1)
            return -1;
    return 0;
}

/* In the child, which shares our memory until the program runs. */
static _Noreturn void become(const struct task *task, struct init_failure *failure)
{
    sigset_t none;
    restore_signals();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int event = 0;
    if (enter_groups(task->load->groups) < 0)
        event = INIT_NO_GROUP;
    else if (confine(&task->confinement) < 0)
        event = INIT_FAILED;
    else if (set_limits(task->limits, task->load->limits) < 0)
        event = INIT_NO_LIMIT;
    else {
        execve(task->program, task->argv, task->env);
        event = errno == EACCES || errno == ENOENT ? INIT_HIDDEN : INIT_NO_PROGRAM;
    }
    failure->error = errno, failure->event = event;
    _exit(127);
}

/* On its own, because a child that shares our memory must not spoil anybody's variables. */
static __attribute__((noinline)) pid_t spawn(const struct task *task, struct init_failure *failure)
{
    pid_t pid = vfork();
    if (pid == 0)
        become(task, failure);
    return pid;
}

/* Waits for the command, and reaps whoever ends before it.  Returns an exit status. */
static int wait_for(pid_t leader)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED) < 0) {
            if (errno == EINTR)
                continue;
            return EXIT_BROKEN;
        }
        if (info.si_pid == leader) {
            int killed = info.si_code != CLD_EXITED;
            send_news(killed ? INIT_KILLED : INIT_EXITED, info.si_status);
            return killed ? 128 + info.si_status : info.si_status;
        }
    }
}

int run_init(void)
{
    static struct task task; /* Ours until the end, whichever way that comes. */
    struct init_failure failure = {0, 0};
    /* Nobody inside may look into us or change us: there is no filter for what we do. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    fcntl(INIT_SOCKET, F_SETFD, FD_CLOEXEC);
    if (read_task(&task) < 0)
        return EXIT_BROKEN;
    for (uint32_t i = 0; i < task.load->groups; i++)
        fcntl(INIT_GROUPS + i, F_SETFD, FD_CLOEXEC);
    if (chdir(task.cwd) < 0) {
        send_news(INIT_NO_DIRECTORY, errno);
        return EXIT_BROKEN;
    }
    if (task.load->domain && (task.confinement.ruleset = domain_of(task.writable, task.load->writable)) < 0) {
        send_news(INIT_FAILED, errno);
        return EXIT_BROKEN;
    }
    pid_t leader = spawn(&task, &failure);
    if (leader < 0)
        failure.event = INIT_FAILED, failure.error = errno;
    if (task.confinement.ruleset >= 0)
        close(task.confinement.ruleset);
    for (uint32_t i = 0; i < task.load->groups; i++)
        close(INIT_GROUPS + i);
    if (failure.event) {
        send_news(failure.event, failure.error);
        return EXIT_BROKEN;
    }
    send_news(INIT_RUNS, 0);
    return wait_for(leader);
}
