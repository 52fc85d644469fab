/* From an order to a command that runs. */

#define _GNU_SOURCE
#include "shim.h"
#include "spawn.h"
#include "system.h"
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Reading the order.  One that makes no sense ends the shim. */

struct cursor {
    char *at;
    const char *end;
};

static const char *next_text(struct cursor *cursor)
{
    char *text = cursor->at;
    size_t length = strnlen(text, cursor->end - text);
    if (text + length >= cursor->end)
        _exit(EXIT_BROKEN);
    cursor->at = text + length + 1;
    return text;
}

static void skip_texts(struct cursor *cursor, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++)
        next_text(cursor);
}

/* Copies texts that are needed for longer than the order is there. */
static char *copy_texts(struct cursor *cursor, uint32_t count)
{
    char *first = cursor->at;
    skip_texts(cursor, count);
    char *copy = malloc(cursor->at - first + 1);
    if (!copy)
        _exit(EXIT_BROKEN);
    memcpy(copy, first, cursor->at - first);
    return copy;
}

static void read_sandbox(struct cursor *cursor, const struct order *order, struct program *p, struct sandbox *sandbox)
{
    p->confined = 1;
    p->confinement.powerless = !!(order->flags & START_POWERLESS);
    p->domain = !!(order->flags & START_DOMAIN);
    if (order->flags & START_WRAPPED)
        p->wrapper = next_text(cursor);
    char *masks = copy_texts(cursor, order->masks);
    sandbox->rules = copy_texts(cursor, order->rules);
    sandbox->terms = (struct witness_terms){.rules = sandbox->rules, .rule_count = order->rules,
                                            .guards = !!(order->flags & START_GUARD),
                                            .network = !!(order->flags & START_NETWORK),
                                            .pipes = p->wrapper && !p->domain};
    p->rules = sandbox->rules, p->rule_count = order->rules;
    sandbox_take_masks(sandbox, masks, order->masks);
}

/* Whether it names our own user, or another one, who is never put into a sandbox: a witness would act for that user with
 * our rights. */
static int is_user(const struct order *order)
{
    if (!order->user)
        return 1;
    return order->user >= USER_IDS_LEAST && order->user <= USER_IDS_MOST && !(order->flags & START_CONFINED);
}

static void read_program(const struct order *order, char *body, struct program *p, struct sandbox *sandbox)
{
    uint64_t limits = (uint64_t)order->limits * sizeof(struct limit);
    uint64_t user = (uint64_t)order->user * sizeof *p->user, before = limits + user;
    if (before + order->filter > order->size || !is_user(order))
        _exit(EXIT_BROKEN);
    struct cursor cursor = {body + before + order->filter, body + order->size};
    p->limits = (const struct limit *)body, p->limit_count = order->limits;
    p->user = (const uint32_t *)(body + limits), p->user_ids = order->user;
    p->confinement = (struct confinement){body + before, order->filter, -1, -1, 0};
    p->cwd = next_text(&cursor);
    p->groups = cursor.at, p->group_count = order->groups;
    skip_texts(&cursor, order->groups);
    p->name = next_text(&cursor);
    if (order->flags & START_SEARCH)
        p->path = next_text(&cursor);
    if (order->flags & START_CONFINED)
        read_sandbox(&cursor, order, p, sandbox);
    p->argv = calloc((size_t)order->arguments + order->variables + 2, sizeof(char *));
    if (!p->argv)
        _exit(EXIT_BROKEN);
    p->env = p->argv + order->arguments + 1;
    for (uint32_t at = 0; at < order->arguments; at++)
        p->argv[at] = (char *)next_text(&cursor);
    for (uint32_t at = 0; at < order->variables; at++)
        p->env[at] = (char *)next_text(&cursor);
}

/* ---- Its descriptors. */

struct descriptors {
    int *files;
    int count;
};

