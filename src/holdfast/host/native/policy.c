/* What a sandbox allows, and whether it refuses a call that would work without it.
 *
 * That is said of calls on which the kernel decides, before it does: the rules do not
 * allow the call, and without a sandbox it would have worked.  It is for reports and
 * no barrier: between this look and the kernel's the caller can put another path in
 * the same place.
 */

#define _GNU_SOURCE
#include "policy.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- What the rules say of a path. */

static int is_below(const char *path, const char *top)
{
    size_t length = strlen(top);
    if (length == 1)
        return 1;
    return !strncmp(path, top, length) && (!path[length] || path[length] == '/');
}

static const char *next_rule(const char *rule) { return rule + strlen(rule) + 1; }

/* The longest rule above a path decides, the last one of those of the same length. */
static int is_writable(const struct policy *policy, const char *path)
{
    const char *rule = policy->rules;
    size_t longest = 0;
    int writable = 0;
    for (uint32_t at = 0; at < policy->rule_count; at++, rule = next_rule(rule)) {
        size_t length = strlen(rule + 1);
        if (length >= longest && is_below(path, rule + 1))
            longest = length, writable = rule[0] == 'w';
    }
    return writable;
}

int kernel_allows(const struct policy *policy, const char *path)
{
    const char *rule = policy->rules;
    for (uint32_t at = 0; at < policy->rule_count; at++, rule = next_rule(rule))
        if (rule[0] == 'w' && is_below(path, rule + 1))
            return 1;
    return 0;
}

/* Whether something below must stay as it is, so that what is above it cannot be moved away. */
static int holds_protected(const struct policy *policy, const char *path)
{
    const char *rule = policy->rules;
    for (uint32_t at = 0; at < policy->rule_count; at++, rule = next_rule(rule))
        if (rule[0] != 'w' && strcmp(rule + 1, path) && is_below(rule + 1, path))
            return 1;
    return 0;
}

/* The mask that covers a path; NULL if none does. */
static const char *cover(const struct policy *policy, const char *path)
{
    const char *rule = policy->rules;
    for (uint32_t at = 0; at < policy->rule_count; at++, rule = next_rule(rule))
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

/* Whether the rules let a name come, go or change its place; that is a change of its directory, too. */
static int is_movable(const struct policy *policy, const char *path)
{
    char above[PATH_MOST];
    directory_of(path, above);
    return is_writable(policy, path) && is_writable(policy, above) && !holds_protected(policy, path);
}

/* ---- What the rules say of a place. */

/* Rules are known by identity where the witness makes the calls on files of its own mounts, else by their texts. */
static int by_identity(const struct policy *policy, const struct caller *caller)
{
    return policy->guards && !caller->foreign;
}

static int writable(const struct policy *policy, const struct question *q, const struct place *place, const char *path)
{
    if (by_identity(policy, &q->caller))
        return guard_verdict(&policy->guard, &q->caller, place) == 'w';
    return path[0] && is_writable(policy, path);
}

static int movable(const struct policy *policy, const struct question *q, const struct place *place, const char *path)
{
    if (by_identity(policy, &q->caller))
        return guard_moves(&policy->guard, &q->caller, place);
    return path[0] && is_movable(policy, path);
}

/* ---- What would work without a sandbox.  Inside of other mounts only the path says that. */

int could_write(const struct caller *caller, const struct place *place, const char *path)
{
    char own[64];
    if (caller->foreign)
        return path[0] && !faccessat(AT_FDCWD, path, W_OK, 0);
    if (place->object < 0)
        return !faccessat(place->parent, place->name, W_OK, 0);
    snprintf(own, sizeof own, "/proc/self/fd/%d", place->object);
    return !faccessat(AT_FDCWD, own, W_OK, 0);
}

int could_change_directory(const struct policy *policy, const struct question *q, const struct place *place,
                           const char *path)
{
    char above[PATH_MOST];
    if (!q->caller.foreign)
        return place->parent >= 0 && !faccessat(place->parent, ".", W_OK | X_OK, 0);
    /* Without the sandbox there would be no cover, and the caller could put something in its place. */
    const char *covered = cover(policy, path);
    directory_of(covered ? covered : path, above);
    return path[0] && !faccessat(AT_FDCWD, above, W_OK | X_OK, 0);
}

static int is_special(const struct stat *facts)
{
    return S_ISFIFO(facts->st_mode) || S_ISSOCK(facts->st_mode) || S_ISCHR(facts->st_mode) || S_ISBLK(facts->st_mode);
}

/* Whether nothing has the name, but for a mask. */
static int is_missing(const struct policy *policy, const struct question *q)
{
    int covered = q->caller.foreign && q->path[0] && cover(policy, q->path);
    return q->one.found == MISSING || (q->one.found == PRESENT && covered);
}

/* ---- Denials. */

static int opening_is_denied(const struct policy *policy, const struct question *q)
{
    const struct place *one = &q->one;
    if (one->found < MISSING || writable(policy, q, one, q->path))
        return 0;
    if (is_missing(policy, q))
        return q->flags & O_CREAT && could_change_directory(policy, q, one, q->path);
    if ((q->flags & O_ACCMODE) == O_RDONLY && !(q->flags & O_TRUNC))
        return 0;
    return !(policy->pipes && is_special(&one->facts)) && could_write(&q->caller, one, q->path);
}

static int link_is_denied(const struct policy *policy, struct question *q)
{
    if (q->other.found != MISSING || !could_change_directory(policy, q, &q->other, q->other_path))
        return 0;
    /* Under another name it could be written to. */
    if (q->one.found == PRESENT && !writable(policy, q, &q->one, q->path))
        return 1;
    strcpy(q->path, q->other_path);
    return !movable(policy, q, &q->other, q->other_path);
}

static int move_is_denied(const struct policy *policy, struct question *q)
{
    if (q->one.found != PRESENT || q->other.found < MISSING || !could_change_directory(policy, q, &q->one, q->path)
        || !could_change_directory(policy, q, &q->other, q->other_path))
        return 0;
    if (!movable(policy, q, &q->one, q->path))
        return 1;
    strcpy(q->path, q->other_path);
    return !movable(policy, q, &q->other, q->other_path);
}

static int is_ours(const struct stat *facts) { return geteuid() == 0 || facts->st_uid == geteuid(); }

/* Every sandbox of bubblewrap has its own devices, and its own view of processes. */
static int is_its_own(const struct caller *caller, const char *path)
{
    return caller->foreign && path[0] && (is_below(path, "/proc") || is_below(path, "/dev"));
}

int policy_denies(const struct policy *policy, struct question *q)
{
    const struct place *one = &q->one;
    if (q->unclear || is_its_own(&q->caller, q->path) || is_its_own(&q->caller, q->other_path))
        return 0;
    switch (q->call->kind) {
    case OPENS:
    case OPENS_BY_STRUCT:
    case CREATES_FILE:
        return opening_is_denied(policy, q);
    case CREATES:
        return one->found >= MISSING && !movable(policy, q, one, q->path) && is_missing(policy, q)
               && could_change_directory(policy, q, one, q->path);
    case REMOVES:
        return one->found == PRESENT && !movable(policy, q, one, q->path)
               && could_change_directory(policy, q, one, q->path);
    case MOVES:
        return move_is_denied(policy, q);
    case LINKS:
        return link_is_denied(policy, q);
    case WRITES:
        return one->found == PRESENT && !writable(policy, q, one, q->path) && could_write(&q->caller, one, q->path);
    }
    return one->found == PRESENT && !writable(policy, q, one, q->path) && is_ours(&one->facts);
}
