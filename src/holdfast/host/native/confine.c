/* Confinement: seccomp, Landlock, capabilities and resource limits of a command. */

#define _GNU_SOURCE
#include "confine.h"
#include "init.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* Gives up all that root has and others have not, also for programs that are run later. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    for (int number = 0; number < 64; number++)
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0); /* Fails for those who have none to begin with. */
    prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) < 0 ? -1 : 0;
}

int set_limits(const struct limit *limits, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++) {
        /* C libraries disagree on the type; the kernel takes these 64 bits on every machine. */
        const uint64_t limit[2] = {limits[at].soft, limits[at].hard};
        if (syscall(SYS_prlimit64, 0, (int)limits[at].resource, limit, NULL) < 0)
            return -1;
    }
    return 0;
}

/* Installs a filter that hands calls over, and sends the descriptor on which they arrive to the shim. */
static int install_listener(const struct sock_fprog *program, int socket)
{
    /* Killable: a signal that the command handles must not make it repeat the call. */
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
    if (fd < 0 && errno == EINVAL)
        fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
    if (fd < 0)
        return -1;
    struct init_news news = {INIT_LISTENER, 0};
    int sent = send_descriptor(socket, &news, sizeof news, fd);
    close(fd);
    return sent;
}

int confine(const struct confinement *c)
{
    struct sock_fprog program = {c->filter_size / sizeof(struct sock_filter), (struct sock_filter *)c->filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    if (c->powerless && drop_capabilities() < 0)
        return -1;
    if (c->ruleset >= 0 && syscall(SYS_landlock_restrict_self, c->ruleset, 0) < 0)
        return -1;
    if (c->socket >= 0)
        return install_listener(&program, c->socket);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -1 : 0;
}

int probe(void)
{
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        return 1;
    struct confinement c = {&allow, sizeof allow, -1, ends[1], 0};
    return confine(&c) < 0;
}

/* ---- A Landlock domain inside of bubblewrap's mounts.
 *
 * A read-only mount keeps files and directories as they are.  To open a named pipe or
 * a device there changes no file, so the mount allows it; Landlock does not.  Only
 * what changes something is handled: what can be read is decided by the mounts. */

/* The headers of a kernel without Landlock do not have these.  The rights from REMOVE_DIR (4) to REFER (13) are about
 * names in directories, WRITE_FILE and TRUNCATE about files. */
enum {
    DOMAIN_OF_FILES = 1 << 1 | 1 << 14,
    DOMAIN_RIGHTS = DOMAIN_OF_FILES | ((1 << 14) - (1 << 4)),
    BENEATH_A_PATH = 1,
};
struct beneath {
    uint64_t rights;
    int32_t parent;
} __attribute__((packed));

static int domain_allow(int ruleset, const char *path)
{
    struct stat facts;
    /* What was made a mount is neither a link nor behind one. */
    int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0)
        return errno == ENOENT ? 0 : -1; /* There is nothing to allow. */
    struct beneath rule = {DOMAIN_RIGHTS, place};
    if (!fstat(place, &facts) && !S_ISDIR(facts.st_mode))
        rule.rights = DOMAIN_OF_FILES;
    int added = syscall(SYS_landlock_add_rule, ruleset, BENEATH_A_PATH, &rule, 0);
    close(place);
    return added;
}

int domain_of(const char *writable, uint32_t count)
{
    uint64_t handled = DOMAIN_RIGHTS;
    int ruleset = syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    if (ruleset < 0)
        return -1;
    int failed = domain_allow(ruleset, "/dev") || domain_allow(ruleset, "/proc");
    for (uint32_t at = 0; at < count && !failed; at++, writable += strlen(writable) + 1)
        failed = domain_allow(ruleset, writable);
    if (failed)
        close(ruleset);
    return failed ? -1 : ruleset;
}
