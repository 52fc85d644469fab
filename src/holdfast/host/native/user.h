/* Becoming another user, for good. */

#ifndef HOLDFAST_USER_H
#define HOLDFAST_USER_H

#include <stdint.h>

enum { USER_IDS_LEAST = 2, USER_IDS_MOST = 2 + 65536 }; /* The kernel knows no more groups of a process. */

/* In a child that may still share the memory of its parent: makes the calling process one of another user, who owns its
 * pipes or its terminal from then on.  It keeps no capability, unless that user is root.
 *
 * `ids` are the user, the group, and then the supplementary groups.  -1 and errno if anything is refused; then the
 * process must not go on. */
int user_become(const uint32_t *ids, uint32_t count);

#endif
