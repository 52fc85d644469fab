/* The nursery: makes a warden for every command.
 *
 * A warden is the parent of one command and the place where everything that the
 * command leaves behind ends up: it is a child subreaper, so that a process
 * whose parent has ended becomes its child, whatever session or group it has
 * moved to.  To end the whole tree it kills its own children until it has none:
 * every death makes children of grandchildren.  A child that was not reaped
 * keeps its number, so nobody else is ever hit.
 *
 * A warden is told what to do, and tells what happened, over a socket.  When the
 * socket closes, whoever asked for the command is gone, and the tree is ended.
 *
 * nursery.py is the same program in Python, for installations without a
 * compiler; warden.py has the other side of the messages.  All three change
 * together.
 *
 * usage: nursery [FILES_SOFT FILES_HARD], with a socket as descriptor 3
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SOCKET = 3,
    INLINE_MOST = 65536,   /* Bytes of a request that is not in a file of its own. */
    STANDARD_FILES = 3,
    SURVIVORS_MOST = 256,
    HELD_MOST = 256,
    HOLD_MS = 1000,        /* How long the numbers of the killed are kept from others. */
    SWEEP_MS = 5000,       /* How long the nursery tries to end what a killed warden left. */
    PATIENCE_MS = 1000,    /* How long the killed may take before they are told as survivors. */
};

/* What a warden is told: a head, then what belongs to it. */
struct order {
    uint32_t what;         /* START, RELEASE or KILL */
    uint32_t flags;
    uint32_t arguments;
    uint32_t variables;
    uint32_t limits;
    uint32_t groups;       /* Control groups to enter. */
    uint32_t size;         /* Bytes after the head, or in the file. */
    uint32_t unused;
};
enum { START = 1, RELEASE = 2, KILL = 3 };
enum { TERMINAL = 1, SEARCH = 2, IN_FILE = 4, HAS_STDIN = 8, QUIETLY = 16 };

struct limit {
    uint64_t resource, soft, hard;
};

/* What a warden tells. */
struct report {
    uint32_t what;
    int32_t value;         /* A pid, an error number, an exit code, a count. */
    uint32_t detail;       /* The stage that failed; with EXITED: BY_SIGNAL, ALONE. */
    uint32_t warden;       /* Our own pid, with STARTED. */
    uint64_t user_us, system_us, peak_kib;
};
enum { STARTED = 1, FAILED = 2, EXITED = 3, EMPTY = 4, SURVIVORS = 5 };
enum { BY_SIGNAL = 1, ALONE = 2 };
enum { AT_FORK = 1, AT_TERMINAL = 2, AT_DIRECTORY = 3, AT_SEARCH = 4, AT_PROGRAM = 5, AT_LIMIT = 6, AT_GROUP = 7 };

static int control;
static pid_t leader;
static int told, released, quiet, killing, orphaned;
static struct report usage;

/* What neither a nursery nor a warden may die of; their children hear everything again. */
static const int deaf[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU};

static void on_child(int number) { (void)number; }

/* Ignore no signal, not even those that the C library keeps to itself. */
static void hear_everything(void)
{
    unsigned long by_default[8] = {0};
    for (int number = 1; number < 65; number++)
        syscall(SYS_rt_sigaction, number, by_default, NULL, 8);
}

/* ---- Children. */

static int is_my_child(const char *name)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = 0;
    char *end = strrchr(text, ')');
    return end && strlen(end) > 4 && strtol(end + 4, NULL, 10) == getpid();
}

/* Call `each` with every child.  The kernel's list may miss some while others end: ask again. */
static void children(void (*each)(pid_t))
{
    char text[4096];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got;
        pid_t pid = 0;
        while ((got = read(fd, text, sizeof text)) > 0)
            for (ssize_t at = 0; at < got; at++) {
                if (text[at] >= '0' && text[at] <= '9')
                    pid = pid * 10 + (text[at] - '0');
                else if (pid)
                    each(pid), pid = 0;
            }
        close(fd);
        return;
    }
    /* A kernel without that list. */
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got;
    while (proc >= 0 && (got = syscall(SYS_getdents64, proc, text, sizeof text)) > 0)
        for (long at = 0; at < got;) {
            unsigned short length;
            memcpy(&length, text + at + 16, sizeof length);
            char *name = text + at + 19;
            if (name[0] >= '0' && name[0] <= '9' && is_my_child(name))
                each(atoi(name));
            at += length;
        }
    if (proc >= 0)
        close(proc);
}

