/* Rules known by the identity of files: names that must stay as they are in a place that can be written.
 *
 * The kernel cannot keep these: Landlock only ever allows more further down, and no
 * mount covers a symbolic link.  So the witness makes the calls of a guarded command
 * that change files (perform.c), on the descriptors that were judged here.
 *
 * A rule is known by what it is about, device and number of a file, and by its name in
 * its directory, in case it is not there yet.  To judge a place is to go up from it
 * until something is found that a rule is about.  Its path plays no part, so that it
 * does not matter by which way, mount or name somebody got there.
 */

#define _GNU_SOURCE
#include "guard.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LEVELS_MOST = 4096, PIPE_MAGIC = 0x50495045 };

struct identity {
    dev_t device;
    ino_t number;          /* 0: there is nothing. */
};

struct mark {
    struct identity itself, above;
    char letter;
    char name[NAME_MAX + 1];
};

struct ancestor {
    struct identity itself;
    char letter;
};

static struct identity identity_of(const struct stat *facts) { return (struct identity){facts->st_dev, facts->st_ino}; }

static int is_same(struct identity one, struct identity other)
{
    return one.number && one.number == other.number && one.device == other.device;
}

/* ---- The rules. */

static void keep_ancestor(struct guard *guard, struct identity itself, char letter)
{
    for (size_t at = 0; at < guard->ancestor_count; at++)
        if (is_same(guard->ancestors[at].itself, itself) && (guard->ancestors[at].letter == letter || letter != 'l'))
            return;
    if (guard->ancestor_count == guard->ancestor_room) {
        guard->ancestor_room = guard->ancestor_room ? 2 * guard->ancestor_room : 64;
        guard->ancestors = realloc(guard->ancestors, guard->ancestor_room * sizeof *guard->ancestors);
        if (!guard->ancestors)
            _exit(EXIT_BROKEN);
    }
    guard->ancestors[guard->ancestor_count++] = (struct ancestor){itself, letter};
}

/* The directory above one, which is closed.  From one that may not be searched its path leads up, if that can be
 * trusted. */
static int up(const struct caller *caller, int fd)
{
    struct stat facts;
    int above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (above < 0 && errno == EACCES && caller && !fstat(fd, &facts))
        above = directory_of_file(caller, fd, &facts);
    close(fd);
    return above;
}

static void look_up(struct guard *guard, struct mark *one, const char *rule)
{
    char directory[PATH_MOST];
    struct stat facts;
    const char *path = rule + 1, *last = strrchr(path, '/');
    one->letter = rule[0];
    if (!lstat(path, &facts))
        one->itself = identity_of(&facts);
    if (!last || !last[1] || strlen(last + 1) > NAME_MAX || strlen(path) >= sizeof directory)
        return; /* The root, or nothing that could ever come into being. */
    strcpy(one->name, last + 1);
    snprintf(directory, sizeof directory, "%.*s", last == path ? 1 : (int)(last - path), path);
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct identity before = {0};
    for (int level = 0; fd >= 0 && !fstat(fd, &facts) && level < LEVELS_MOST; level++, fd = up(NULL, fd)) {
        if (!level)
            one->above = identity_of(&facts);
        if (is_same(identity_of(&facts), before))
            break;
        before = identity_of(&facts);
        if (one->letter != 'w')
            keep_ancestor(guard, before, one->letter);
    }
    if (fd >= 0)
        close(fd);
}

void guard_begin(struct guard *guard, const char *rules, uint32_t count)
{
    guard->marks = calloc(count + 1, sizeof *guard->marks);
    if (!guard->marks)
        _exit(EXIT_BROKEN);
    guard->mark_count = count;
    for (uint32_t at = 0; at < count; at++, rules += strlen(rules) + 1)
        look_up(guard, &guard->marks[at], rules);
}

void guard_end(struct guard *guard)
{
    free(guard->marks), free(guard->ancestors);
    *guard = (struct guard){0};
}

