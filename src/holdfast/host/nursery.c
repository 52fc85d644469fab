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
#include "native.h"

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
    POST_TRIES = 1000,     /* How often it is tried to tell something, and the pause between. */
    POST_PAUSE_US = 5000,
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
    uint32_t filter;       /* Bytes of a filter for system calls. */
    uint32_t masks;        /* Directories that are there for the sandbox only. */
    uint32_t rules;        /* Of the sandbox, for the witness. */
};
enum { START = 1, RELEASE = 2, KILL = 3 };
enum { TERMINAL = 1, SEARCH = 2, IN_FILE = 4, HAS_STDIN = 8, QUIETLY = 16 };
/* CONFINED: there is a filter.  RULESET, WRAPPED: a descriptor follows the standard files, of a Landlock
 * ruleset or with the arguments of bubblewrap.  WITNESS, GUARD: the filter tells us, and we may refuse. */
enum { CONFINED = 32, RULESET = 64, WRAPPED = 128, WITNESS = 256, GUARD = 512, POWERLESS = 1024 };

/* What a warden tells. */
struct report {
    uint32_t what;
    int32_t value;         /* A pid, an error number, an exit code, a count; what follows DENIAL are texts. */
    uint32_t detail;       /* The stage that failed; with EXITED: BY_SIGNAL, ALONE. */
    uint32_t warden;       /* Our own pid, with STARTED. */
    uint64_t user_us, system_us, peak_kib;
};
enum { STARTED = 1, FAILED = 2, EXITED = 3, EMPTY = 4, SURVIVORS = 5, DENIAL = 7 };
enum { BY_SIGNAL = 1, ALONE = 2 };
enum { AT_FORK = 1, AT_TERMINAL = 2, AT_DIRECTORY = 3, AT_SEARCH = 4, AT_PROGRAM = 5, AT_LIMIT = 6, AT_GROUP = 7 };
/* The sandbox could not be made; it could, but the program is not to be seen in it. */
enum { AT_SANDBOX = 8, AT_HIDDEN = 9 };

static int control;
static pid_t leader;
static int told, released, quiet, killing, orphaned, warding;
static struct report usage;

const int deaf[10] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU};

void hear_again(void)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    for (size_t at = 0; at < sizeof deaf / sizeof *deaf; at++)
        sigaction(deaf[at], &by_default, NULL);
}

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

/* Call `each` with every child.  The kernel's list may miss some while others end: ask again.
 * Say whether that can be known now: nobody to be seen is not nobody. */
static int children(void (*each)(pid_t))
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
        return got == 0;
    }
    /* A kernel without that list. */
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got = -1;
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
    return got == 0;
}

static void add(struct report *sum, const struct rusage *used)
{
    sum->user_us += (uint64_t)used->ru_utime.tv_sec * 1000000 + used->ru_utime.tv_usec;
    sum->system_us += (uint64_t)used->ru_stime.tv_sec * 1000000 + used->ru_stime.tv_usec;
    if ((uint64_t)used->ru_maxrss > sum->peak_kib)
        sum->peak_kib = used->ru_maxrss;
}

/* Whether the other side is gone; any other error is of this moment, for want of memory say. */
static int is_gone(void) { return errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN || errno == EBADF; }

/* News that nobody hears of would be waited for without end: try again, and if that does not help, end.
 * Then it is seen that something is wrong, and the nursery ends the tree. */
static void post(struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    for (int tries = 0; !orphaned && sendmsg(control, &message, MSG_NOSIGNAL) < 0 && !is_gone(); tries++) {
        if (tries == POST_TRIES && warding)
            _exit(3);
        if (tries == POST_TRIES)
            return;
        usleep(POST_PAUSE_US);
    }
}

