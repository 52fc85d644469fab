/* Rules known by the identity of files: what may be done at a place, whatever its path is. */

#ifndef HOLDFAST_GUARD_H
#define HOLDFAST_GUARD_H

#include "place.h"

#include <stdint.h>

struct guard {
    struct mark *marks;            /* What the rules are about. */
    uint32_t mark_count;
    struct ancestor *ancestors;    /* Directories above something that must stay: they must, too. */
    size_t ancestor_count, ancestor_room;
};

/* Looks up what the rules are about, now.  `rules` are texts, one after the other: a letter and a path (policy.h). */
void guard_begin(struct guard *guard, const char *rules, uint32_t count);
void guard_end(struct guard *guard);

enum { NO_RULE = 0, NOT_CERTAIN = '?' };
/* The letter of a place's own rule, or of the nearest one above it: NO_RULE if there is none. */
int guard_verdict(const struct guard *guard, const struct caller *caller, const struct place *place);
/* Whether the rules let a name come, go or change: it can be written, so can its directory, and nothing below it must
 * stay where it is. */
int guard_moves(const struct guard *guard, const struct caller *caller, const struct place *place);
/* Whether it is a link that must stay what it is, or a directory above one. */
int guard_keeps_link(const struct guard *guard, const struct caller *caller, const struct place *place);

#endif
