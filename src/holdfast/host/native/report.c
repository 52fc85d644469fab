/* The reports of a shim. */

#define _GNU_SOURCE
#include "shim.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SEND_TRIES = 1000,
    SEND_PAUSE_US = 5000,
};

/* 0 if it was sent or nobody is there to read it; -1 if it could not be sent for so long that it is given up. */
static int send_parts(int socket, struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    for (int tries = 0; sendmsg(socket, &message, MSG_NOSIGNAL) < 0 && !peer_is_gone(errno); tries++) {
        if (tries == SEND_TRIES)
            return -1;
        usleep(SEND_PAUSE_US);
    }
    return 0;
}

static struct report report_of(enum news kind, int32_t value, uint32_t detail, const struct usage *usage)
{
    struct report report = {.kind = kind, .value = value, .detail = detail};
    if (usage)
        report.user_us = usage->user_us, report.system_us = usage->system_us, report.peak_kib = usage->peak_kib;
    return report;
}

/* The fork server ends the tree of a shim that ends in this way. */
static void send_or_end(struct shim *shim, struct iovec *parts, size_t count)
{
    if (!shim->orphaned && send_parts(shim->control, parts, count) < 0)
        _exit(EXIT_BROKEN);
}

void shim_report(struct shim *shim, enum news kind, int32_t value, uint32_t detail, const struct usage *usage)
{
    struct report report = report_of(kind, value, detail, usage);
    send_or_end(shim, &(struct iovec){&report, sizeof report}, 1);
}

void shim_report_started(struct shim *shim)
{
    struct report report = report_of(REPORT_STARTED, shim->leader, 0, NULL);
    report.shim = getpid();
    send_or_end(shim, &(struct iovec){&report, sizeof report}, 1);
}

void shim_report_exited(struct shim *shim, int32_t value, uint32_t detail, const struct usage *usage)
{
    shim->exit = report_of(REPORT_EXITED, value, detail, usage);
    send_or_end(shim, &(struct iovec){&shim->exit, sizeof shim->exit}, 1);
}

/* ---- Denials. */

static void report_denial(struct shim *shim, const struct denial *denial)
{
    struct report report = report_of(REPORT_DENIAL, denial->count, 0, NULL);
    struct iovec parts[] = {{&report, sizeof report},
                            {(char *)denial->op, strlen(denial->op) + 1},
                            {(char *)denial->subject, strlen(denial->subject)}};
    send_or_end(shim, parts, sizeof parts / sizeof *parts);
}

/* Only who has a key is asked about after the witness has ended. */
static void note_denial(void *context, const struct denial *denial)
{
    struct shim *shim = context;
    if (shim->key) {
        struct denial *more = realloc(shim->denials, (shim->denial_count + 1) * sizeof *more);
        if (!more)
            _exit(EXIT_BROKEN);
        shim->denials = more;
        shim->denials[shim->denial_count++] = *denial;
    }
    report_denial(shim, denial);
}

void shim_report_denials(struct shim *shim)
{
    if (shim->sandbox.witness)
        witness_denials(shim->sandbox.witness, note_denial, shim);
}

void shim_forget_denials(struct shim *shim)
{
    free(shim->denials);
    shim->denials = NULL, shim->denial_count = 0;
}

void shim_report_survivors(struct shim *shim, const int32_t *pids, uint32_t count)
{
    struct report report = report_of(REPORT_SURVIVORS, count, 0, NULL);
    struct iovec parts[] = {{&report, sizeof report}, {(int32_t *)pids, sizeof *pids * count}};
    send_or_end(shim, parts, sizeof parts / sizeof *parts);
}

/* ---- Everything again. */

/* Sends what the shim holds.  -1 if that cannot be now: the socket is full, or too many descriptors are on their way. */
static int send_state(struct shim *shim)
{
    struct report report = report_of(REPORT_STATE, shim->leader, 0, NULL);
    struct state state = {.key = shim->key, .asked = shim->asked};
    int files[PLACES_MOST], count = 0;
    report.shim = getpid();
    state.flags = (shim->goal == RELEASE ? STATE_RELEASED : 0) | (shim->goal == KILL ? STATE_KILLED : 0)
                  | (shim->state >= RUNNING ? STATE_STARTED : 0);
    for (int place = 0; place < PLACES_MOST; place++)
        if (shim->places[place] >= 0)
            report.detail |= 1U << place, files[count++] = shim->places[place];
    struct iovec parts[] = {{&report, sizeof report}, {&state, sizeof state}};
    return send_descriptors(shim->control, parts, 2, files, count) < 0 && !peer_is_gone(errno) ? -1 : 0;
}

void shim_answer(struct shim *shim)
{
    if (send_state(shim) < 0)
        return;
    shim->is_asked = 0;
    if (shim->state >= RUNNING)
        shim_report_started(shim);
    for (uint32_t at = 0; at < shim->denial_count; at++)
        report_denial(shim, &shim->denials[at]);
    if (shim->state >= EXITED)
        send_or_end(shim, &(struct iovec){&shim->exit, sizeof shim->exit}, 1);
    if (shim->survivors_reported && shim->state != OVER)
        tree_report_survivors(shim);
    if (shim->state == OVER)
        shim_report(shim, REPORT_EMPTY, 0, 0, &shim->usage);
}

_Noreturn void shim_report_failed(struct shim *shim, enum start_stage stage, int error)
{
    sandbox_end(&shim->sandbox); /* Whoever reads the report finds everything as it was. */
    shim_report(shim, REPORT_FAILED, error, stage, NULL);
    _exit(0);
}