static void tell(struct report *report, uint32_t what, int32_t value, uint32_t detail)
{
    report->what = what, report->value = value, report->detail = detail;
    post(&(struct iovec){report, sizeof *report}, 1);
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

/* ---- The sandbox of a command. */

static int inside = -1;            /* Our end of the socket of the first process inside. */
static int starting;               /* Bubblewrap runs, and whether the command does is not known yet. */
static struct inner_news last_word;
static int seeing, guards;         /* Whether the witness is at work; whether it also refuses. */
static char *masks, *rules;
static uint32_t mask_count, rule_count;
static int *mask_files;

static void tell_denials(void)
{
    for (int at = 0; at < denial_count + !!denials_dropped; at++) {
        static struct denial others = {.op = "", .subject = ""};
        struct denial *one = at < denial_count ? &denials[at] : &others;
        struct report report = {.what = DENIAL, .value = at < denial_count ? (int)one->count : denials_dropped};
        struct iovec parts[] = {{&report, sizeof report}, {one->op, strlen(one->op) + 1}, {one->subject, strlen(one->subject)}};
        post(parts, 3);
    }
}

static void give_masks(void)
{
    char *mask = masks;
    for (uint32_t i = 0; i < mask_count; i++, mask += strlen(mask) + 1)
        mask_give(mask, mask_files[i]);
    free(masks), free(mask_files);
    masks = NULL, mask_files = NULL, mask_count = 0;
}

/* Nobody is left who was in it. */
static void end_sandbox(void)
{
    give_masks();
    free(rules);
    rules = NULL, rule_count = 0;
    if (inside >= 0)
        close(inside);
    witness_end();
    inside = -1, starting = seeing = guards = 0;
    memset(&last_word, 0, sizeof last_word);
}

static void watch_sandbox(int listener)
{
    witness_begin(listener, rules ? rules : "", rule_count, guards);
    seeing = 1;
}

/* News from the first process inside; 0 if there is none. */
static int listen_inside(void)
{
    struct inner_news news;
    ssize_t got;
    int listener = take_descriptor(inside, &news, sizeof news, &got);
    if (got != sizeof news) {
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            close(inside), inside = -1;
        return 0;
    }
    if (news.what == INNER_LISTENER)
        watch_sandbox(listener);
    else
        last_word = news;
    if (news.what == INNER_RUNS && starting) {
        struct report report = {.warden = getpid()};
        starting = 0;
        tell(&report, STARTED, leader, 0);
    }
    return 1;
}

/* Where the start failed, by the last word from inside. */
static int failed_stage(void)
{
    switch (last_word.what) {
    case INNER_HIDDEN: return AT_HIDDEN;
    case INNER_NO_DIRECTORY: return AT_DIRECTORY;
    case INNER_NO_LIMIT: return AT_LIMIT;
    case INNER_NO_PROGRAM: return AT_PROGRAM;
    }
    return AT_SANDBOX;
}

static void tell_exit(const siginfo_t *info, const struct rusage *used)
{
    struct report report = usage;
    int value = info->si_status, by_signal = info->si_code == CLD_EXITED ? 0 : BY_SIGNAL;
    while (inside >= 0 && listen_inside())
        ;
    if (starting) {
        /* There is no command: bubblewrap has said why, or the first process inside. */
        starting = 0;
        int stage = failed_stage();
        value = last_word.value;
        end_sandbox();
        tell(&report, FAILED, value, stage);
        _exit(0);
    }
    if (last_word.what == INNER_EXITED || last_word.what == INNER_KILLED)
        value = last_word.value, by_signal = last_word.what == INNER_KILLED ? BY_SIGNAL : 0;
    if (seeing)
        tell_denials();
    add(&report, used);
    told = 1, others = 0;
    if (!children(count_other))
        others = 1;
    if (!others)
        give_masks(); /* Whoever hears of the exit finds everything as it was. */
    tell(&report, EXITED, value, by_signal | (others ? 0 : ALONE));
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
        if (syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT, &used) < 0) {
            if (errno == ECHILD)
                return 0;
            continue;
        }
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
    if (is_held(pid))
        return;
    if (syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, &used) < 0) {
        alive |= errno != ECHILD;
        return;
    }
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
        if (!children(end_one))
            alive = 1;
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
    post(parts, 2);
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
    int confined;
    struct confinement confinement;
    const char *wrapper;           /* Bubblewrap, and what it is handed beside the standard files. */
    int handed[INNER_LOAD - INNER_ARGS + 1];
};

static volatile int failed_at, failed_with;

static void fail(int stage)
{
    failed_with = errno, failed_at = stage;
    _exit(127);
}

/* What is wrong with a program is said before the sandbox hides it. */
static void check_program(const char *program)
{
    struct stat facts;
    if (stat(program, &facts) < 0)
        fail(AT_PROGRAM);
    if (!S_ISREG(facts.st_mode) || faccessat(AT_FDCWD, program, X_OK, AT_EACCESS) < 0) {
        errno = EACCES;
        fail(AT_PROGRAM);
    }
}

