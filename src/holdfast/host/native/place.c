/* Finds what a path of a caller stands for.
 *
 * The kernel walks, along the caller's own descriptors, and what it finds is held
 * as descriptors of ours: the directory, and the name in it.  Whoever then acts on
 * these acts on what was judged, whatever becomes of the path meanwhile.  Only the
 * last link is followed here, one step at a time, because the calls that are judged
 * act on the name it leads to.
 *
 * In /proc the kernel would take us for the caller: `self` is whoever walks.  So the
 * usual ways through /proc/self are begun at the caller's own directory instead, and
 * all others that lead through a process are not followed.
 */

#define _GNU_SOURCE
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum { LINKS_MOST = 40, TRIES_MOST = 10 };
enum { PROC_MAGIC = 0x9fa0 };

int walk(int base, const char *path, unsigned long long flags, unsigned long long resolve)
{
    uint64_t how[3] = {flags | O_CLOEXEC, 0, resolve};
    int fd = -1;
    /* The kernel asks to try again if something was moved while it kept inside of a root. */
    for (int tries = 0; fd < 0 && tries < TRIES_MOST && (!tries || errno == EAGAIN); tries++)
        fd = syscall(SYS_openat2, base, path, how, sizeof how);
    return fd;
}

static int text_of(int fd, char *text)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, text, PATH_MOST - 1);
    if (got <= 0 || got >= PATH_MOST - 1 || text[0] != '/')
        return -1;
    text[got] = 0;
    return 0;
}

static int is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* The same as walking from a directory, for a caller whose root is not ours: a link that begins with a slash has
 * to be followed from there.  So the directory's own path is walked from that root, too. */
static int walk_from_root(const struct caller *caller, int base, const char *path)
{
    char whole[2 * PATH_MOST];
    struct stat there, here;
    if (text_of(base, whole) < 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int again = walk(caller->root, whole, O_PATH | O_DIRECTORY, WALK_NO_MAGIC | WALK_IN_ROOT);
    int sure = again >= 0 && !fstat(again, &there) && !fstat(base, &here) && is_same(&here, &there);
    if (again >= 0)
        close(again);
    if (!sure) {
        errno = ESTALE;
        return -1;
    }
    size_t length = strlen(whole);
    snprintf(whole + length, sizeof whole - length, "/%s", path);
    return walk(caller->root, whole, O_PATH | O_DIRECTORY, WALK_NO_MAGIC | WALK_IN_ROOT);
}

/* The directory that `path` leads to from `base`, or from the root if it begins with a slash. */
static int find_directory(const struct caller *caller, int base, const char *path)
{
    if (!caller->foreign)
        return walk(base, path, O_PATH | O_DIRECTORY, WALK_NO_MAGIC);
    if (path[0] == '/')
        return walk(caller->root, path, O_PATH | O_DIRECTORY, WALK_NO_MAGIC | WALK_IN_ROOT);
    int fd = walk(base, path, O_PATH | O_DIRECTORY, WALK_NO_LINKS | WALK_NO_MAGIC);
    return fd < 0 && errno == ELOOP ? walk_from_root(caller, base, path) : fd;
}

static int is_proc(int fd)
{
    struct statfs facts;
    return !fstatfs(fd, &facts) && facts.f_type == PROC_MAGIC;
}

/* Whether a directory of /proc tells of ourselves: whoever got there said `self`, and meant the caller. */
static int tells_of_us(int fd)
{
    char text[PATH_MOST], own[32];
    snprintf(own, sizeof own, "/proc/%d", (int)getpid());
    size_t length = strlen(own);
    return text_of(fd, text) < 0 || (!strncmp(text, own, length) && (!text[length] || text[length] == '/'));
}

static void settle(struct place *place, enum found found, int error)
{
    place->found = found, place->error = error;
}

static void settle_object(struct place *place, int fd)
{
    place->object = fd;
    if (fd < 0 || fstat(fd, &place->facts) < 0)
        settle(place, fd < 0 && errno == EBADF ? NOWHERE : UNKNOWN, EBADF);
    else
        settle(place, PRESENT, 0);
}

void place_of_descriptor(const struct caller *caller, int number, struct place *place)
{
    *place = (struct place){.parent = -1, .object = -1};
    settle_object(place, caller_descriptor(caller, number));
}

int place_is_busy(const struct place *place)
{
    char name[sizeof place->name];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(place->name, "/"), place->name);
    int fd = walk(place->parent, name, O_PATH | O_NOFOLLOW, WALK_NO_MOUNTS | WALK_NO_MAGIC);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == ENOENT ? 0 : errno == EXDEV ? EBUSY : errno;
}

