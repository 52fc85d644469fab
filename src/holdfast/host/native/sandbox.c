/* A shim's side of the sandbox of its command: masks, the witness, and what comes from inside. */

#define _GNU_SOURCE
#include "sandbox.h"
#include "mask.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sandbox_take_masks(struct sandbox *sandbox, char *masks, uint32_t count)
{
    sandbox->masks = masks, sandbox->mask_count = count;
    sandbox->mask_files = calloc((size_t)count + 1, sizeof *sandbox->mask_files);
    if (!sandbox->mask_files)
        _exit(EXIT_BROKEN);
    for (uint32_t at = 0; at < count; at++, masks += strlen(masks) + 1)
        sandbox->mask_files[at] = mask_take(masks);
}

void sandbox_give_masks(struct sandbox *sandbox)
{
    char *mask = sandbox->masks;
    for (uint32_t at = 0; at < sandbox->mask_count; at++, mask += strlen(mask) + 1)
        mask_give(mask, sandbox->mask_files[at]);
    free(sandbox->masks), free(sandbox->mask_files);
    sandbox->masks = NULL, sandbox->mask_files = NULL, sandbox->mask_count = 0;
}

int sandbox_receive(struct sandbox *sandbox)
{
    struct init_news news;
    ssize_t got;
    int listener = -1;
    if (sandbox->socket < 0)
        return 0;
    receive_descriptors(sandbox->socket, &news, sizeof news, &listener, 1, &got);
    if (got != sizeof news) {
        if (listener >= 0)
            close(listener);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            close(sandbox->socket), sandbox->socket = -1;
        return 0;
    }
    if (news.event == INIT_LISTENER)
        sandbox->witness = witness_begin(listener, &sandbox->terms);
    else
        sandbox->last = news;
    return 1;
}

enum start_stage sandbox_failed_stage(const struct sandbox *sandbox)
{
    switch (sandbox->last.event) {
    case INIT_HIDDEN: return STAGE_HIDDEN;
    case INIT_NO_DIRECTORY: return STAGE_DIRECTORY;
    case INIT_NO_LIMIT: return STAGE_LIMIT;
    case INIT_NO_PROGRAM: return STAGE_PROGRAM;
    case INIT_NO_GROUP: return STAGE_GROUP;
    }
    return STAGE_SANDBOX;
}

void sandbox_end(struct sandbox *sandbox)
{
    sandbox_give_masks(sandbox);
    if (sandbox->witness && witness_end(sandbox->witness) < 0)
        sandbox->spoiled = 1;
    free(sandbox->rules);
    if (sandbox->socket >= 0)
        close(sandbox->socket);
    *sandbox = (struct sandbox){.socket = -1, .spoiled = sandbox->spoiled};
}
