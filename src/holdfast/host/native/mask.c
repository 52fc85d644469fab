/* Masks: empty directories that exist only so that a sandbox has something to mount on.
 *
 * A name that must not come into being is covered by a mount, and a mount needs a
 * place: an empty directory, which is removed when no sandbox needs it any more.  Each
 * sandbox that needs it holds locks on it, so that it does not matter who they are and
 * how they end.  Its permissions tell it from a directory of somebody else's.
 *
 * Anybody who can read a directory can lock it, so nobody may wait for a lock without
 * end.  There are two.  A read lock says that the directory is needed: it can always
 * be had, since nobody can have a write lock on a directory.  The other one keeps those
 * who remove a mask from those who take it at the same moment: it is held for a moment
 * only, and whoever finds it held for longer goes on without it.  Whatever strangers
 * lock, the worst that happens is a directory that stays until they let go.
 */

#define _GNU_SOURCE
#include "mask.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TAKE_TRIES = 100,      /* How often others may remove a mask while it is taken. */
    LOCK_TRIES = 50,
    LOCK_PAUSE_US = 1000,
};

static int is_mask(const struct stat *facts)
{
    return S_ISDIR(facts->st_mode) && (facts->st_mode & 07222) == 01000;
}

static int is_still(const char *path, int fd)
{
    struct stat ours, there;
    return !fstat(fd, &ours) && !lstat(path, &there) && is_mask(&there) && ours.st_dev == there.st_dev
           && ours.st_ino == there.st_ino;
}

static void need(int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_OFD_SETLK, &lock);
    for (int tries = 0; flock(fd, LOCK_SH | LOCK_NB) < 0 && tries < LOCK_TRIES; tries++)
        usleep(LOCK_PAUSE_US);
}

/* Whoever gives a mask back stops needing it before it lets go of the other lock.  Were it the other way round, of
 * two who give it at the same moment the first would fail to lock it because of the second, and the second would
 * leave it there because of the first. */
static void need_no_more(int fd)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_OFD_SETLK, &lock);
}

static int is_needed_by_others(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

int mask_take(const char *path)
{
    for (int tries = 0; tries < TAKE_TRIES; tries++) {
        struct stat facts;
        if (mkdir(path, 01555) < 0 && errno != EEXIST)
            return -1;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            return -1;
        if (fd < 0)
            continue;
        if (fstat(fd, &facts) < 0 || !is_mask(&facts)) {
            close(fd); /* Somebody has put something there that stays. */
            return -1;
        }
        need(fd);
        /* Whoever had it before us may have removed it meanwhile. */
        if (is_still(path, fd))
            return fd;
        close(fd);
    }
    return -1;
}

void mask_give(const char *path, int fd)
{
    if (fd < 0)
        return;
    need_no_more(fd);
    /* An attempt that fails gives up our share of the lock: the last one to try finds it free. */
    if (is_still(path, fd) && !flock(fd, LOCK_EX | LOCK_NB) && !is_needed_by_others(fd))
        rmdir(path);
    close(fd);
}