/* Whether an error is about the path, and would be the caller's, too. */
static int is_plain(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ENAMETOOLONG || error == EBADF
           || error == EXDEV || error == EAGAIN;
}

/* Why the kernel does not get to a directory; a way through a process it would get along is not for us to follow. */
static void settle_without_directory(struct place *place, int base, const char *path, unsigned long long resolve)
{
    int error = errno;
    if (error == ELOOP && !(resolve & WALK_NO_LINKS)) {
        int fd = walk(base, path, O_PATH, resolve & ~(unsigned long long)WALK_NO_MAGIC);
        if (fd >= 0)
            close(fd);
        settle(place, fd >= 0 || errno != ELOOP ? UNKNOWN : NOWHERE, ELOOP);
    } else
        settle(place, is_plain(error) || error == ELOOP ? NOWHERE : UNKNOWN, error);
}

/* In directories that anybody can write to, links of strangers are not followed, if the host is set up so. */
static int is_a_strangers(const struct place *place)
{
    struct stat above;
    char setting = '0';
    if (fstat(place->parent, &above) < 0 || (above.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
        return 0;
    int fd = open("/proc/sys/fs/protected_symlinks", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, &setting, 1) != 1)
            setting = '1';
        close(fd);
    }
    return setting != '0' && place->facts.st_uid != geteuid() && place->facts.st_uid != above.st_uid;
}

