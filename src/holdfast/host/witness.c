/* The witness: sees the calls that the sandbox may refuse, and keeps account of those it does refuse.
 *
 * The filter of a sandboxed command hands calls that change files, and all calls
 * that reach for the network, to its warden, which reads what they are about from
 * the caller's memory.  Network is refused here.  Of files the kernel is the judge
 * and goes on with the call; the witness only says what the verdict is going to be:
 * the rules do not allow it, and without a sandbox it would have worked.
 *
 * It is not a wall: between our look and the kernel's the caller can put another
 * path in the same place.  Where the kernel cannot keep a rule, the witness guards
 * it: refuses by itself, as well as one can who may be raced against.
 */

#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATH_MOST = 4096, LINKS_MOST = 40, ANOTHER_ROOT = 0x10 /* RESOLVE_IN_ROOT */ };

struct denial denials[DENIALS_MOST];
int denial_count, denials_dropped;

static int listener = -1, guarding;
static char *rules;
static uint32_t rule_count;
static struct seccomp_notif *asked;
static struct seccomp_notif_resp *reply;
static size_t asked_size, reply_size;

void witness_begin(int fd, const char *texts, uint32_t count, int guards)
{
    struct seccomp_notif_sizes sizes = {0};
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += strlen(texts + size) + 1;
    if (!asked) {
        syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
        /* The kernel's own structures may be larger than those we were compiled with. */
        asked_size = sizes.seccomp_notif > sizeof *asked ? sizes.seccomp_notif : sizeof *asked;
        reply_size = sizes.seccomp_notif_resp > sizeof *reply ? sizes.seccomp_notif_resp : sizeof *reply;
        asked = malloc(asked_size), reply = malloc(reply_size);
    }
    rules = malloc(size + 1);
    if (!asked || !reply || !rules)
        _exit(3);
    memcpy(rules, texts, size);
    rule_count = count, listener = fd, guarding = guards;
    denial_count = denials_dropped = 0;
}

void witness_end(void)
{
    if (listener >= 0)
        close(listener);
    free(rules);
    listener = -1, rules = NULL, rule_count = 0, denial_count = denials_dropped = 0;
}

static void note(const char *op, const char *subject)
{
    for (int at = 0; at < denial_count; at++)
        if (!strcmp(denials[at].op, op) && !strncmp(denials[at].subject, subject, SUBJECT_LENGTH - 1)) {
            denials[at].count++;
            return;
        }
    if (denial_count == DENIALS_MOST) {
        denials_dropped++;
        return;
    }
    struct denial *one = &denials[denial_count++];
    one->count = 1;
    snprintf(one->op, sizeof one->op, "%s", op);
    snprintf(one->subject, sizeof one->subject, "%s", subject);
}

/* ---- What the rules say. */

static int is_below(const char *path, const char *top)
{
    size_t length = strlen(top);
    if (length == 1)
        return 1;
    return !strncmp(path, top, length) && (!path[length] || path[length] == '/');
}

static int is_writable(const char *path)
{
    const char *rule = rules;
    size_t longest = 0;
    int writable = 0;
    for (uint32_t i = 0; i < rule_count; i++, rule += strlen(rule) + 1) {
        size_t length = strlen(rule + 1);
        if (length >= longest && is_below(path, rule + 1))
            longest = length, writable = rule[0] == 'w';
    }
    return writable;
}

/* Whether the kernel would let it pass, which knows of no exceptions below what is writable. */
static int is_in_our_hands(const char *path)
{
    const char *rule = rules;
    for (uint32_t i = 0; i < rule_count; i++, rule += strlen(rule) + 1)
        if (rule[0] == 'w' && is_below(path, rule + 1))
            return 1;
    return 0;
}

/* Whether something below must stay as it is, so that what is above it cannot be moved away. */
static int holds_protected(const char *path)
{
    const char *rule = rules;
    for (uint32_t i = 0; i < rule_count; i++, rule += strlen(rule) + 1)
        if (rule[0] != 'w' && strcmp(rule + 1, path) && is_below(rule + 1, path))
            return 1;
    return 0;
}

/* ---- What a call is about. */

enum found { UNKNOWN, NOWHERE, MISSING, PRESENT };
/* UNKNOWN: we cannot tell, though the kernel may.  NOWHERE: not even its directory is there, or it is no file.
 * MISSING: the directory is, the file is not. */

