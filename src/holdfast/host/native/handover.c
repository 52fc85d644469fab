/* The hand-over: how a new server gets what the keeper holds.
 *
 * Nothing here waits.  A server that is not there any more is noticed when its socket is
 * read.  Shims go in batches that the server acknowledges, because the kernel bounds how
 * many descriptors may be on their way.  Shims that end meanwhile are left out.
 */

#define _GNU_SOURCE
#include "keeper.h"
#include "system.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct __attribute__((packed)) hello {
    char kind;
    uint8_t protocol, unused[3];
    uint32_t messages;             /* The version of those to shims. */
    uint64_t generation;
    uint32_t listeners, shims;
};
_Static_assert(sizeof(struct hello) == 25, "it is laid out as in Python");

struct __attribute__((packed)) batch {
    char kind;
    uint32_t count;
};

/* 1 if it was sent, or will never be because nobody is there. */
static int send_now(struct keeper *keeper, struct iovec *parts, size_t part_count, const int *files, int count)
{
    keeper->is_full = 0;
    if (send_descriptors(keeper->server, parts, part_count, files, count) == 0)
        return 1;
    keeper->is_full = errno == EAGAIN;
    if (errno == ETOOMANYREFS)
        shims_drop_unread(&keeper->shims);
    else if (peer_is_gone(errno))
        return 1;
    return 0;
}

int handover_tell(struct keeper *keeper, char letter)
{
    return send_now(keeper, &(struct iovec){&letter, 1}, 1, NULL, 0);
}

static int send_hello(struct keeper *keeper)
{
    struct hello hello = {.kind = 'H', .protocol = KEEPER_PROTOCOL, .messages = MESSAGES_VERSION,
                          .generation = keeper->generation, .listeners = keeper->listener_count,
                          .shims = keeper->shims.count};
    const int files[] = {keeper->arena, keeper->stage[0], keeper->stage[1]};
    return send_now(keeper, &(struct iovec){&hello, sizeof hello}, 1, files, 3);
}

static int send_listener(struct keeper *keeper, struct kept_listener *listener)
{
    char kind = 'L';
    struct iovec parts[] = {{&kind, 1}, {listener->label, listener->size}};
    return send_now(keeper, parts, 2, &listener->socket, 1);
}

static int send_batch(struct keeper *keeper)
{
    struct shims *shims = &keeper->shims;
    struct batch batch = {.kind = 'P'};
    int files[SEND_MOST];
    for (int at = shims->handed; at < shims->count && batch.count < SEND_MOST; at++)
        files[batch.count++] = shims->list[at].end;
    if (!send_now(keeper, &(struct iovec){&batch, sizeof batch}, 1, files, batch.count))
        return 0;
    shims->handed += batch.count;
    return 1;
}

/* Takes one step; 0 if the next one has to wait. */
static int take_step(struct keeper *keeper)
{
    switch (keeper->step) {
    case HELLO:
        keeper->next_listener = 0;
        if (!send_hello(keeper))
            return 0;
        keeper->step = LISTENERS;
        return 1;
    case LISTENERS:
        if (keeper->next_listener == keeper->listener_count)
            keeper->step = BATCH;
        else if (send_listener(keeper, &keeper->listeners[keeper->next_listener]))
            keeper->next_listener++;
        else
            return 0;
        return 1;
    case BATCH:
        if (keeper->shims.handed == keeper->shims.count)
            keeper->step = END;
        else if (send_batch(keeper))
            keeper->step = BATCH_TAKEN;
        else
            return 0;
        return 1;
    case END:
        if (!handover_tell(keeper, 'E'))
            return 0;
        keeper->step = END_TAKEN;
        return 1;
    case BATCH_TAKEN:
    case END_TAKEN:
        break;
    }
    return 0;
}

void handover_go(struct keeper *keeper)
{
    while (take_step(keeper))
        ;
}

void handover_taken(struct keeper *keeper)
{
    if (keeper->phase != TAKING)
        return;
    keeper->heard_at = now_ms();
    if (keeper->step == BATCH_TAKEN)
        keeper->step = BATCH;
    else if (keeper->step == END_TAKEN)
        keeper->phase = RISING;
}
