/* The reports of a shim. */

#define _GNU_SOURCE
#include "shim.h"
#include "system.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SEND_TRIES = 1000,
    SEND_PAUSE_US = 5000,
};

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

int send_report(int socket, enum news kind, int32_t value, uint32_t detail, const struct usage *usage)
{
    struct report report = report_of(kind, value, detail, usage);
    return send_parts(socket, &(struct iovec){&report, sizeof report}, 1);
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

static void report_denial(void *context, const struct denial *denial)
{
    struct report report = report_of(REPORT_DENIAL, denial->count, 0, NULL);
    struct iovec parts[] = {{&report, sizeof report},
                            {(char *)denial->op, strlen(denial->op) + 1},
                            {(char *)denial->subject, strlen(denial->subject)}};
    send_or_end(context, parts, sizeof parts / sizeof *parts);
}

void shim_report_denials(struct shim *shim)
{
    if (shim->sandbox.witness)
        witness_denials(shim->sandbox.witness, report_denial, shim);
}

void shim_report_survivors(struct shim *shim, const int32_t *pids, uint32_t count)
{
    struct report report = report_of(REPORT_SURVIVORS, count, 0, NULL);
    struct iovec parts[] = {{&report, sizeof report}, {(int32_t *)pids, sizeof *pids * count}};
    send_or_end(shim, parts, sizeof parts / sizeof *parts);
}

_Noreturn void shim_report_failed(struct shim *shim, enum start_stage stage, int error)
{
    sandbox_end(&shim->sandbox); /* Whoever reads the report finds everything as it was. */
    shim_report(shim, REPORT_FAILED, error, stage, NULL);
    _exit(0);
}