static int read_text(pid_t pid, uint64_t address, char *text, size_t room)
{
    /* Not across the end of a page at once: what follows may not be there. */
    for (size_t got = 0; got < room;) {
        size_t size = 4096 - (address + got) % 4096;
        struct iovec ours = {text + got, size < room - got ? size : room - got};
        struct iovec theirs = {(void *)(uintptr_t)(address + got), ours.iov_len};
        ssize_t count = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
        if (count <= 0)
            return -1;
        if (memchr(text + got, 0, count))
            return 0;
        got += count;
    }
    return -1;
}

static int link_text(const char *path, char *text)
{
    ssize_t got = readlink(path, text, PATH_MOST - 1);
    if (got < 0)
        return -1;
    text[got] = 0;
    return 0;
}

/* What the caller means by its root, its working directory or a descriptor; empty stands for our root. */
static int place(pid_t pid, const char *which, int number, char *out)
{
    char name[64];
    if (number >= 0)
        snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)pid, number);
    else
        snprintf(name, sizeof name, "/proc/%d/%s", (int)pid, which);
    if (link_text(name, out) < 0 || out[0] != '/')
        return -1;
    if (!out[1])
        out[0] = 0;
    return 0;
}

/* Where the caller's path leads: the same walk as the kernel's, with the caller's own root and /proc/self. */
static enum found resolve(pid_t pid, int directory, const char *path, int follow, char *out)
{
    char rest[2 * PATH_MOST], text[PATH_MOST], root[PATH_MOST];
    struct stat facts;
    int links = 0;
    if (place(pid, "root", -1, root) < 0)
        return UNKNOWN;
    if (path[0] == '/')
        strcpy(out, root);
    else if (place(pid, "cwd", directory == AT_FDCWD ? -1 : directory, out) < 0)
        return UNKNOWN;
    snprintf(rest, sizeof rest, "%s", path);
    for (char *at = rest; *at;) {
        size_t length = strcspn(at, "/");
        if (!length || (length == 1 && *at == '.')) {
            at += length + !!at[length];
            continue;
        }
        if (length == 2 && !strncmp(at, "..", 2)) {
            char *slash = strcmp(out, root) ? strrchr(out, '/') : NULL;
            if (slash)
                *slash = 0;
            at += 2 + !!at[2];
            continue;
        }
        if (length > 255 || strlen(out) + length + 2 > PATH_MOST)
            return UNKNOWN;
        size_t before = strlen(out);
        out[before] = '/';
        memcpy(out + before + 1, at, length);
        out[before + 1 + length] = 0;
        at += length;
        int last = !at[strspn(at, "/")];
        if (!strcmp(out, "/proc/self") || !strcmp(out, "/proc/thread-self")) {
            snprintf(out, PATH_MOST, "/proc/%d", (int)pid);
            continue;
        }
        if (lstat(out, &facts) < 0)
            /* Where we may not look the caller, who may do less, does not get. */
            return errno == ENOENT && last ? MISSING
                   : errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ? NOWHERE : UNKNOWN;
        if (!S_ISLNK(facts.st_mode) || (last && !follow && !*at))
            continue;
        if (++links > LINKS_MOST)
            return NOWHERE;
        if (link_text(out, text) < 0)
            return UNKNOWN;
        if (text[0] != '/' && !strncmp(out, "/proc/", 6))
            return NOWHERE; /* A pipe or a socket. */
        size_t length_of_link = strlen(text), left = strlen(at) + 1;
        if (length_of_link + left > sizeof rest)
            return UNKNOWN;
        memmove(rest + length_of_link, at, left);
        memcpy(rest, text, length_of_link);
        at = rest;
        if (text[0] == '/')
            /* Those of /proc say where something is, not how the caller gets there. */
            strcpy(out, strncmp(out, "/proc/", 6) ? root : "");
        else
            out[before] = 0;
    }
    if (!out[0])
        strcpy(out, "/");
    return lstat(out, &facts) < 0 ? MISSING : PRESENT;
}

/* What covers a name that is not there; NULL if nothing does. */
static const char *cover(const char *path)
{
    const char *rule = rules;
    for (uint32_t i = 0; i < rule_count; i++, rule += strlen(rule) + 1)
        if (rule[0] == 'm' && is_below(path, rule + 1))
            return rule + 1;
    return NULL;
}

static void directory_of(const char *path, char *above)
{
    strcpy(above, path);
    char *slash = strrchr(above, '/');
    if (slash)
        slash[slash == above] = 0;
}

