/* A shim's side of the sandbox of its command: masks, the witness, and what comes from inside. */

#ifndef HOLDFAST_SANDBOX_H
#define HOLDFAST_SANDBOX_H

#include "init.h"
#include "messages.h"
#include "witness.h"

#include <stdint.h>

struct sandbox {
    int socket;                    /* Our end of the socket of what was started in it; -1 if that is closed. */
    struct init_news last;         /* The last that came from there. */
    struct witness *witness;       /* NULL without. */
    struct witness_terms terms;
    char *rules;                   /* Texts, one after the other, as many as `terms` says. */
    char *masks;                   /* The same of the masks, */
    uint32_t mask_count;
    int *mask_files;               /* and descriptors that hold them. */
    int spoiled;                   /* Whether a witness did not end, so that there can be no next command. */
};

/* Takes the masks.  What it is given was allocated, and belongs to it from then on. */
void sandbox_take_masks(struct sandbox *sandbox, char *masks, uint32_t count);
void sandbox_give_masks(struct sandbox *sandbox);

/* Takes what has come from inside; 0 if there is nothing. */
int sandbox_receive(struct sandbox *sandbox);

/* Where the start failed, by the last that came from inside. */
enum start_stage sandbox_failed_stage(const struct sandbox *sandbox);

/* Nobody is left inside, or nobody was ever there: gives everything back. */
void sandbox_end(struct sandbox *sandbox);

#endif
