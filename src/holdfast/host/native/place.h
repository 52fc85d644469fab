/* Where the path of a system call leads, as the kernel sees it from the process that makes the call. */

#ifndef HOLDFAST_PLACE_H
#define HOLDFAST_PLACE_H

#include "caller.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { PATH_MOST = 4096 };

/* UNKNOWN: it could not be found out.  NOWHERE: the kernel does not get there, and `error` says why.
 * MISSING: its directory is there, and nothing has the name.  PRESENT: something has. */
enum found { UNKNOWN, NOWHERE, MISSING, PRESENT };

/* What becomes of a link that has the last name.  NAME: it is what the call is about, as in unlink.  OPEN: the same,
 * unless a slash behind it asks for a directory.  FOLLOW: what it leads to is.  With MAKES, for opening a file that
 * need not be there: then a slash behind it is an error. */
enum follow { NAME, OPEN, FOLLOW, MAKES = 4 };

/* Either a name in a directory, or an object that one of the caller's descriptors stands for. */
struct place {
    enum found found;
    int error;
    int parent;            /* -1 if there is none. */
    int object;            /* -1 if it is a name. */
    char name[NAME_MAX + 2];
    struct stat facts;     /* Of what is there. */
};

/* `directory` is a descriptor of the caller's, or AT_FDCWD. */
void place_find(const struct caller *caller, int directory, const char *path, enum follow follow, struct place *place);
/* The same for a path that is to be walked in a way of its own, as openat2 has them. */
void place_find_in(const struct caller *caller, int directory, const char *path, enum follow follow,
                   unsigned long long resolve, struct place *place);
/* The object behind a descriptor of the caller's. */
void place_of_descriptor(const struct caller *caller, int number, struct place *place);
void place_release(struct place *place);

/* The path of a place, for people and for rules that are texts.  -1 if it has none. */
int place_text(const struct place *place, char *text);

/* A descriptor of the directory that something behind a descriptor of ours is in; -1 if that is not certain. */
int directory_of_file(const struct caller *caller, int fd, const struct stat *facts);

/* Whether something is mounted on a name, in the mounts that its directory belongs to.  0: no; else the error with which
 * the kernel would refuse a caller there to move or remove it. */
int place_is_busy(const struct place *place);

int walk(int base, const char *path, unsigned long long flags, unsigned long long resolve);
enum { WALK_NO_MOUNTS = 0x01, WALK_NO_MAGIC = 0x02, WALK_NO_LINKS = 0x04, WALK_BENEATH = 0x08, WALK_IN_ROOT = 0x10 };

#endif
