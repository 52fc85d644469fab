/* Puts a command into its sandbox: what happens between fork and execve.
 *
 * Under bubblewrap this is done by the first process inside, which is this same
 * program: it is handed in as a descriptor, since it need not be visible there.
 */

#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static int send_descriptor(int socket, const void *data, size_t size, int fd)
{
    char space[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {(void *)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *extra = CMSG_FIRSTHDR(&message);
    extra->cmsg_level = SOL_SOCKET, extra->cmsg_type = SCM_RIGHTS, extra->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(extra), &fd, sizeof fd);
    return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int take_descriptor(int socket, void *data, size_t size, ssize_t *got)
{
    char space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    int fd = -1;
    *got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *extra = *got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (extra && extra->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(extra), sizeof fd);
    return fd;
}

/* All that root has and others have not, also for programs that are run later. */
static int give_up_power(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    for (int number = 0; number < 64; number++)
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0); /* Fails for who has no power to begin with. */
    prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) < 0 ? -1 : 0;
}

int set_limits(const struct limit *limits, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++) {
        struct rlimit64 limit = {limits[at].soft, limits[at].hard};
        if (prlimit64(0, limits[at].resource, &limit, NULL) < 0)
            return -1;
    }
    return 0;
}

int confine(const struct confinement *c)
{
    struct sock_fprog program = {c->filter_size / sizeof(struct sock_filter), (struct sock_filter *)c->filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    if (c->powerless && give_up_power() < 0)
        return -1;
    if (c->ruleset >= 0 && syscall(SYS_landlock_restrict_self, c->ruleset, 0) < 0)
        return -1;
    if (c->socket < 0)
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -1 : 0;
    /* Killable: a signal that the command handles must not make it ask a second time. */
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
    if (fd < 0 && errno == EINVAL)
        fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (fd < 0)
        return -1;
    struct inner_news news = {INNER_LISTENER, 0};
    int sent = send_descriptor(c->socket, &news, sizeof news, fd);
    close(fd);
    return sent;
}

/* ---- Masks.
 *
 * A name that must not come into being is covered by a mount, and a mount needs
 * a place: an empty directory, which is taken away when nobody needs it.  Whoever
 * does holds a lock on it, so that it does not matter who they are and how they
 * end.  Its permissions tell it from a directory of somebody else's. */

static int is_mask(const struct stat *facts)
{
    return S_ISDIR(facts->st_mode) && (facts->st_mode & 07222) == 01000;
}

static int is_still(const char *path, int fd)
{
    struct stat ours, there;
    return !fstat(fd, &ours) && !lstat(path, &there) && is_mask(&there) && ours.st_dev == there.st_dev
           && ours.st_ino == there.st_ino;
}

int mask_take(const char *path)
{
    for (int tries = 0; tries < 100; tries++) {
        struct stat facts;
        if (mkdir(path, 01555) < 0 && errno != EEXIST)
            return -1;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            return -1;
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_SH) < 0 || fstat(fd, &facts) < 0 || !is_mask(&facts)) {
            close(fd); /* Somebody has put something there that stays. */
            return -1;
        }
        /* Whoever had it before us may have taken it away while we waited for the lock. */
        if (is_still(path, fd))
            return fd;
        close(fd);
    }
    return -1;
}

void mask_give(const char *path, int fd)
{
    if (fd < 0)
        return;
    if (is_still(path, fd) && !flock(fd, LOCK_EX | LOCK_NB))
        rmdir(path);
    close(fd);
}

/* ---- The first process inside. */

static volatile int failed_with, failed_as;

static __attribute__((noinline)) pid_t spawn(const struct load *load, const struct confinement *c, const char *program,
                                             char **argv, char **env)
{
    pid_t pid = vfork();
    if (pid == 0) {
        sigset_t none;
        hear_again();
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (set_limits((const struct limit *)(load + 1), load->limits) < 0)
            failed_as = INNER_NO_LIMIT, failed_with = errno;
        else if (confine(c) < 0)
            failed_as = INNER_FAILED, failed_with = errno;
        else {
            execve(program, argv, env);
            failed_with = errno;
            failed_as = errno == EACCES || errno == ENOENT ? INNER_HIDDEN : INNER_NO_PROGRAM;
        }
        _exit(127);
    }
    return pid;
}

static void say(uint32_t what, int32_t value)
{
    struct inner_news news = {what, value};
    send(INNER_SOCKET, &news, sizeof news, MSG_NOSIGNAL);
}

static char *next(char **at)
{
    char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

int inner(void)
{
    struct stat facts;
    /* Nobody inside may look into us or change us: there is no filter for what we do. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    fcntl(INNER_SOCKET, F_SETFD, FD_CLOEXEC);
    if (fstat(INNER_LOAD, &facts) < 0)
        return 3;
    char *base = mmap(NULL, facts.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, INNER_LOAD, 0);
    close(INNER_LOAD), close(INNER_PROGRAM), close(INNER_ARGS);
    if (base == MAP_FAILED)
        return 3;
    struct load *load = (struct load *)base;
    char *at = base + sizeof *load + load->limits * sizeof(struct limit);
    struct confinement c = {at, load->filter_size, -1, load->witness ? INNER_SOCKET : -1, 0};
    at += load->filter_size;
    char *cwd = next(&at);
    char *program = next(&at);
    char **argv = calloc((size_t)load->arguments + load->variables + 2, sizeof(char *));
    if (!argv)
        return 3;
    char **env = argv + load->arguments + 1;
    for (uint32_t i = 0; i < load->arguments; i++)
        argv[i] = next(&at);
    for (uint32_t i = 0; i < load->variables; i++)
        env[i] = next(&at);
    if (chdir(cwd) < 0) {
        say(INNER_NO_DIRECTORY, errno);
        return 3;
    }
    pid_t leader = spawn(load, &c, program, argv, env);
    if (leader < 0)
        failed_as = INNER_FAILED, failed_with = errno;
    if (failed_as) {
        say(failed_as, failed_with);
        return 3;
    }
    say(INNER_RUNS, 0);
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED) < 0) {
            if (errno == EINTR)
                continue;
            return 3;
        }
        if (info.si_pid == leader) {
            int killed = info.si_code != CLD_EXITED;
            say(killed ? INNER_KILLED : INNER_EXITED, info.si_status);
            return killed ? 128 + info.si_status : info.si_status;
        }
    }
}

/* ---- Whether there can be a witness. */

int probe(void)
{
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        return 1;
    struct confinement c = {&allow, sizeof allow, -1, ends[1], 0};
    return confine(&c) < 0;
}