static int may_change_directory_of(const char *path)
{
    char above[PATH_MOST];
    /* Without the sandbox there would be no cover, and the caller could put something in its place. */
    directory_of(cover(path) ? cover(path) : path, above);
    return !faccessat(AT_FDCWD, above, W_OK | X_OK, AT_EACCESS);
}

/* Whether the rules let a name come, go or change its place; that is a change of its directory, too. */
static int is_movable(const char *path)
{
    char above[PATH_MOST];
    directory_of(path, above);
    return is_writable(path) && is_writable(above) && !holds_protected(path);
}

static int is_ours(const char *path)
{
    struct stat facts;
    return !lstat(path, &facts) && (geteuid() == 0 || facts.st_uid == geteuid());
}

/* ---- The calls. */

enum { CREATES, REMOVES, MOVES, LINKS, WRITES, ATTRIBUTES, OPENS, OPENS_BY_STRUCT, CREATES_FILE, REACHES, ADDRESSES };

static const struct call {
    int number;
    const char *op;
    signed char kind;
    signed char directory, path;     /* Which arguments; -1 for the working directory. */
    signed char directory2, path2;
    signed char flags;               /* Which argument; -1 without. */
    int no_follow;                   /* The flag that keeps the last link from being followed; -1: always. */
} calls[] = {
    {SYS_openat, "open", OPENS, 0, 1, 0, 0, 2, O_NOFOLLOW},
#ifdef SYS_openat2
    {SYS_openat2, "open", OPENS_BY_STRUCT, 0, 1, 0, 0, 2, O_NOFOLLOW},
#endif
    {SYS_mkdirat, "mkdir", CREATES, 0, 1, 0, 0, -1, -1},
    {SYS_mknodat, "mknod", CREATES, 0, 1, 0, 0, -1, -1},
    {SYS_symlinkat, "symlink", CREATES, 1, 2, 0, 0, -1, -1},
    {SYS_unlinkat, "unlink", REMOVES, 0, 1, 0, 0, -1, -1},
    {SYS_linkat, "link", LINKS, 0, 1, 2, 3, 4, -1},
#ifdef SYS_renameat
    {SYS_renameat, "rename", MOVES, 0, 1, 2, 3, -1, -1},
#endif
    {SYS_renameat2, "rename", MOVES, 0, 1, 2, 3, -1, -1},
    {SYS_truncate, "truncate", WRITES, -1, 0, 0, 0, -1, 0},
    {SYS_fchmodat, "chmod", ATTRIBUTES, 0, 1, 0, 0, -1, 0},
    {452, "chmod", ATTRIBUTES, 0, 1, 0, 0, 3, AT_SYMLINK_NOFOLLOW}, /* fchmodat2 */
    {SYS_fchownat, "chown", ATTRIBUTES, 0, 1, 0, 0, 4, AT_SYMLINK_NOFOLLOW},
    {SYS_utimensat, "utime", ATTRIBUTES, 0, 1, 0, 0, 3, AT_SYMLINK_NOFOLLOW},
    {SYS_setxattr, "setxattr", ATTRIBUTES, -1, 0, 0, 0, -1, 0},
    {SYS_lsetxattr, "setxattr", ATTRIBUTES, -1, 0, 0, 0, -1, -1},
    {SYS_removexattr, "removexattr", ATTRIBUTES, -1, 0, 0, 0, -1, 0},
    {SYS_lremovexattr, "removexattr", ATTRIBUTES, -1, 0, 0, 0, -1, -1},
#ifdef SYS_open
    {SYS_open, "open", OPENS, -1, 0, 0, 0, 1, O_NOFOLLOW},
    {SYS_creat, "open", CREATES_FILE, -1, 0, 0, 0, -1, 0},
    {SYS_mkdir, "mkdir", CREATES, -1, 0, 0, 0, -1, -1},
    {SYS_mknod, "mknod", CREATES, -1, 0, 0, 0, -1, -1},
    {SYS_symlink, "symlink", CREATES, -1, 1, 0, 0, -1, -1},
    {SYS_unlink, "unlink", REMOVES, -1, 0, 0, 0, -1, -1},
    {SYS_rmdir, "rmdir", REMOVES, -1, 0, 0, 0, -1, -1},
    {SYS_link, "link", LINKS, -1, 0, -1, 1, -1, -1},
    {SYS_rename, "rename", MOVES, -1, 0, -1, 1, -1, -1},
    {SYS_chmod, "chmod", ATTRIBUTES, -1, 0, 0, 0, -1, 0},
    {SYS_chown, "chown", ATTRIBUTES, -1, 0, 0, 0, -1, 0},
    {SYS_lchown, "chown", ATTRIBUTES, -1, 0, 0, 0, -1, -1},
    {SYS_utime, "utime", ATTRIBUTES, -1, 0, 0, 0, -1, 0},
    {SYS_utimes, "utime", ATTRIBUTES, -1, 0, 0, 0, -1, 0},
    {SYS_futimesat, "utime", ATTRIBUTES, 0, 1, 0, 0, -1, 0},
#endif
    {SYS_socket, "socket", REACHES, 0, 0, 0, 0, -1, 0},
    {SYS_socketpair, "socketpair", REACHES, 0, 0, 0, 0, -1, 0},
    {SYS_connect, "connect", ADDRESSES, 0, 1, 0, 0, -1, 0},
    {SYS_bind, "bind", ADDRESSES, 0, 1, 0, 0, -1, 0},
    {SYS_sendto, "sendto", ADDRESSES, 0, 4, 0, 0, -1, 0},
    {SYS_listen, "listen", REACHES, 0, 0, 0, 0, -1, 1},
    {SYS_accept4, "accept", REACHES, 0, 0, 0, 0, -1, 1},
#ifdef SYS_accept
    {SYS_accept, "accept", REACHES, 0, 0, 0, 0, -1, 1},
#endif
    {SYS_sendmmsg, "sendmmsg", REACHES, 0, 0, 0, 0, -1, 1},
};

