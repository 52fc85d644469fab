/* Making a call for a caller: what it asked for, on the descriptors that were judged.
 *
 * Nobody can put another path in their place.  The thread that acts here has no power
 * over files but that of being the same user, as the command itself.
 */

#define _GNU_SOURCE
#include "perform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static uint64_t argument(const struct question *q, int which) { return q->asked->data.args[which]; }

/* ---- Opening.
 *
 * What is opened must not make us wait, must not become our terminal, and is not
 * followed further. */

/* A descriptor, or -1 and errno.  EAGAIN: nobody is at the other end of a pipe yet, or somebody must let go of the file
 * first. */
static int open_place(const struct opening *opening)
{
    char path[64];
    int fd, flags = opening->flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const struct place *place = &opening->place;
    if (place->object >= 0 && opening->flags & O_CREAT && (opening->flags & O_EXCL || S_ISDIR(place->facts.st_mode))) {
        errno = opening->flags & O_EXCL ? EEXIST : EISDIR;
        return -1;
    }
    if (place->object >= 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", place->object);
        fd = open(path, flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW));
    } else {
        umask(opening->mask);
        fd = openat(place->parent, place->name, flags | O_NOFOLLOW, opening->mode);
    }
    if (fd < 0 && (errno == ENXIO || errno == EWOULDBLOCK) && !(opening->flags & O_NONBLOCK)
        && (errno == EWOULDBLOCK || S_ISFIFO(place->facts.st_mode)))
        errno = EAGAIN;
    if (fd >= 0 && !(opening->flags & (O_NONBLOCK | O_PATH)))
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

/* /dev/tty is the terminal of whoever opens it: so the caller's is looked for, among its own files first. */
static int open_terminal(const struct caller *caller, int flags)
{
    enum { STANDARD_FILES = 3 };
    char path[64];
    struct stat facts;
    dev_t terminal = caller_terminal(caller);
    for (int number = 0; terminal && number <= STANDARD_FILES; number++) {
        if (number < STANDARD_FILES)
            snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)caller->thread, number);
        else
            snprintf(path, sizeof path, "/dev/pts/%u", minor(terminal));
        int place = open(path, O_PATH | O_CLOEXEC);
        int same = place >= 0 && !fstat(place, &facts) && S_ISCHR(facts.st_mode) && facts.st_rdev == terminal;
        struct opening opening = {.place = {.object = place, .parent = -1}, .flags = flags};
        int fd = same ? open_place(&opening) : -1;
        if (place >= 0)
            close(place);
        if (fd >= 0)
            return fd;
    }
    errno = ENXIO;
    return -1;
}

static int is_terminal_of_callers(const struct place *place)
{
    return place->found == PRESENT && S_ISCHR(place->facts.st_mode) && place->facts.st_rdev == makedev(5, 0);
}

static void perform_open(struct question *q, struct listener *listener, struct openings *openings)
{
    uint64_t id = q->asked->id;
    struct opening opening = {.place = q->one, .id = id, .flags = q->flags};
    if (q->flags & O_CREAT || (q->flags & O_TMPFILE) == O_TMPFILE)
        opening.mode = q->mode & 07777, opening.mask = caller_umask(&q->caller);
    if (opening.mode & S_ISUID) { /* The filter refuses it, but cannot see the mode of openat2. */
        listener_answer(listener, id, EPERM);
        return;
    }
    int is_terminal = is_terminal_of_callers(&q->one);
    int fd = is_terminal ? open_terminal(&q->caller, q->flags) : open_place(&opening);
    if (fd >= 0)
        listener_hand_over(listener, id, fd, q->flags);
    else if (errno == EAGAIN && !is_terminal && openings->count < OPENINGS_MOST) {
        openings->waiting[openings->count++] = opening;
        q->one.parent = q->one.object = -1; /* They are kept with it. */
    } else
        listener_answer(listener, id, errno);
}

void openings_try(struct openings *openings, struct listener *listener)
{
    for (int at = 0; at < openings->count;) {
        struct opening *one = &openings->waiting[at];
        int alive = listener_is_waiting(listener, one->id);
        int fd = alive ? open_place(one) : -1;
        if (alive && fd < 0 && errno == EAGAIN) {
            at++;
            continue;
        }
        if (fd >= 0)
            listener_hand_over(listener, one->id, fd, one->flags);
        else if (alive)
            listener_answer(listener, one->id, errno);
        place_release(&one->place);
        *one = openings->waiting[--openings->count];
    }
}

