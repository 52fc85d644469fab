/* Confinement: what a process gives up for good before it becomes a command. */

#ifndef HOLDFAST_CONFINE_H
#define HOLDFAST_CONFINE_H

#include "messages.h"

#include <stddef.h>
#include <stdint.h>

struct confinement {
    const void *filter;    /* Of seccomp: instructions, and how many bytes they take. */
    size_t filter_size;
    int ruleset;           /* Of Landlock; -1 without. */
    int socket;            /* Where the descriptor of the listener is sent; -1 if the filter hands no calls over. */
    int powerless;         /* Whether to drop all capabilities; bubblewrap does that itself. */
};

/* Confines the calling process.  -1 and errno if that is not possible. */
int confine(const struct confinement *confinement);

/* Sets resource limits of the calling process.  -1 and errno if one is refused. */
int set_limits(const struct limit *limits, uint32_t count);

/* A Landlock ruleset that lets only these paths be written, and what every sandbox of bubblewrap has of its own:
 * `count` texts, one after the other.  -1 and errno if there is none. */
int domain_of(const char *writable, uint32_t count);

/* The program as `fork_server probe`: 0 if the kernel lets a filter hand calls over. */
int probe(void);

#endif