static void add(struct report *sum, const struct rusage *used)
{
    sum->user_us += (uint64_t)used->ru_utime.tv_sec * 1000000 + used->ru_utime.tv_usec;
    sum->system_us += (uint64_t)used->ru_stime.tv_sec * 1000000 + used->ru_stime.tv_usec;
    if ((uint64_t)used->ru_maxrss > sum->peak_kib)
        sum->peak_kib = used->ru_maxrss;
}

static void tell(struct report *report, uint32_t what, int32_t value, uint32_t detail)
{
    report->what = what, report->value = value, report->detail = detail;
    if (!orphaned)
        while (send(control, report, sizeof *report, MSG_NOSIGNAL) < 0 && errno == EINTR)
            ;
}

static int others;

static void count_other(pid_t pid) { others += pid != leader; }

static int reaped;

static void reap_other(pid_t pid)
{
    struct rusage used;
    if (pid != leader && wait4(pid, NULL, WNOHANG, &used) > 0)
        add(&usage, &used), reaped = 1;
}

static void tell_exit(const siginfo_t *info, const struct rusage *used)
{
    struct report report = usage;
    add(&report, used);
    told = 1, others = 0;
    children(count_other);
    tell(&report, EXITED, info->si_status,
         (info->si_code == CLD_EXITED ? 0 : BY_SIGNAL) | (others ? 0 : ALONE));
}

/* Reap who has ended; say whether anybody is left.
 *
 * The command itself is kept until its number is no longer needed: whoever asked
 * for it sends signals to that number. */
static int reap(void)
{
    for (;;) {
        siginfo_t info = {0};
        struct rusage used;
        if (told && !released) {
            /* Who is reaped is missing from the list that is being read, and hides the next. */
            do {
                reaped = 0;
                children(reap_other);
            } while (reaped);
            return 1;
        }
        if (syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, &used) < 0)
            return errno == EINTR ? 1 : 0;
        if (!info.si_pid)
            return 1;
        if (info.si_pid == leader && !told) {
            tell_exit(&info, &used);
            continue;
        }
        add(&usage, &used);
        waitpid(info.si_pid, NULL, 0);
    }
}

/* ---- Ending the tree. */

static int32_t unkilled[SURVIVORS_MOST];
static int unkilled_count;

static pid_t held[HELD_MOST];
static int held_count, alive, changed;

static int is_held(pid_t pid)
{
    for (int at = 0; at < held_count; at++)
        if (held[at] == pid)
            return 1;
    return 0;
}

/* Kill a child, or reap it if it is dead.
 *
 * One that had left the group of the command keeps its number for a moment:
 * others than us leave such a process alive, so somebody may be about to kill it
 * by its number, and must not hit a stranger. */
static void end_one(pid_t pid)
{
    siginfo_t info = {0};
    struct rusage used;
    if (is_held(pid) || syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, &used) < 0)
        return;
    if (!info.si_pid) {
        kill(pid, SIGKILL);
        alive = 1;
        return;
    }
    changed = 1;
    if (pid == leader && !told)
        tell_exit(&info, &used);
    add(&usage, &used);
    if (!orphaned && held_count < HELD_MOST && pid != leader && getpgid(pid) != leader)
        held[held_count++] = pid;
    else
        waitpid(pid, NULL, 0);
}

/* Say whether anybody is left to be killed.  Who is reaped hides others in the list. */
static int end_all(void)
{
    do {
        alive = changed = 0;
        children(end_one);
    } while (changed);
    return alive;
}

static void note_survivor(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return;
    text[got] = 0;
    char *end = strrchr(text, ')');
    if (end && strlen(end) > 2 && end[2] != 'Z' && unkilled_count < SURVIVORS_MOST)
        unkilled[unkilled_count++] = pid;
}

