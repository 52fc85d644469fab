/* Commands in sandboxes that bubblewrap makes. */

#ifndef HOLDFAST_BUBBLEWRAP_H
#define HOLDFAST_BUBBLEWRAP_H

#include "spawn.h"

/* In a child: runs bubblewrap, in it this program as init (init.h), and below that `program`. */
_Noreturn void run_bubblewrap(const struct program *p, const char *program, struct failure *failure);

#endif
