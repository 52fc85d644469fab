/* Commands in sandboxes that bubblewrap makes: what its init is given.
 *
 * Bubblewrap goes on ignoring signals, and so does the init: a signal to the group
 * is meant for the command.
 */

#define _GNU_SOURCE
#include "bubblewrap.h"
#include "init.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void put(int fd, const void *data, size_t size, struct failure *failure)
{
    while (size) {
        ssize_t wrote = write(fd, data, size);
        if (wrote <= 0)
            fail(failure, STAGE_SANDBOX);
        data = (const char *)data + wrote, size -= wrote;
    }
}

static void put_text(int fd, const char *text, struct failure *failure) { put(fd, text, strlen(text) + 1, failure); }

static uint32_t put_texts(int fd, char *const *texts, struct failure *failure)
{
    uint32_t count = 0;
    while (texts[count])
        put_text(fd, texts[count++], failure);
    return count;
}

/* The paths that may be written. */
static uint32_t put_writable(int fd, const struct program *p, struct failure *failure)
{
    const char *rule = p->rules;
    uint32_t count = 0;
    for (uint32_t at = 0; at < p->rule_count; at++, rule += strlen(rule) + 1)
        if (rule[0] == 'w')
            put_text(fd, rule + 1, failure), count++;
    return count;
}

/* A file that says what to start: see struct load. */
static int write_load(const struct program *p, const char *program, struct failure *failure)
{
    const struct confinement *c = &p->confinement;
    struct load load = {.limits = p->limit_count, .filter_size = c->filter_size, .witness = c->socket >= 0,
                        .domain = p->domain, .groups = p->group_count};
    int fd = memfd_create("holdfast-load", MFD_CLOEXEC);
    if (fd < 0)
        fail(failure, STAGE_SANDBOX);
    put(fd, &load, sizeof load, failure);
    put(fd, p->limits, p->limit_count * sizeof *p->limits, failure);
    put(fd, c->filter, c->filter_size, failure);
    put_text(fd, p->cwd, failure);
    put_text(fd, program, failure);
    load.writable = put_writable(fd, p, failure);
    load.arguments = put_texts(fd, p->argv, failure);
    load.variables = put_texts(fd, p->env, failure);
    if (pwrite(fd, &load, sizeof load, 0) != sizeof load)
        fail(failure, STAGE_SANDBOX);
    return fd;
}

/* The command enters its control groups when it is inside, where they cannot be seen: so they are handed in, open. */
static void hand_in_groups(const struct program *p, struct failure *failure)
{
    const char *group = p->groups;
    for (uint32_t at = 0; at < p->group_count; at++, group += strlen(group) + 1) {
        int fd = open_control_group(group, failure), number = INIT_GROUPS + (int)at;
        if ((fd != number ? dup2(fd, number) : fcntl(fd, F_SETFD, 0)) < 0)
            fail(failure, STAGE_GROUP);
        if (fd != number)
            close(fd);
    }
}

_Noreturn void run_bubblewrap(const struct program *p, const char *program, struct failure *failure)
{
    enum { HANDED = INIT_GROUPS - INIT_ARGUMENTS };
    char source[64];
    sigset_t none;
    int load = write_load(p, program, failure);
    /* Opened anew: others read the same arguments at the same time. */
    snprintf(source, sizeof source, "/proc/self/fd/%d", p->wrapper_arguments);
    int arguments = open(source, O_RDONLY | O_CLOEXEC);
    int itself = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int from[HANDED] = {arguments, itself, p->init_socket, load};
    /* Above all numbers that are to become others. */
    int above = INIT_GROUPS + (int)p->group_count;
    for (int at = 0; at < HANDED; at++)
        if (from[at] < 0 || (from[at] = fcntl(from[at], F_DUPFD_CLOEXEC, above)) < 0)
            fail(failure, STAGE_SANDBOX);
    hand_in_groups(p, failure);
    for (int at = 0; at < HANDED; at++)
        if (dup2(from[at], INIT_ARGUMENTS + at) < 0)
            fail(failure, STAGE_SANDBOX);
    char *argv[] = {"bwrap", "--args", "3", "--", "/proc/self/fd/4", "init", NULL};
    char *env[] = {NULL};
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(p->wrapper, argv, env);
    fail(failure, STAGE_SANDBOX);
}