static int by_descriptor; /* Whether the call may be about a descriptor, with no path at all. */
static int unclear;       /* Whether it could not be found out what the call is about. */

/* One path of a call, resolved.  0: there is nothing to judge. */
static int operand(int directory, int path, int follow, enum found *found, char *out)
{
    char text[PATH_MOST];
    const uint64_t *args = (const uint64_t *)asked->data.args;
    if (!args[path])
        return 0; /* It fails by itself, or is about a descriptor. */
    if (read_text(asked->pid, args[path], text, sizeof text) < 0)
        return !(unclear = 1);
    if (!text[0] && !by_descriptor)
        return 0;
    *found = resolve(asked->pid, directory < 0 ? AT_FDCWD : (int)args[directory], text, follow, out);
    unclear |= *found == UNKNOWN;
    /* Every sandbox has its own devices, and its own view of processes. */
    return *found > NOWHERE && (guarding || !(is_below(out, "/proc") || is_below(out, "/dev")));
}

static int opening_flags(const struct call *call, uint64_t *flags)
{
    *flags = call->flags < 0 ? 0 : asked->data.args[(int)call->flags];
    if (call->kind == CREATES_FILE)
        *flags = O_CREAT | O_WRONLY | O_TRUNC;
    if (call->kind != OPENS_BY_STRUCT)
        return 0;
    uint64_t how[3];       /* Flags, mode, and how to resolve the path. */
    struct iovec ours = {how, sizeof how};
    struct iovec theirs = {(void *)(uintptr_t)asked->data.args[2], sizeof how};
    if (process_vm_readv(asked->pid, &ours, 1, &theirs, 1, 0) != sizeof how)
        return -(unclear = 1);
    *flags = how[0];
    if (how[2] & ANOTHER_ROOT)
        unclear = 1;
    return 0;
}

