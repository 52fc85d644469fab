/* The system calls that a filter hands over, and what one of them is about.
 *
 * The filter in host/sandbox/filter.py has the other table: which calls it hands over.
 */

#define _GNU_SOURCE
#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>

static const struct call calls[] = {
    {SYS_openat, "open", OPENS, 0, 1, 0, 0, 2, 3, O_NOFOLLOW},
#ifdef SYS_openat2
    {SYS_openat2, "open", OPENS_BY_STRUCT, 0, 1, 0, 0, 2, -1, O_NOFOLLOW},
#endif
    {SYS_mkdirat, "mkdir", CREATES, 0, 1, 0, 0, -1, 2, -1},
    {SYS_mknodat, "mknod", CREATES, 0, 1, 0, 0, -1, 2, -1},
    {SYS_symlinkat, "symlink", CREATES, 1, 2, 0, 0, -1, -1, -1},
    {SYS_unlinkat, "unlink", REMOVES, 0, 1, 0, 0, 2, -1, -1},
    {SYS_linkat, "link", LINKS, 0, 1, 2, 3, 4, -1, -1},
#ifdef SYS_renameat
    {SYS_renameat, "rename", MOVES, 0, 1, 2, 3, -1, -1, -1},
#endif
    {SYS_renameat2, "rename", MOVES, 0, 1, 2, 3, 4, -1, -1},
    {SYS_truncate, "truncate", WRITES, -1, 0, 0, 0, -1, -1, 0},
    {SYS_fchmodat, "chmod", ATTRIBUTES, 0, 1, 0, 0, -1, -1, 0},
    {452, "chmod", ATTRIBUTES, 0, 1, 0, 0, 3, -1, AT_SYMLINK_NOFOLLOW}, /* fchmodat2 */
    {SYS_fchownat, "chown", ATTRIBUTES, 0, 1, 0, 0, 4, -1, AT_SYMLINK_NOFOLLOW},
    {SYS_utimensat, "utime", ATTRIBUTES, 0, 1, 0, 0, 3, -1, AT_SYMLINK_NOFOLLOW},
    {SYS_setxattr, "setxattr", ATTRIBUTES, -1, 0, 0, 0, -1, -1, 0},
    {SYS_lsetxattr, "setxattr", ATTRIBUTES, -1, 0, 0, 0, -1, -1, -1},
    {SYS_removexattr, "removexattr", ATTRIBUTES, -1, 0, 0, 0, -1, -1, 0},
    {SYS_lremovexattr, "removexattr", ATTRIBUTES, -1, 0, 0, 0, -1, -1, -1},
#ifdef SYS_open
    {SYS_open, "open", OPENS, -1, 0, 0, 0, 1, 2, O_NOFOLLOW},
    {SYS_creat, "open", CREATES_FILE, -1, 0, 0, 0, -1, 1, 0},
    {SYS_mkdir, "mkdir", CREATES, -1, 0, 0, 0, -1, 1, -1},
    {SYS_mknod, "mknod", CREATES, -1, 0, 0, 0, -1, 1, -1},
    {SYS_symlink, "symlink", CREATES, -1, 1, 0, 0, -1, -1, -1},
    {SYS_unlink, "unlink", REMOVES, -1, 0, 0, 0, -1, -1, -1},
    {SYS_rmdir, "rmdir", REMOVES, -1, 0, 0, 0, -1, -1, -1},
    {SYS_link, "link", LINKS, -1, 0, -1, 1, -1, -1, -1},
    {SYS_rename, "rename", MOVES, -1, 0, -1, 1, -1, -1, -1},
    {SYS_chmod, "chmod", ATTRIBUTES, -1, 0, 0, 0, -1, -1, 0},
    {SYS_chown, "chown", ATTRIBUTES, -1, 0, 0, 0, -1, -1, 0},
    {SYS_lchown, "chown", ATTRIBUTES, -1, 0, 0, 0, -1, -1, -1},
    {SYS_utime, "utime", ATTRIBUTES, -1, 0, 0, 0, -1, -1, 0},
    {SYS_utimes, "utime", ATTRIBUTES, -1, 0, 0, 0, -1, -1, 0},
    {SYS_futimesat, "utime", ATTRIBUTES, 0, 1, 0, 0, -1, -1, 0},
#endif
    {SYS_socket, "socket", REACHES, 0, 0, 0, 0, -1, -1, 0},
    {SYS_socketpair, "socketpair", REACHES, 0, 0, 0, 0, -1, -1, 0},
    {SYS_connect, "connect", ADDRESSES, 0, 1, 0, 0, -1, -1, 0},
    {SYS_bind, "bind", ADDRESSES, 0, 1, 0, 0, -1, -1, 0},
    {SYS_sendto, "sendto", ADDRESSES, 0, 4, 0, 0, -1, -1, 0},
    {SYS_listen, "listen", REACHES, 0, 0, 0, 0, -1, -1, 1},
    {SYS_accept4, "accept", REACHES, 0, 0, 0, 0, -1, -1, 1},
#ifdef SYS_accept
    {SYS_accept, "accept", REACHES, 0, 0, 0, 0, -1, -1, 1},
#endif
    {SYS_sendmmsg, "sendmmsg", REACHES, 0, 0, 0, 0, -1, -1, 1},
};