void openings_release(struct openings *openings)
{
    while (openings->count)
        place_release(&openings->waiting[--openings->count].place);
}

/* ---- The other calls.  Each returns what the kernel did: 0, or -1 and errno. */

static int perform_truncate(const struct question *q)
{
    struct opening opening = {.place = q->one, .flags = O_WRONLY};
    int fd = open_place(&opening);
    if (fd < 0)
        return -1;
    int done = ftruncate(fd, argument(q, 1)), error = errno;
    close(fd);
    errno = error;
    return done;
}

static int perform_create(const struct question *q)
{
    char text[PATH_MOST];
    umask(caller_umask(&q->caller));
    if (!strcmp(q->call->op, "mkdir"))
        return mkdirat(q->one.parent, q->one.name, q->mode);
    if (!strcmp(q->call->op, "mknod"))
        return syscall(SYS_mknodat, q->one.parent, q->one.name, (mode_t)q->mode, argument(q, q->call->mode + 1));
    int error = caller_text(&q->caller, argument(q, 0), text, sizeof text);
    if (error) {
        errno = error;
        return -1;
    }
    return symlinkat(text, q->one.parent, q->one.name);
}

/* What the kernel would refuse the caller and not us: to move or remove what the sandbox has mounted something on.
 * It asks whether that is a place for mounts among those of whoever acts, and we have others.  It would be done, and
 * take the mount away from everybody. */
static int is_busy(const struct question *q)
{
    if (!q->caller.foreign)
        return 0;
    errno = place_is_busy(&q->one);
    if (!errno && q->call->kind == MOVES)
        errno = place_is_busy(&q->other);
    return errno;
}

static int perform_remove(const struct question *q)
{
    int flags = !strcmp(q->call->op, "rmdir") ? AT_REMOVEDIR : (int)q->flags;
    return unlinkat(q->one.parent, q->one.name, flags);
}

static int perform_move(const struct question *q)
{
    return syscall(SYS_renameat2, q->one.parent, q->one.name, q->other.parent, q->other.name, (unsigned)q->flags);
}

static int perform_link(const struct place *from, const struct place *to)
{
    char path[64];
    if (from->object < 0)
        return linkat(from->parent, from->name, to->parent, to->name, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", from->object);
    return linkat(AT_FDCWD, path, to->parent, to->name, AT_SYMLINK_FOLLOW);
}

void perform(struct question *q, struct listener *listener, struct openings *openings)
{
    int done = -1;
    errno = EPERM;
    switch (q->call->kind) {
    case OPENS:
    case OPENS_BY_STRUCT:
    case CREATES_FILE:
        perform_open(q, listener, openings);
        return;
    case CREATES: done = perform_create(q); break;
    case REMOVES: done = is_busy(q) ? -1 : perform_remove(q); break;
    case MOVES: done = is_busy(q) ? -1 : perform_move(q); break;
    case LINKS: done = perform_link(&q->one, &q->other); break;
    case WRITES: done = perform_truncate(q); break;
    }
    listener_answer(listener, q->asked->id, done < 0 ? errno : 0);
}

/* The caller's own socket gets the caller's own address.  That of a local socket is a path, which the kernel walks once
 * more: it is what others are told of the socket. */
int perform_bind(const struct caller *caller, int number, const void *address, size_t size)
{
    mode_t mask = caller_umask(caller);
    int process = syscall(SYS_pidfd_open, caller_process(caller), 0), bound = -1;
    int socket = process < 0 ? -1 : syscall(SYS_pidfd_getfd, process, number, 0);
    int directory = socket < 0 ? -1 : caller_directory(caller, AT_FDCWD);
    if (directory >= 0 && !fchdir(directory)) {
        umask(mask);
        bound = bind(socket, address, size);
    }
    int error = errno;
    if (directory >= 0)
        close(directory);
    if (socket >= 0)
        close(socket);
    if (process >= 0)
        close(process);
    errno = error;
    return bound;
}