static int take_last(struct descriptors *given)
{
    if (given->count < 1)
        _exit(EXIT_BROKEN);
    return given->files[--given->count];
}

/* What is held for the server while the command runs.  The last one of a place is not needed any more. */
static void take_places(struct shim *shim, const struct order *order, struct descriptors *given)
{
    if (order->hold >> PLACES_MOST)
        _exit(EXIT_BROKEN);
    shim_drop(shim, order->hold);
    for (int place = PLACES_MOST - 1; place >= 0; place--)
        if (order->hold >> place & 1)
            shim->places[place] = take_last(given);
    shim->key = order->key;
}

/* The body of an order that came in a file. */
static char *map_body(struct shim *shim, int file, size_t size)
{
    char *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    int error = errno;
    close(file);
    if (mapped == MAP_FAILED)
        shim_report_failed(shim, STAGE_FORK, error);
    return mapped;
}

/* Lays out the standard files.  Returns one that was opened for that, or -1. */
static int set_files(struct shim *shim, const struct order *order, struct program *p, const struct descriptors *given)
{
    int null = -1, next = 0;
    p->terminal = !!(order->flags & START_TERMINAL);
    if (!p->terminal && !(order->flags & START_HAS_STDIN) && (null = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        shim_report_failed(shim, STAGE_FORK, errno);
    for (int at = 0; at < STANDARD_FILES; at++) {
        if (at == 0 && null >= 0) {
            p->files[at] = null;
            continue;
        }
        p->files[at] = next < given->count ? given->files[next] : -1;
        next += !p->terminal; /* A terminal is all three of them. */
    }
    return null;
}

/* The two ends of the socket of a sandbox: the shim's, and that of what is started in it. */
static int connect_sandbox(struct shim *shim, const struct order *order, struct program *p, int handed)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        shim_report_failed(shim, STAGE_FORK, errno);
    shim->sandbox.socket = ends[0];
    p->init_socket = ends[1], p->wrapper_arguments = handed;
    if (order->flags & START_RULESET)
        p->confinement.ruleset = handed;
    if (order->flags & START_WITNESS)
        p->confinement.socket = ends[1];
    return ends[1];
}

static void close_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* ---- Starting. */

/* The child runs its program, or bubblewrap. */
static void enter_state(struct shim *shim, const struct program *p)
{
    if (p->wrapper) {
        shim->state = STARTING; /* Its init says whether the command runs. */
        return;
    }
    sandbox_receive(&shim->sandbox); /* The listener, if there is a witness. */
    close_open(shim->sandbox.socket);
    shim->sandbox.socket = -1;
    shim->state = RUNNING;
    shim_report_started(shim);
}

void shim_start(struct shim *shim, const struct order *order, char *body, int *files, int file_count)
{
    struct descriptors given = {files, file_count};
    struct program p = {.init_socket = -1, .wrapper_arguments = -1};
    struct failure failure = {0, 0};
    char *mapped = NULL;
    int handed = -1, inner = -1;
    if (order->flags & START_IN_FILE)
        body = mapped = map_body(shim, take_last(&given), order->size);
    take_places(shim, order, &given);
    if (order->flags & (START_RULESET | START_WRAPPED))
        handed = take_last(&given);
    read_program(order, body, &p, &shim->sandbox);
    if (p.confined)
        inner = connect_sandbox(shim, order, &p, handed);
    int null = set_files(shim, order, &p, &given);
    shim->leader = spawn(&p, &failure);
    if (shim->leader < 0)
        failure.error = errno, failure.stage = STAGE_FORK;
    for (int at = 0; at < given.count; at++)
        close(given.files[at]);
    close_open(handed), close_open(null), close_open(inner);
    free(p.argv);
    if (mapped)
        munmap(mapped, order->size);
    if (failure.stage) {
        if (shim->leader > 0)
            waitpid(shim->leader, NULL, 0);
        shim_report_failed(shim, failure.stage, failure.error);
    }
    enter_state(shim, &p);
}