static void put(int fd, const void *data, size_t size)
{
    while (size) {
        ssize_t wrote = write(fd, data, size);
        if (wrote <= 0)
            fail(AT_SANDBOX);
        data = (const char *)data + wrote, size -= wrote;
    }
}

/* Run bubblewrap, and in it this program, and in that the command.
 *
 * Bubblewrap stays deaf, and so does the first process inside: who sends a signal
 * to the group means the command. */
static void wrap(const struct program *p, const char *program)
{
    const struct confinement *c = &p->confinement;
    struct load load = {p->limit_count, c->filter_size, c->socket >= 0, 0, 0, 0};
    char source[64];
    sigset_t none;
    check_program(program);
    while (p->argv[load.arguments])
        load.arguments++;
    while (p->env[load.variables])
        load.variables++;
    int fd = memfd_create("holdfast-load", MFD_CLOEXEC);
    if (fd < 0)
        fail(AT_SANDBOX);
    put(fd, &load, sizeof load);
    put(fd, p->limits, p->limit_count * sizeof *p->limits);
    put(fd, c->filter, c->filter_size);
    put(fd, p->cwd, strlen(p->cwd) + 1);
    put(fd, program, strlen(program) + 1);
    for (uint32_t i = 0; i < load.arguments; i++)
        put(fd, p->argv[i], strlen(p->argv[i]) + 1);
    for (uint32_t i = 0; i < load.variables; i++)
        put(fd, p->env[i], strlen(p->env[i]) + 1);
    /* Opened anew: others read the same arguments at the same time. */
    snprintf(source, sizeof source, "/proc/self/fd/%d", p->handed[0]);
    int arguments = open(source, O_RDONLY | O_CLOEXEC);
    int itself = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int from[] = {arguments, itself, p->handed[INNER_SOCKET - INNER_ARGS], fd};
    for (int at = 0; at <= INNER_LOAD - INNER_ARGS; at++)
        if (from[at] < 0 || (from[at] = fcntl(from[at], F_DUPFD_CLOEXEC, INNER_LOAD + 1)) < 0)
            fail(AT_SANDBOX);
    for (int at = 0; at <= INNER_LOAD - INNER_ARGS; at++)
        if (dup2(from[at], INNER_ARGS + at) < 0)
            fail(AT_SANDBOX);
    char *argv[] = {"bwrap", "--args", "3", "--", "/proc/self/fd/4", "inner", NULL};
    char *env[] = {NULL};
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(p->wrapper, argv, env);
    fail(AT_SANDBOX);
}

/* In the child, which shares our memory until the program runs. */
static void become(const struct program *p)
{
    static char found[4096 + 256];
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
    sigemptyset(&none);
    if (p->wrapper)
        wrap(p, program);
    if (set_limits(p->limits, p->limit_count) < 0)
        fail(AT_LIMIT);
    hear_again();
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (p->confined) {
        check_program(program);
        if (confine(&p->confinement) < 0)
            fail(AT_SANDBOX);
    }
    execve(program, p->argv, p->env);
    fail(p->confined && (errno == EACCES || errno == ENOENT) ? AT_HIDDEN : AT_PROGRAM);
}

/* On its own, because a child that shares our memory must not spoil anybody's variables. */
static __attribute__((noinline)) pid_t spawn(const struct program *p)
{
    pid_t pid = vfork();
    if (pid == 0)
        become(p);
    return pid;
}

static void remember(char **texts, uint32_t *count, uint32_t number, char **at, const char *end)
{
    char *first = *at;
    for (uint32_t i = 0; i < number; i++)
        next_text(at, end);
    *texts = malloc(*at - first + 1);
    if (!*texts)
        _exit(3);
    memcpy(*texts, first, *at - first);
    *count = number;
}