static void tell_survivors(void)
{
    struct report report = {.what = SURVIVORS};
    unkilled_count = 0;
    children(note_survivor);
    report.value = unkilled_count;
    struct iovec parts[] = {{&report, sizeof report}, {unkilled, sizeof(int32_t) * unkilled_count}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (!orphaned)
        sendmsg(control, &message, MSG_NOSIGNAL);
}

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* ---- Starting. */

static const char *next_text(char **at, const char *end)
{
    char *text = *at;
    size_t length = strnlen(text, end - text);
    if (text + length >= end)
        _exit(3);
    *at = text + length + 1;
    return text;
}

/* Which file `name` stands for, in `path` as seen from `cwd`.  Not finding one sets errno. */
static int look_up(char *found, size_t room, const char *name, const char *path, const char *cwd)
{
    int reason = ENOENT;
    for (;;) {
        size_t length = strcspn(path, ":");
        int wrote = path[0] == '/'
            ? snprintf(found, room, "%.*s/%s", (int)length, path, name)
            : snprintf(found, room, "%s%s%.*s%s%s", cwd, cwd[strlen(cwd) - 1] == '/' ? "" : "/", (int)length, path,
                       length ? "/" : "", name);
        struct stat facts;
        if (wrote < 0 || (size_t)wrote >= room)
            reason = ENAMETOOLONG;
        else if (stat(found, &facts) == 0) {
            if (S_ISREG(facts.st_mode) && faccessat(AT_FDCWD, found, X_OK, AT_EACCESS) == 0)
                return 1;
            reason = EACCES;
        } else if (errno == EACCES || errno == ENAMETOOLONG)
            reason = errno;
        path += length;
        if (!*path++)
            break;
    }
    errno = reason;
    return 0;
}

struct program {
    const char *cwd, *terminal, *groups, *name, *path;
    char **argv, **env;
    const struct limit *limits;
    uint32_t limit_count, group_count;
    int files[STANDARD_FILES];
};

static volatile int failed_at, failed_with;

static void fail(int stage)
{
    failed_with = errno, failed_at = stage;
    _exit(127);
}

/* In the child, which shares our memory until the program runs. */
static void become(const struct program *p)
{
    static char found[4096 + 256];
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t none;
    setsid();
    const char *group = p->groups;
    for (uint32_t at = 0; at < p->group_count; at++, group += strlen(group) + 1) {
        int fd = open(group, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
            fail(AT_GROUP);
        close(fd);
    }
    if (p->terminal) {
        /* A session leader that opens a terminal has it as its own. */
        int fd = open(p->terminal, O_RDWR);
        if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
            fail(AT_TERMINAL);
        if (fd > 2)
            close(fd);
    } else {
        for (int at = 0; at < STANDARD_FILES; at++)
            if (dup2(p->files[at], at) < 0)
                fail(AT_FORK);
    }
    if (chdir(p->cwd) < 0)
        fail(AT_DIRECTORY);
    const char *program = p->name;
    if (p->path) {
        if (!look_up(found, sizeof found, p->name, p->path, p->cwd))
            fail(AT_SEARCH);
        program = found;
    }
    for (uint32_t at = 0; at < p->limit_count; at++) {
        struct rlimit64 limit = {p->limits[at].soft, p->limits[at].hard};
        if (prlimit64(0, p->limits[at].resource, &limit, NULL) < 0)
            fail(AT_LIMIT);
    }
    for (size_t at = 0; at < sizeof deaf / sizeof *deaf; at++)
        sigaction(deaf[at], &by_default, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(program, p->argv, p->env);
    fail(AT_PROGRAM);
}

/* On its own, because a child that shares our memory must not spoil anybody's variables. */
static __attribute__((noinline)) pid_t spawn(const struct program *p)
{
    pid_t pid = vfork();
    if (pid == 0)
        become(p);
    return pid;
}

static void start(const struct order *order, char *body, int *files, int file_count)
{
    struct program p = {0};
    struct report report = {0};
    int nothing = -1;
    char *mapped = NULL;
    if (order->flags & IN_FILE) {
        if (file_count < 1)
            _exit(3);
        int file = files[--file_count];
        mapped = mmap(NULL, order->size, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        if (mapped == MAP_FAILED) {
            tell(&report, FAILED, errno, AT_FORK);
            _exit(0);
        }
        body = mapped;
    }
    if (order->limits > order->size / sizeof(struct limit))
        _exit(3);
    char *at = body + order->limits * sizeof(struct limit);
    const char *end = body + order->size;
    p.limits = (const struct limit *)body, p.limit_count = order->limits;
    p.cwd = next_text(&at, end);
    if (order->flags & TERMINAL)
        p.terminal = next_text(&at, end);
    p.groups = at, p.group_count = order->groups;
    for (uint32_t i = 0; i < order->groups; i++)
        next_text(&at, end);
    p.name = next_text(&at, end);
    if (order->flags & SEARCH)
        p.path = next_text(&at, end);
    p.argv = calloc((size_t)order->arguments + order->variables + 2, sizeof(char *));
    if (!p.argv)
        _exit(3);
    p.env = p.argv + order->arguments + 1;
    for (uint32_t i = 0; i < order->arguments; i++)
        p.argv[i] = (char *)next_text(&at, end);
    for (uint32_t i = 0; i < order->variables; i++)
        p.env[i] = (char *)next_text(&at, end);
    if (!p.terminal) {
        int given = 0;
        if (!(order->flags & HAS_STDIN))
            nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        for (int i = 0; i < STANDARD_FILES; i++)
            p.files[i] = i == 0 && !(order->flags & HAS_STDIN) ? nothing : given < file_count ? files[given++] : -1;
    }
    failed_at = 0;
    leader = spawn(&p);
    if (leader < 0)
        failed_at = AT_FORK, failed_with = errno;
    for (int i = 0; i < file_count; i++)
        close(files[i]);
    if (nothing >= 0)
        close(nothing);
    free(p.argv);
    if (mapped)
        munmap(mapped, order->size);
    if (failed_at) {
        if (leader > 0)
            waitpid(leader, NULL, 0);
        leader = 0;
        tell(&report, FAILED, failed_with, failed_at);
        _exit(0);
    }
    report.warden = getpid();
    tell(&report, STARTED, leader, 0);
}

/* ---- A warden's life. */

static void obey(void)
{
    static char buffer[sizeof(struct order) + INLINE_MOST] __attribute__((aligned(8)));
    char space[CMSG_SPACE(sizeof(int) * (STANDARD_FILES + 1))];
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t got = recvmsg(control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        orphaned = released = killing = 1;
        return;
    }
    struct order *order = (struct order *)buffer;
    if ((size_t)got < sizeof *order)
        _exit(3);
    int files[STANDARD_FILES + 1], count = 0;
    struct cmsghdr *extra = CMSG_FIRSTHDR(&message);
    if (extra && extra->cmsg_type == SCM_RIGHTS) {
        count = (extra->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(files, CMSG_DATA(extra), sizeof(int) * count);
    }
    switch (order->what) {
    case START:
        if (leader)
            _exit(3);
        if (!(order->flags & IN_FILE) && order->size != got - sizeof *order)
            _exit(3);
        start(order, buffer + sizeof *order, files, count);
        break;
    case RELEASE:
        released = 1;
        quiet = !!(order->flags & QUIETLY);
        break;
    case KILL:
        released = killing = 1;
        break;
    }
}

static void warden(void)
{
    sigset_t waiting;
    int64_t since = 0;
    int said = 0;
    setsid();
    prctl(PR_SET_NAME, "holdfast-warden");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigprocmask(SIG_SETMASK, NULL, &waiting);
    sigdelset(&waiting, SIGCHLD);
    for (;;) {
        if (leader && !(killing ? end_all() : reap())) {
            if (!quiet)
                tell(&usage, EMPTY, 0, 0);
            if (held_count)
                usleep(HOLD_MS * 1000);
            if (killing && !orphaned)
                /* Our own number stays ours for as long as anybody listens. */
                for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);)
                    got = recv(control, &usage, sizeof usage, 0);
            if (killing)
                _exit(0);
            /* Nobody is left: the next command may come. */
            leader = told = released = quiet = 0;
            memset(&usage, 0, sizeof usage);
        }
        if (!leader && orphaned)
            _exit(0);
        if (!leader)
            killing = 0; /* It came when nobody was left. */
        struct timespec pause = {0, 2000000};
        if (killing) {
            /* Who is killed is gone in a moment, and then its children are ours. */
            int64_t now = now_ms();
            if (!since)
                since = now;
            if (now - since > PATIENCE_MS) {
                if (!said)
                    tell_survivors(), said = 1;
                pause.tv_nsec = 100000000;
            }
        }
        struct pollfd socket = {orphaned ? -1 : control, POLLIN, 0};
        if (ppoll(&socket, 1, killing ? &pause : NULL, &waiting) > 0)
            obey();
    }
}

/* ---- The nursery's life. */

static pid_t *wardens;
static int warden_count, warden_room;

static int is_warden(pid_t pid)
{
    for (int at = 0; at < warden_count; at++)
        if (wardens[at] == pid)
            return 1;
    return 0;
}

static int strays;
static int64_t sweep_until;

static void end_stray(pid_t pid)
{
    if (!is_warden(pid))
        kill(pid, SIGKILL), strays++;
}

/* Take note of wardens that have ended.  One that did not end by itself left its tree to us. */
static void bury(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (WIFSTOPPED(status)) {
            kill(pid, SIGCONT); /* A command can stop its warden, but not for long. */
            continue;
        }
        for (int at = 0; at < warden_count; at++)
            if (wardens[at] == pid) {
                wardens[at] = wardens[--warden_count];
                if (!WIFEXITED(status) || WEXITSTATUS(status))
                    sweep_until = now_ms() + SWEEP_MS;
                break;
            }
    }
    if (sweep_until) {
        strays = 0;
        children(end_stray);
        if (!strays || now_ms() > sweep_until)
            sweep_until = 0;
    }
}

static void admit(void)
{
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t got = recvmsg(SOCKET, &message, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return;
    if (got == 0)
        _exit(0);
    struct cmsghdr *extra = CMSG_FIRSTHDR(&message);
    if (!extra || extra->cmsg_type != SCM_RIGHTS)
        return;
    memcpy(&control, CMSG_DATA(extra), sizeof control);
    if (warden_count == warden_room) {
        int room = warden_room ? warden_room * 2 : 64;
        pid_t *more = realloc(wardens, room * sizeof *more);
        if (!more) {
            close(control);
            return;
        }
        wardens = more, warden_room = room;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(SOCKET);
        warden();
    }
    if (pid > 0)
        wardens[warden_count++] = pid;
    else {
        struct report report = {0};
        tell(&report, FAILED, errno, AT_FORK);
    }
    close(control);
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: nursery [FILES_SOFT FILES_HARD], with a socket as descriptor 3\n");
        return 2;
    }
    /* Before the limit falls, so that no number is above it. */
    if (syscall(SYS_close_range, SOCKET + 1, ~0U, 0) < 0)
        for (int fd = SOCKET + 1; fd < 65536; fd++)
            close(fd);
    if (argc == 3) {
        struct rlimit64 files = {strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10)};
        prlimit64(0, RLIMIT_NOFILE, &files, NULL);
    }
    fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
    setsid();
    prctl(PR_SET_NAME, "holdfast-nurse");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, notice = {.sa_handler = on_child};
    hear_everything();
    for (size_t at = 0; at < sizeof deaf / sizeof *deaf; at++)
        sigaction(deaf[at], &ignore, NULL);
    sigaction(SIGCHLD, &notice, NULL);
    sigset_t ending, waiting;
    sigemptyset(&waiting);
    sigemptyset(&ending);
    sigaddset(&ending, SIGCHLD);
    sigprocmask(SIG_SETMASK, &ending, NULL);
    if (send(SOCKET, "", 1, MSG_NOSIGNAL) != 1)
        return 1;
    for (;;) {
        struct pollfd socket = {SOCKET, POLLIN, 0};
        struct timespec pause = {0, 2000000};
        int ready = ppoll(&socket, 1, sweep_until ? &pause : NULL, &waiting);
        bury();
        if (ready > 0)
            admit();
    }
}