/* Take the last step: what has the name?  1 if it is a link to be followed, whose text is now in `path`. */
static int look(struct place *place, char *path, enum follow follow, int slash)
{
    int error = fstatat(place->parent, place->name, &place->facts, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
    settle(place, !error ? PRESENT : error == ENOENT ? MISSING : NOWHERE, error);
    if (slash && follow & MAKES && place->found != NOWHERE)
        settle(place, NOWHERE, EISDIR);
    if (place->found != PRESENT)
        return 0;
    if (slash && follow && !S_ISLNK(place->facts.st_mode) && !S_ISDIR(place->facts.st_mode))
        settle(place, NOWHERE, ENOTDIR);
    if (!S_ISLNK(place->facts.st_mode) || !(follow & FOLLOW || (follow & OPEN && slash)))
        return 0;
    if (is_proc(place->parent)) {
        /* It leads to an object, not along a path. */
        int fd = tells_of_us(place->parent) ? -1 : openat(place->parent, place->name, O_PATH | O_CLOEXEC);
        errno = 0;
        settle_object(place, fd);
        return 0;
    }
    ssize_t got = readlinkat(place->parent, place->name, path, PATH_MOST - 2);
    if (got <= 0 || got >= PATH_MOST - 2 || is_a_strangers(place)) {
        settle(place, NOWHERE, got < 0 ? errno : EACCES);
        return 0;
    }
    strcpy(path + got, slash ? "/" : "");
    return 1;
}

/* Cut the last name off a path, and put it into the place; what is left is the directory.  -1 if it is too long. */
static int split(char *path, struct place *place, char *directory, int *slash)
{
    size_t length = strlen(path);
    *slash = length > 0 && path[length - 1] == '/';
    while (length > 1 && path[length - 1] == '/')
        path[--length] = 0;
    char *last = strrchr(path, '/');
    const char *name = last ? last + 1 : path;
    if (strlen(name) > NAME_MAX)
        return -1;
    snprintf(place->name, sizeof place->name, "%s", *name ? name : ".");
    snprintf(directory, PATH_MOST, "%.*s", last ? (int)(last - path + 1) : 0, path);
    if (!*directory)
        strcpy(directory, ".");
    return 0;
}

/* One round: the directory that the path names, and the last name in it.  1 if a link is to be followed from there. */
static int step(const struct caller *caller, int *base, char *path, enum follow follow, struct place *place)
{
    char directory[PATH_MOST], begun[PATH_MOST];
    const char *rest = path;
    int slash = 0, special = caller_shortcut(caller, &rest);
    if (special == -2) {
        settle(place, NOWHERE, ENOENT);
        return 0;
    }
    if (special >= 0) {
        if (!*rest && (follow & FOLLOW || (follow & OPEN && rest[-1] == '/'))) {
            settle_object(place, special);
            return 0;
        }
        if (*base >= 0)
            close(*base);
        *base = special;
        if (!*rest) {
            /* The link itself is meant, which cannot be changed, opened or moved to another mount. */
            settle(place, NOWHERE, ELOOP);
            place->object = fcntl(special, F_DUPFD_CLOEXEC, 0);
            return 0;
        }
        snprintf(begun, sizeof begun, "%s", rest);
        strcpy(path, begun);
    }
    if (split(path, place, directory, &slash) < 0) {
        settle(place, NOWHERE, ENAMETOOLONG);
        return 0;
    }
    place->parent = find_directory(caller, *base, directory);
    if (place->parent < 0) {
        settle_without_directory(place, caller->foreign && directory[0] == '/' ? caller->root : *base, directory, 0);
        return 0;
    }
    if (is_proc(place->parent) && tells_of_us(place->parent)) {
        settle(place, UNKNOWN, 0);
        return 0;
    }
    if (look(place, path, follow, slash)) {
        /* What follows is relative to where the link is. */
        if (*base >= 0)
            close(*base);
        *base = place->parent, place->parent = -1;
        return 1;
    }
    if (slash && place->found > NOWHERE && strcmp(place->name, "."))
        strcat(place->name, "/");
    return 0;
}

void place_find(const struct caller *caller, int directory, const char *path, enum follow follow, struct place *place)
{
    char rest[PATH_MOST];
    int base = -1, links = 0, more = 1;
    *place = (struct place){.parent = -1, .object = -1};
    if (!*path || strlen(path) >= sizeof rest - 1) {
        settle(place, NOWHERE, *path ? ENAMETOOLONG : ENOENT);
        return;
    }
    strcpy(rest, path);
    if (rest[0] != '/' && (base = caller_directory(caller, directory)) < 0) {
        settle(place, errno == EBADF || errno == ENOTDIR ? NOWHERE : UNKNOWN, errno);
        return;
    }
    while (more && (more = step(caller, &base, rest, follow, place)))
        if (++links > LINKS_MOST) {
            settle(place, NOWHERE, ELOOP);
            break;
        }
    if (base >= 0)
        close(base);
}

/* One round of what follows.  1 if a link is to be followed, and `path` is now where that leads. */
static int step_in(int base, char *path, enum follow follow, unsigned long long resolve, struct place *place)
{
    char directory[PATH_MOST], text[PATH_MOST];
    int slash;
    snprintf(text, sizeof text, "%s", path);
    if (split(text, place, directory, &slash) < 0) {
        settle(place, NOWHERE, ENAMETOOLONG);
        return 0;
    }
    if (!strcmp(place->name, ".") || !strcmp(place->name, "..")) {
        /* The kernel must not be led out of where it has to stay. */
        int fd = walk(base, path, O_PATH, resolve);
        settle(place, fd < 0 && is_plain(errno) ? NOWHERE : UNKNOWN, errno);
        if (fd >= 0)
            settle_object(place, fd);
        return 0;
    }
    place->parent = walk(base, directory, O_PATH | O_DIRECTORY, resolve);
    if (place->parent < 0)
        settle_without_directory(place, base, directory, resolve);
    else if (is_proc(place->parent))
        settle(place, UNKNOWN, 0);
    if (place->parent < 0 || is_proc(place->parent))
        return 0;
    if (!look(place, text, follow, slash)) {
        if (slash && place->found > NOWHERE)
            strcat(place->name, "/");
        return 0;
    }
    close(place->parent), place->parent = -1;
    if (resolve & WALK_NO_LINKS || strlen(directory) + strlen(text) + 2 > PATH_MOST) {
        settle(place, NOWHERE, ELOOP);
        return 0;
    }
    /* A directory ends in a slash, or is a dot. */
    size_t length = text[0] == '/' ? 0 : strlen(directory);
    memcpy(path, directory, length);
    strcpy(path + length, text[0] != '/' && !strcmp(directory, ".") ? "/" : "");
    strcat(path, text);
    return 1;
}

void place_find_in(const struct caller *caller, int directory, const char *path, enum follow follow,
                   unsigned long long resolve, struct place *place)
{
    char rest[PATH_MOST];
    int base = AT_FDCWD, links = 0;
    *place = (struct place){.parent = -1, .object = -1};
    resolve |= WALK_NO_MAGIC;
    if (!*path || strlen(path) >= sizeof rest - 1) {
        settle(place, NOWHERE, *path ? ENAMETOOLONG : ENOENT);
        return;
    }
    strcpy(rest, path);
    if (path[0] != '/' || resolve & WALK_IN_ROOT)
        base = caller_directory(caller, directory);
    else if (caller->foreign)
        base = fcntl(caller->root, F_DUPFD_CLOEXEC, 0), resolve |= WALK_IN_ROOT;
    if (base == -1)
        settle(place, is_plain(errno) ? NOWHERE : UNKNOWN, errno);
    else if (caller->foreign && !(resolve & (WALK_NO_LINKS | WALK_IN_ROOT | WALK_BENEATH)))
        settle(place, UNKNOWN, 0); /* Links would lead to our own root. */
    else
        while (step_in(base, rest, follow, resolve, place))
            if (++links > LINKS_MOST) {
                settle(place, NOWHERE, ELOOP);
                break;
            }
    if (base >= 0)
        close(base);
}

void place_release(struct place *place)
{
    if (place->parent >= 0)
        close(place->parent);
    if (place->object >= 0)
        close(place->object);
    place->parent = place->object = -1;
}

int place_text(const struct place *place, char *text)
{
    if (place->object >= 0)
        return text_of(place->object, text);
    if (place->parent < 0 || text_of(place->parent, text) < 0)
        return -1;
    size_t length = strlen(text), more = strcspn(place->name, "/");
    if (!strcmp(place->name, "."))
        return 0;
    if (length + more + 2 > PATH_MOST)
        return -1;
    if (text[length - 1] != '/')
        text[length++] = '/';
    memcpy(text + length, place->name, more);
    text[length + more] = 0;
    return 0;
}

int directory_of_file(const struct caller *caller, int fd, const struct stat *facts)
{
    char text[PATH_MOST];
    struct stat there;
    if (text_of(fd, text) < 0)
        return -1;
    char *last = strrchr(text, '/');
    char name[NAME_MAX + 1];
    if (strlen(last + 1) > NAME_MAX)
        return -1;
    strcpy(name, last + 1);
    last[last == text] = 0;
    int above = caller->foreign ? walk(caller->root, text, O_PATH | O_DIRECTORY, WALK_NO_LINKS | WALK_IN_ROOT)
                                : walk(AT_FDCWD, text, O_PATH | O_DIRECTORY, WALK_NO_LINKS);
    if (above >= 0 && !fstatat(above, name, &there, AT_SYMLINK_NOFOLLOW) && is_same(&there, facts))
        return above;
    if (above >= 0)
        close(above);
    return -1;
}
