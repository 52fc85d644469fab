/* Becoming another user, for good.
 *
 * All of it is done by system calls and not by the C library, whose functions change
 * every thread that they know of: here those are the threads of the shim.
 */

#define _GNU_SOURCE
#include "user.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of two system calls of a kind, the one with ids of 32 bits. */
#ifdef SYS_setgroups32
#define SET_GROUPS SYS_setgroups32
#define SET_GIDS SYS_setresgid32
#define SET_UIDS SYS_setresuid32
#else
#define SET_GROUPS SYS_setgroups
#define SET_GIDS SYS_setresgid
#define SET_UIDS SYS_setresuid
#endif

enum { STANDARD_FILES = 3, NOBODY_AT_ALL = -1 };

/* /dev/stdout and /dev/tty are opened by name, as files of whoever owns them.  Only what was made for this command is
 * given away: its pipes, and its terminal, which keeps its group.  /dev/null is everybody's. */
static int give_files(uid_t uid)
{
    for (int fd = 0; fd < STANDARD_FILES; fd++) {
        struct stat facts;
        if (fstat(fd, &facts) < 0)
            return -1;
        if ((S_ISFIFO(facts.st_mode) || isatty(fd)) && fchown(fd, uid, -1) < 0)
            return -1;
    }
    return 0;
}

/* A process may use all keys of the session that it was started in, whoever it is: so it gets a session of its own.
 * Where there are no keys, or a filter keeps us from them, it has no way to them either. */
static int leave_keys(void)
{
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS && errno != EPERM ? -1 : 0;
}

/* The kernel takes them from who is root no more, but not those for others to inherit, and not at all if it was told so
 * by whoever has started the server. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    return syscall(SYS_capset, &head, none) < 0 ? -1 : 0;
}

int user_become(const uint32_t *ids, uint32_t count)
{
    uid_t uid = ids[0];
    gid_t gid = ids[1];
    if (uid == (uid_t)NOBODY_AT_ALL || gid == (gid_t)NOBODY_AT_ALL) { /* The kernel takes them for "as it is". */
        errno = EINVAL;
        return -1;
    }
    if (give_files(uid) < 0 || leave_keys() < 0)
        return -1;
    if (syscall(SET_GROUPS, (long)count - USER_IDS_LEAST, ids + USER_IDS_LEAST) < 0)
        return -1;
    if (syscall(SET_GIDS, gid, gid, gid) < 0 || syscall(SET_UIDS, uid, uid, uid) < 0)
        return -1;
    return uid ? drop_capabilities() : 0;
}