/* ---- Verdicts. */

static int rule_about(const struct guard *guard, struct identity itself)
{
    for (uint32_t at = 0; at < guard->mark_count; at++)
        if (is_same(guard->marks[at].itself, itself))
            return guard->marks[at].letter;
    return NO_RULE;
}

static int rule_of_name(const struct guard *guard, struct identity above, const char *name)
{
    size_t length = strcspn(name, "/");
    for (uint32_t at = 0; at < guard->mark_count; at++) {
        const struct mark *mark = &guard->marks[at];
        if (is_same(mark->above, above) && strlen(mark->name) == length && !strncmp(mark->name, name, length))
            return mark->letter;
    }
    return NO_RULE;
}

/* The nearest rule, from a directory upwards. */
static int rule_above(const struct guard *guard, const struct caller *caller, int directory)
{
    struct stat facts;
    struct identity before = {0};
    int fd = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    for (int level = 0; fd >= 0 && !fstat(fd, &facts) && level < LEVELS_MOST; level++, fd = up(caller, fd)) {
        struct identity here = identity_of(&facts);
        int letter = rule_about(guard, here);
        if (letter != NO_RULE || is_same(here, before)) {
            close(fd);
            return letter;
        }
        before = here;
    }
    if (fd >= 0)
        close(fd);
    return NOT_CERTAIN;
}

/* What a descriptor stands for may have no name at all, and then no rule can be about it. */
static int has_no_name(const struct place *place)
{
    struct statfs system;
    if (fstatfs(place->object, &system) < 0)
        return 0;
    return system.f_type == PIPE_MAGIC || (S_ISREG(place->facts.st_mode) && !place->facts.st_nlink);
}

static int verdict_of_object(const struct guard *guard, const struct caller *caller, const struct place *place)
{
    int letter = rule_about(guard, identity_of(&place->facts));
    if (letter != NO_RULE)
        return letter;
    if (S_ISDIR(place->facts.st_mode))
        return rule_above(guard, caller, place->object);
    if (has_no_name(place))
        return 'w';
    int directory = directory_of_file(caller, place->object, &place->facts);
    if (directory < 0)
        return NOT_CERTAIN;
    letter = rule_above(guard, caller, directory);
    close(directory);
    return letter;
}

int guard_verdict(const struct guard *guard, const struct caller *caller, const struct place *place)
{
    struct stat above;
    int letter = NO_RULE;
    if (place->object >= 0)
        return verdict_of_object(guard, caller, place);
    if (fstat(place->parent, &above) < 0)
        return NOT_CERTAIN;
    if (place->found == PRESENT)
        letter = rule_about(guard, identity_of(&place->facts));
    if (letter == NO_RULE)
        letter = rule_of_name(guard, identity_of(&above), place->name);
    return letter != NO_RULE ? letter : rule_above(guard, caller, place->parent);
}

static int is_above(const struct guard *guard, const struct place *place, char letter)
{
    if (place->found != PRESENT || !S_ISDIR(place->facts.st_mode))
        return 0;
    for (size_t at = 0; at < guard->ancestor_count; at++) {
        const struct ancestor *one = &guard->ancestors[at];
        if (is_same(one->itself, identity_of(&place->facts)) && (!letter || one->letter == letter))
            return 1;
    }
    return 0;
}

int guard_moves(const struct guard *guard, const struct caller *caller, const struct place *place)
{
    return place->parent >= 0 && guard_verdict(guard, caller, place) == 'w'
           && rule_above(guard, caller, place->parent) == 'w' && !is_above(guard, place, 0);
}

int guard_keeps_link(const struct guard *guard, const struct caller *caller, const struct place *place)
{
    int letter = place->found < MISSING ? NO_RULE : guard_verdict(guard, caller, place);
    return letter == 'l' || letter == NOT_CERTAIN || is_above(guard, place, 'l');
}
