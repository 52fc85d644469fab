/* The children of this process, as the kernel lists them. */

#define _GNU_SOURCE
#include "children.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What follows the name of a process in its `stat`: a space, its state, a space, its parent.  NULL without. */
static const char *after_name(const char *pid, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    read_beginning(path, text, room);
    const char *end = strrchr(text, ')');
    return end && strlen(end) > 4 ? end + 1 : NULL;
}

static int is_my_child(const char *pid)
{
    char text[512];
    const char *facts = after_name(pid, text, sizeof text);
    return facts && strtol(facts + 3, NULL, 10) == getpid();
}

char state_of(pid_t pid)
{
    char name[16], text[512];
    snprintf(name, sizeof name, "%d", (int)pid);
    const char *facts = after_name(name, text, sizeof text);
    return facts ? facts[1] : 0;
}

/* Calls `each` with the children that a list of the kernel has, from an open file. */
static int read_list(int fd, void (*each)(void *, pid_t), void *context)
{
    char text[4096];
    ssize_t got;
    pid_t pid = 0;
    while ((got = read(fd, text, sizeof text)) > 0)
        for (ssize_t at = 0; at < got; at++) {
            if (text[at] >= '0' && text[at] <= '9')
                pid = pid * 10 + (text[at] - '0');
            else if (pid)
                each(context, pid), pid = 0;
        }
    return got == 0;
}

/* Calls `each` with every process whose parent is this one, from an open /proc. */
static int search(int proc, void (*each)(void *, pid_t), void *context)
{
    /* What getdents64 gives: 16 bytes, the length of the entry, a type, the name. */
    enum { LENGTH_AT = 16, NAME_AT = 19 };
    char text[4096];
    long got;
    while ((got = syscall(SYS_getdents64, proc, text, sizeof text)) > 0)
        for (long at = 0; at < got;) {
            unsigned short length;
            memcpy(&length, text + at + LENGTH_AT, sizeof length);
            char *name = text + at + NAME_AT;
            if (name[0] >= '0' && name[0] <= '9' && is_my_child(name))
                each(context, atoi(name));
            at += length;
        }
    return got == 0;
}

int for_each_child(void (*each)(void *context, pid_t pid), void *context)
{
    int whole = 0, fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        whole = read_list(fd, each, context);
    else if ((fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0)
        whole = search(fd, each, context); /* A kernel without that list. */
    if (fd >= 0)
        close(fd);
    return whole;
}

int has_children(pid_t *dead)
{
    siginfo_t info = {0};
    int known = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    *dead = info.si_pid;
    return known || errno != ECHILD;
}
