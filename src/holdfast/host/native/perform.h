/* Making a call for a caller: what it asked for, on the descriptors that were judged. */

#ifndef HOLDFAST_PERFORM_H
#define HOLDFAST_PERFORM_H

#include "call.h"
#include "listener.h"

enum { OPENINGS_MOST = 64, OPENING_PAUSE_MS = 5 };

struct opening {
    struct place place;
    uint64_t id;           /* Of the call that waits for it. */
    int flags;
    mode_t mode, mask;
};

/* Files that callers wait to be opened: nobody is at the other end of a named pipe yet, or a lease has to be given up
 * first.  They are tried again every OPENING_PAUSE_MS. */
struct openings {
    struct opening waiting[OPENINGS_MOST];
    int count;
};

/* Makes the call and answers it, or has it wait in `openings`. */
void perform(struct question *q, struct listener *listener, struct openings *openings);
void openings_try(struct openings *openings, struct listener *listener);
void openings_release(struct openings *openings);

/* Gives the caller's own socket an address; 0, or -1 and errno. */
int perform_bind(const struct caller *caller, int number, const void *address, size_t size);

#endif
