/* Making the child that becomes a command: what happens between fork and execve. */

#define _GNU_SOURCE
#include "spawn.h"
#include "bubblewrap.h"
#include "system.h"
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FOUND_MOST = 4096 + 256 };  /* Bytes of a path that was put together, with the NUL at its end. */

_Noreturn void fail(struct failure *failure, enum start_stage stage)
{
    failure->error = errno, failure->stage = stage;
    _exit(127);
}

/* ---- The program. */

static int is_executable(const char *path, const struct stat *facts)
{
    return S_ISREG(facts->st_mode) && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* Finds the file that `name` stands for, in `path` as seen from `cwd`.  0 and errno if there is none. */
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
            if (is_executable(found, &facts))
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

/* What is wrong with a program is reported before the sandbox hides it. */
static void check_program(const char *program, struct failure *failure)
{
    struct stat facts;
    if (stat(program, &facts) < 0)
        fail(failure, STAGE_PROGRAM);
    if (!is_executable(program, &facts)) {
        errno = EACCES;
        fail(failure, STAGE_PROGRAM);
    }
}

/* ---- Control groups. */

static void check_group(int fd, struct failure *failure)
{
    struct statfs facts;
    if (fstatfs(fd, &facts) < 0)
        fail(failure, STAGE_GROUP);
    if (facts.f_type != CGROUP2_SUPER_MAGIC && facts.f_type != CGROUP_SUPER_MAGIC) {
        errno = 0;
        fail(failure, STAGE_NO_GROUP);
    }
}

/* An order names a path, and what is written there goes to whatever is found: so only what lies in a file system of
 * control groups is ever opened.  The directory is looked at first, because to open some files is to change something,
 * and then the file, because something may have been mounted over it. */
int open_control_group(const char *path, struct failure *failure)
{
    int directory = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        fail(failure, STAGE_GROUP);
    check_group(directory, failure);
    int file = openat(directory, "cgroup.procs", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        fail(failure, STAGE_GROUP);
    close(directory);
    check_group(file, failure);
    return file;
}

static void enter_groups(const struct program *p, struct failure *failure)
{
    const char *group = p->groups;
    for (uint32_t at = 0; at < p->group_count; at++, group += strlen(group) + 1) {
        int fd = open_control_group(group, failure);
        if (write(fd, "0", 1) != 1)
            fail(failure, STAGE_GROUP);
        close(fd);
    }
}

/* ---- The child. */

static void limit(const struct program *p, struct failure *failure)
{
    if (set_limits(p->limits, p->limit_count) < 0)
        fail(failure, STAGE_LIMIT);
}

/* Becomes the user of the program.  From here on all is done by that user's rights: it enters the directory, looks for
 * the program and runs it.  Limits come before: some of them only root may raise again. */
static void change_user(const struct program *p, struct failure *failure)
{
    limit(p, failure);
    if (user_become(p->user, p->user_ids) < 0)
        fail(failure, STAGE_USER);
}

/* In the child, which shares our memory until the program runs. */
static _Noreturn void become(const struct program *p, struct failure *failure)
{
    static char found[FOUND_MOST];
    sigset_t none;
    setsid();
    if (!p->wrapper)
        enter_groups(p, failure);
    for (int at = 0; at < STANDARD_FILES; at++)
        if (dup2(p->files[at], at) < 0)
            fail(failure, STAGE_FORK);
    if (p->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        fail(failure, STAGE_TERMINAL);
    if (p->user_ids)
        change_user(p, failure);
    if (chdir(p->cwd) < 0)
        fail(failure, STAGE_DIRECTORY);
    const char *program = p->name;
    if (p->path) {
        if (!look_up(found, sizeof found, p->name, p->path, p->cwd))
            fail(failure, STAGE_SEARCH);
        program = found;
    }
    if (p->confined)
        check_program(program, failure);
    if (p->wrapper)
        run_bubblewrap(p, program, failure);
    restore_signals();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (p->confined && confine(&p->confinement) < 0)
        fail(failure, STAGE_SANDBOX);
    /* Last: they are about the command, and not about the descriptors that its sandbox takes to be made. */
    if (!p->user_ids)
        limit(p, failure);
    execve(program, p->argv, p->env);
    fail(failure, p->confined && (errno == EACCES || errno == ENOENT) ? STAGE_HIDDEN : STAGE_PROGRAM);
}

/* On its own, because a child that shares our memory must not spoil anybody's variables. */
static __attribute__((noinline)) pid_t make_child(const struct program *program, struct failure *failure)
{
    pid_t pid = vfork();
    if (pid == 0)
        become(program, failure);
    return pid;
}

/* While a child of another user shares our memory, the kernel keeps it from everybody of that user.  It does so by a
 * mark of the memory, which is ours alone again afterwards. */
pid_t spawn(const struct program *program, struct failure *failure)
{
    int dumpable = program->user_ids ? prctl(PR_GET_DUMPABLE) : 0;
    pid_t pid = make_child(program, failure);
    int error = errno;
    if (dumpable)
        prctl(PR_SET_DUMPABLE, dumpable);
    errno = error;
    return pid;
}
