/* A process that made a system call which was handed over: what it calls its own. */

#define _GNU_SOURCE
#include "caller.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NO_SHORTCUT = -1, DEAD_SHORTCUT = -2 };

static int open_in_proc(pid_t who, const char *name, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)who, name);
    return open(path, O_PATH | O_CLOEXEC | flags);
}

static int open_descriptor(pid_t who, int number, int flags)
{
    char name[32];
    snprintf(name, sizeof name, "fd/%d", number);
    int fd = open_in_proc(who, name, flags);
    if (fd < 0 && errno == ENOENT)
        errno = EBADF;
    return fd;
}

int caller_directory(const struct caller *caller, int number)
{
    return number == AT_FDCWD ? open_in_proc(caller->thread, "cwd", O_DIRECTORY)
                              : open_descriptor(caller->thread, number, O_DIRECTORY);
}

int caller_descriptor(const struct caller *caller, int number) { return open_descriptor(caller->thread, number, 0); }

/* What follows `label` in the `status` of a thread; NULL if that cannot be read. */
static const char *status_of(pid_t thread, const char *label, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    read_beginning(path, text, room);
    const char *line = strstr(text, label);
    return line ? line + strlen(label) : NULL;
}

pid_t caller_process(const struct caller *caller)
{
    char text[1024];
    const char *number = status_of(caller->thread, "\nTgid:", text, sizeof text);
    return number ? atoi(number) : caller->thread;
}

mode_t caller_umask(const struct caller *caller)
{
    char text[1024];
    const char *number = status_of(caller->thread, "\nUmask:", text, sizeof text);
    return number ? strtoul(number, NULL, 8) & 0777 : 022;
}

dev_t caller_terminal(const struct caller *caller)
{
    char path[64], text[512];
    unsigned number = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)caller_process(caller));
    read_beginning(path, text, sizeof text);
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %*c %*d %*d %*d %u", &number) != 1)
        return 0;
    return makedev((number & 0xfff00) >> 8, (number & 0xff) | ((number >> 12) & 0xfff00));
}

/* ---- Its memory. */

static ssize_t copy(pid_t who, uint64_t address, void *bytes, size_t size)
{
    struct iovec ours = {bytes, size}, theirs = {(void *)(uintptr_t)address, size};
    return process_vm_readv(who, &ours, 1, &theirs, 1, 0);
}

int caller_bytes(const struct caller *caller, uint64_t address, void *bytes, size_t size)
{
    return copy(caller->thread, address, bytes, size) == (ssize_t)size ? 0 : -1;
}

int caller_text(const struct caller *caller, uint64_t address, char *text, size_t room)
{
    /* Not across the end of a page at once: what follows may not be there. */
    for (size_t got = 0; got < room;) {
        size_t size = 4096 - (address + got) % 4096;
        ssize_t count = copy(caller->thread, address + got, text + got, size < room - got ? size : room - got);
        if (count <= 0)
            return count < 0 ? errno : EFAULT;
        if (memchr(text + got, 0, count))
            return 0;
        got += count;
    }
    return ENAMETOOLONG;
}

/* ---- Paths through itself. */

static const char *after(const char *text, const char *beginning)
{
    size_t length = strlen(beginning);
    return strncmp(text, beginning, length) ? NULL : text + length;
}

/* The number that a text begins with; -1 if it is none, or goes on with something else than a slash. */
static int number_at(const char **text)
{
    char *end;
    if (**text < '0' || **text > '9')
        return -1;
    errno = 0;
    long number = strtol(*text, &end, 10);
    if (errno || number > INT_MAX || (*end && *end != '/'))
        return -1;
    *text = end;
    return number;
}

static int is_over(const char *text) { return text && (!*text || *text == '/'); }

int caller_shortcut(const struct caller *caller, const char **path)
{
    const char *rest;
    pid_t who = caller->thread;
    int fd = -1, number = -1;
    if ((rest = after(*path, "/dev/fd/"))) {
        if ((number = number_at(&rest)) < 0)
            return NO_SHORTCUT;
    } else if (!(rest = after(*path, "/proc/self/")) && !(rest = after(*path, "/proc/thread-self/")))
        return NO_SHORTCUT;
    if (!after(*path, "/proc/thread-self/"))
        who = caller_process(caller);
    const char *what = rest;
    if (number >= 0)
        fd = open_descriptor(who, number, 0);
    else if ((rest = after(what, "fd/")) && (number = number_at(&rest)) >= 0)
        fd = open_descriptor(who, number, 0);
    else if (is_over(rest = after(what, "cwd")))
        fd = open_in_proc(who, "cwd", 0);
    else if (is_over(rest = after(what, "root")))
        fd = fcntl(caller->root, F_DUPFD_CLOEXEC, 0);
    else
        return NO_SHORTCUT;
    *path = rest + strspn(rest, "/");
    return fd < 0 ? DEAD_SHORTCUT : fd;
}