/* Whether the sandbox refuses what would work without it; `out` is what it is about. */
static int is_denied(const struct call *call, char *out)
{
    enum found found;
    uint64_t flags = call->flags < 0 ? 0 : asked->data.args[(int)call->flags];
    int follow = call->kind == LINKS ? !!(flags & AT_SYMLINK_FOLLOW)
                                     : call->no_follow >= 0 && !(flags & call->no_follow);
    unclear = 0;
    by_descriptor = (call->kind == LINKS || call->kind == ATTRIBUTES) && flags & AT_EMPTY_PATH;
    switch (call->kind) {
    case OPENS:
    case OPENS_BY_STRUCT:
    case CREATES_FILE:
        if (opening_flags(call, &flags) < 0)
            return 0;
        follow = !(flags & O_NOFOLLOW);
        if (!operand(call->directory, call->path, follow, &found, out) || is_writable(out))
            return 0;
        if (found == MISSING || cover(out))
            return (flags & O_CREAT) && may_change_directory_of(out);
        if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_TRUNC))
            return 0;
        return !faccessat(AT_FDCWD, out, W_OK, AT_EACCESS);
    case CREATES:
        return operand(call->directory, call->path, 0, &found, out) && !is_movable(out)
               && (found == MISSING || cover(out)) && may_change_directory_of(out);
    case REMOVES:
        return operand(call->directory, call->path, 0, &found, out) && found == PRESENT
               && !is_movable(out) && may_change_directory_of(out);
    case MOVES: {
        char other[PATH_MOST];
        enum found there;
        if (!operand(call->directory, call->path, 0, &found, out) || found != PRESENT
            || !operand(call->directory2, call->path2, 0, &there, other)
            || !may_change_directory_of(out) || !may_change_directory_of(other))
            return 0;
        if (!is_movable(out))
            return 1;
        strcpy(out, other);
        return !is_movable(other);
    }
    case LINKS: {
        char other[PATH_MOST];
        enum found there;
        if (!operand(call->directory2, call->path2, 0, &there, other) || there != MISSING
            || !may_change_directory_of(other))
            return 0;
        /* Under another name it could be written to.  One that has no name yet is the caller's own. */
        if (operand(call->directory, call->path, follow, &found, out) && found == PRESENT && !is_writable(out))
            return 1;
        strcpy(out, other);
        return !is_movable(other);
    }
    case WRITES:
        return operand(call->directory, call->path, follow, &found, out) && found == PRESENT && !is_writable(out)
               && !faccessat(AT_FDCWD, out, W_OK, AT_EACCESS);
    default:
        return operand(call->directory, call->path, follow, &found, out) && found == PRESENT && !is_writable(out)
               && is_ours(out);
    }
}

static const char *family_name(int family, char *text, size_t room)
{
    switch (family) {
    case AF_UNIX: return "AF_UNIX";
    case AF_INET: return "AF_INET";
    case AF_INET6: return "AF_INET6";
    case AF_NETLINK: return "AF_NETLINK";
    case AF_PACKET: return "AF_PACKET";
    case AF_VSOCK: return "AF_VSOCK";
    }
    snprintf(text, room, "AF_%d", family);
    return text;
}

/* Network is always refused here; but what would not have worked anyway is not worth a word. */
static void refuse_network(const struct call *call)
{
    char text[PATH_MOST];
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        char bytes[256];
    } address = {0};
    if (call->kind == REACHES) {
        note(call->op, call->no_follow ? "" : family_name(asked->data.args[0], text, sizeof text));
        return;
    }
    uint64_t at = asked->data.args[(int)call->path], size = asked->data.args[call->path + 1];
    struct iovec ours = {&address, size < sizeof address - 1 ? size : sizeof address - 1};
    struct iovec theirs = {(void *)(uintptr_t)at, ours.iov_len};
    if (process_vm_readv(asked->pid, &ours, 1, &theirs, 1, 0) <= 2)
        return;
    if (address.any.sa_family != AF_UNIX || !address.local.sun_path[0]) {
        note(call->op, family_name(address.any.sa_family, text, sizeof text));
        return;
    }
    enum found found = resolve(asked->pid, AT_FDCWD, address.local.sun_path, 1, text);
    if (asked->data.nr == SYS_bind ? found == MISSING : found == PRESENT && !faccessat(AT_FDCWD, text, W_OK, AT_EACCESS))
        note(call->op, text);
}

int witness_descriptor(void) { return listener; }

void witness_answer(void)
{
    char subject[PATH_MOST] = "";
    struct pollfd waiting = {listener, POLLIN, 0};
    if (poll(&waiting, 1, 0) <= 0)
        return;
    if (!(waiting.revents & POLLIN)) {
        close(listener);
        listener = -1;
        return;
    }
    memset(asked, 0, asked_size);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, asked) < 0)
        return; /* Whoever asked is gone. */
    const struct call *call = NULL;
    for (size_t at = 0; at < sizeof calls / sizeof *calls && !call; at++)
        if (calls[at].number == asked->data.nr)
            call = &calls[at];
    memset(reply, 0, reply_size);
    reply->id = asked->id;
    if (!call)
        reply->error = -EPERM; /* Forbidden in every sandbox; no path to name. */
    else if (call->kind == REACHES || call->kind == ADDRESSES) {
        refuse_network(call);
        reply->error = -EPERM;
    } else {
        reply->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        int denied = is_denied(call, subject);
        /* If the caller is gone its number may be another's, and so was what we read. */
        if (denied && !ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &asked->id)) {
            note(call->op, subject);
            if (guarding && is_in_our_hands(subject))
                reply->flags = 0, reply->error = -EROFS;
        } else if (guarding && unclear) {
            /* A caller that hides what it does is not let do it. */
            note(call->op, "");
            reply->flags = 0, reply->error = -EPERM;
        }
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, reply);
}
