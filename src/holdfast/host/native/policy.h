/* What a sandbox allows, and whether it refuses a call that would work without it. */

#ifndef HOLDFAST_POLICY_H
#define HOLDFAST_POLICY_H

#include "call.h"
#include "guard.h"

#include <stdint.h>

/* `rules` are texts, one after the other: a letter and a path.  w: can be written.  m: is not there, and only covered
 * by a mask.  l: a link that must stay one.  r and d: everything else. */
struct policy {
    char *rules;
    uint32_t rule_count;
    int guards;            /* Make the calls that change files for the command, and refuse what the kernel cannot. */
    int network;           /* Whether it may be used. */
    int pipes;             /* Whether the kernel lets named pipes be written that lie where only reading is allowed. */
    struct guard guard;    /* The rules by identity, if `guards`. */
};

/* Whether the sandbox refuses a call that would work without it; `q->path` is what that is about. */
int policy_denies(const struct policy *policy, struct question *q);

/* Whether a directory could be changed without a sandbox. */
int could_change_directory(const struct policy *policy, const struct question *q, const struct place *place,
                           const char *path);
/* Whether a file could be written without one. */
int could_write(const struct caller *caller, const struct place *place, const char *path);

/* Whether the kernel would let a path be written, which knows of no exceptions below what is writable. */
int kernel_allows(const struct policy *policy, const char *path);

#endif
