/* The witness of a sandboxed command: a thread of its shim that answers the system calls that the filter hands over. */

#ifndef HOLDFAST_WITNESS_H
#define HOLDFAST_WITNESS_H

#include "messages.h"

#include <stdint.h>

struct witness;

struct witness_terms {
    const char *rules;     /* What they are is said in policy.h. */
    uint32_t rule_count;
    int guards;
    int network;
    int pipes;
};

/* Starts a witness, which takes the descriptor on which calls arrive. */
struct witness *witness_begin(int listener, const struct witness_terms *terms);

/* Ends it.  -1 if it does not end in time: then it has everything in use, and the shim must not be used again. */
int witness_end(struct witness *witness);

struct denial {
    uint32_t count;
    char op[OP_MOST];
    char subject[SUBJECT_MOST];
};

/* Calls `each` with all that was refused until now; one without `op` and `subject` counts what was too much to keep. */
void witness_denials(struct witness *witness, void (*each)(void *context, const struct denial *denial), void *context);

#endif