const struct call *call_find(int number)
{
    for (size_t at = 0; at < sizeof calls / sizeof *calls; at++)
        if (calls[at].number == number)
            return &calls[at];
    return NULL;
}

int call_opens(const struct call *call)
{
    return call->kind == OPENS || call->kind == OPENS_BY_STRUCT || call->kind == CREATES_FILE;
}

static uint64_t argument(const struct question *q, int which) { return q->asked->data.args[which]; }

/* One path of a call: where it leads. */
static void find_operand(struct question *q, int directory, int path, enum follow follow, struct place *place,
                         char *text)
{
    char given[PATH_MOST];
    int from = directory < 0 ? AT_FDCWD : (int)argument(q, directory);
    text[0] = 0;
    *place = (struct place){.found = NOWHERE, .error = EFAULT, .parent = -1, .object = -1};
    int error = caller_text(&q->caller, argument(q, path), given, sizeof given);
    if (error && error != EFAULT && error != ENAMETOOLONG)
        place->found = UNKNOWN; /* Its memory must not be read. */
    else if (error)
        place->error = error;
    else if (!given[0] && q->flags & AT_EMPTY_PATH && (q->call->kind == LINKS || q->call->kind == ATTRIBUTES))
        place_of_descriptor(&q->caller, from, place);
    else if (q->resolve & ~(uint64_t)WALK_NO_MAGIC)
        place_find_in(&q->caller, from, given, follow, q->resolve, place);
    else
        place_find(&q->caller, from, given, follow, place);
    q->unclear |= place->found == UNKNOWN;
    if (place->found > NOWHERE && place_text(place, text) < 0)
        text[0] = 0;
}

/* Reads how a file is to be opened; -1 if that makes no sense. */
static int read_opening(struct question *q)
{
    uint64_t how[3] = {0}; /* Flags, mode, and how to resolve the path. */
    if (q->call->kind == CREATES_FILE)
        q->flags = O_CREAT | O_WRONLY | O_TRUNC;
    if (q->call->kind != OPENS_BY_STRUCT)
        return 0;
    if (argument(q, 3) < sizeof how || caller_bytes(&q->caller, argument(q, 2), how, sizeof how) < 0)
        return -1;
    q->flags = how[0], q->mode = how[1], q->resolve = how[2];
    return 0;
}

static enum follow last_link(const struct question *q)
{
    if (call_opens(q->call))
        return (q->flags & O_NOFOLLOW || (q->flags & O_CREAT && q->flags & O_EXCL) ? OPEN : FOLLOW)
               | (q->flags & O_CREAT ? MAKES : 0);
    switch (q->call->kind) {
    case LINKS: return q->flags & AT_SYMLINK_FOLLOW ? FOLLOW : OPEN;
    case WRITES: return FOLLOW;
    case ATTRIBUTES: return q->call->no_follow >= 0 && !(q->flags & q->call->no_follow) ? FOLLOW : OPEN;
    }
    return NAME;
}

void question_ask(struct question *q, const struct call *call, const struct seccomp_notif *asked,
                  const struct caller *caller)
{
    *q = (struct question){.call = call, .asked = asked, .caller = *caller,
                           .one = {.parent = -1, .object = -1}, .other = {.parent = -1, .object = -1}};
    q->flags = call->flags < 0 ? 0 : argument(q, call->flags);
    q->mode = call->mode < 0 ? 0 : argument(q, call->mode);
    if (call_opens(call) && read_opening(q) < 0) {
        q->one = (struct place){.found = NOWHERE, .error = EINVAL, .parent = -1, .object = -1};
        return;
    }
    find_operand(q, call->directory, call->path, last_link(q), &q->one, q->path);
    if (call->kind == MOVES || call->kind == LINKS)
        find_operand(q, call->directory2, call->path2, NAME, &q->other, q->other_path);
}

void question_forget(struct question *q)
{
    place_release(&q->one);
    place_release(&q->other);
}