static void take_masks(void)
{
    char *mask = masks;
    mask_files = calloc(mask_count + 1, sizeof *mask_files);
    if (!mask_files)
        _exit(3);
    for (uint32_t i = 0; i < mask_count; i++, mask += strlen(mask) + 1)
        mask_files[i] = mask_take(mask);
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
    if (order->limits > order->size / sizeof(struct limit) || order->filter > order->size
        || order->limits * sizeof(struct limit) + order->filter > order->size)
        _exit(3);
    const char *end = body + order->size;
    char *at = body + order->limits * sizeof(struct limit) + order->filter;
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
    int ends[2] = {-1, -1}, ruleset = -1;
    if (order->flags & (RULESET | WRAPPED)) {
        if (file_count < 1)
            _exit(3);
        ruleset = files[--file_count];
    }
    if (order->flags & CONFINED) {
        p.confined = 1;
        p.confinement = (struct confinement){(struct limit *)body + order->limits, order->filter, -1, -1, !!(order->flags & POWERLESS)};
        if (order->flags & RULESET)
            p.confinement.ruleset = ruleset;
        if (order->flags & WRAPPED)
            p.wrapper = next_text(&at, end);
        remember(&masks, &mask_count, order->masks, &at, end);
        remember(&rules, &rule_count, order->rules, &at, end);
        take_masks();
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
            _exit(3);
        p.handed[0] = ruleset, p.handed[INNER_SOCKET - INNER_ARGS] = ends[1];
        if (order->flags & WITNESS)
            p.confinement.socket = ends[1];
        guards = !!(order->flags & GUARD);
    }
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
        if (!(order->flags & HAS_STDIN) && nothing < 0) {
            int reason = errno;
            end_sandbox();
            tell(&report, FAILED, reason, AT_FORK);
            _exit(0);
        }
        for (int i = 0; i < STANDARD_FILES; i++)
            p.files[i] = i == 0 && !(order->flags & HAS_STDIN) ? nothing : given < file_count ? files[given++] : -1;
    }
    failed_at = 0;
    leader = spawn(&p);
    if (leader < 0)
        failed_at = AT_FORK, failed_with = errno;
    for (int i = 0; i < file_count; i++)
        close(files[i]);
    if (ruleset >= 0)
        close(ruleset);
    if (nothing >= 0)
        close(nothing);
    if (ends[1] >= 0)
        close(ends[1]);
    inside = ends[0];
    free(p.argv);
    if (mapped)
        munmap(mapped, order->size);
    if (failed_at) {
        if (leader > 0)
            waitpid(leader, NULL, 0);
        leader = 0;
        end_sandbox();
        tell(&report, FAILED, failed_with, failed_at);
        _exit(0);
    }
    if (p.wrapper) {
        starting = 1; /* What it starts is told from inside. */
        return;
    }
    if (inside >= 0) {
        listen_inside();
        close(inside), inside = -1;
    }
    report.warden = getpid();
    tell(&report, STARTED, leader, 0);
}

/* ---- A warden's life. */

static void obey(void)
{
    static char buffer[sizeof(struct order) + INLINE_MOST] __attribute__((aligned(8)));
    char space[CMSG_SPACE(sizeof(int) * (STANDARD_FILES + 2))];
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t got = recvmsg(control, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && !is_gone())
        return; /* It is still there when we ask again. */
    if (got <= 0) {
        orphaned = released = killing = 1;
        return;
    }
    struct order *order = (struct order *)buffer;
    if ((size_t)got < sizeof *order)
        _exit(3);
    int files[STANDARD_FILES + 2], count = 0;
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
    warding = 1;
    setsid();
    prctl(PR_SET_NAME, "holdfast-warden");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigprocmask(SIG_SETMASK, NULL, &waiting);
    sigdelset(&waiting, SIGCHLD);
    for (;;) {
        if (leader && !(killing ? end_all() : reap())) {
            if (rules || seeing || inside >= 0)
                end_sandbox();
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
        struct pollfd heard[] = {
            {orphaned ? -1 : control, POLLIN, 0}, {inside, POLLIN, 0}, {witness_descriptor(), POLLIN, 0}};
        if (ppoll(heard, 3, killing ? &pause : NULL, &waiting) <= 0)
            continue;
        if (heard[1].revents && inside >= 0)
            listen_inside();
        if (heard[2].revents)
            witness_answer();
        if (heard[0].revents)
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
        if (!children(end_stray))
            strays = 1;
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
    if (argc == 2 && !strcmp(argv[1], "inner"))
        return inner();
    if (argc == 2 && !strcmp(argv[1], "probe"))
        return probe();
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
