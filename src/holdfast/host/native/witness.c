/* The witness: answers the calls that the sandbox may refuse, and keeps account of those it does refuse.
 *
 * The filter of a sandboxed command hands over calls that change files, and all calls
 * that reach for the network.  The witness reads what they are about from the caller's
 * memory.  It refuses the network.  On files the kernel decides: the witness lets the
 * call go on, and takes note if it is going to be refused (policy.c).
 *
 * Where the kernel cannot keep a rule, the witness guards it: then no call that changes
 * a name or opens a file to write goes on.  It is made here, on what was judged
 * (guard.c, perform.c), or refused, and what is not clear is refused.  Under mounts
 * only a link has to be guarded, and only calls that move or remove names are made.
 *
 * All of this is done by a thread: a file system that hangs makes it wait, and not the
 * shim.
 */

#define _GNU_SOURCE
#include "witness.h"
#include "call.h"
#include "listener.h"
#include "perform.h"
#include "policy.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    END_MS = 1000,         /* How long the thread may take to end. */
    STACK_BYTES = 512 << 10,
};

struct witness {
    pthread_t thread;
    int wake[2];           /* A pipe: closing its second end ends the thread. */
    struct listener listener;
    struct policy policy;
    int root, foreign;     /* Of the callers, who have no way to another; -1 before the first call. */
    struct question question;
    struct openings openings;
    pthread_mutex_t noting;
    struct denial denials[DENIALS_MOST];
    int denial_count, dropped;
};

/* ---- Denials. */

static void note(struct witness *w, const char *op, const char *subject)
{
    pthread_mutex_lock(&w->noting);
    struct denial *one = w->denials, *end = w->denials + w->denial_count;
    while (one < end && (strcmp(one->op, op) || strncmp(one->subject, subject, SUBJECT_MOST - 1)))
        one++;
    if (one < end)
        one->count++;
    else if (w->denial_count == DENIALS_MOST)
        w->dropped++;
    else {
        w->denial_count++;
        one->count = 1;
        snprintf(one->op, sizeof one->op, "%s", op);
        snprintf(one->subject, sizeof one->subject, "%s", subject);
    }
    pthread_mutex_unlock(&w->noting);
}

void witness_denials(struct witness *w, void (*each)(void *context, const struct denial *denial), void *context)
{
    pthread_mutex_lock(&w->noting);
    for (int at = 0; at < w->denial_count; at++)
        each(context, &w->denials[at]);
    if (w->dropped)
        each(context, &(struct denial){.count = w->dropped});
    pthread_mutex_unlock(&w->noting);
}

/* ---- Callers. */

static int has_other_mounts(pid_t id)
{
    char path[64], ours[64] = "", theirs[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)id);
    return readlink("/proc/self/ns/mnt", ours, sizeof ours - 1) <= 0 || readlink(path, theirs, sizeof theirs - 1) <= 0
           || strcmp(ours, theirs);
}

static struct caller caller_of(struct witness *w)
{
    pid_t thread = w->listener.asked->pid;
    if (w->root < 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/root", (int)thread);
        w->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        w->foreign = has_other_mounts(thread);
    }
    return (struct caller){thread, w->root, w->foreign};
}

static uint64_t argument(const struct witness *w, int which) { return w->listener.asked->data.args[which]; }

static void answer(struct witness *w, int error) { listener_answer(&w->listener, w->listener.asked->id, error); }

static int is_waiting(const struct witness *w) { return listener_is_waiting(&w->listener, w->listener.asked->id); }

/* ---- Files, for a guarded command. */

/* What the kernel would say of a call that the rules do not allow, and that could not have worked anyway. */
static int other_error(const struct question *q)
{
    const struct place *one = &q->one;
    int creates = q->call->kind == CREATES || (q->flags & O_CREAT && q->flags & O_EXCL);
    switch (q->call->kind) {
    case OPENS:
    case OPENS_BY_STRUCT:
    case CREATES_FILE:
    case CREATES:
        if (one->found == PRESENT)
            return creates ? EEXIST : S_ISDIR(one->facts.st_mode) ? EISDIR : EACCES;
        return q->call->kind == CREATES || q->flags & O_CREAT ? EACCES : ENOENT;
    case LINKS:
        if (one->found == PRESENT && q->other.found == PRESENT)
            return EEXIST;
    }
    return one->found == MISSING ? ENOENT : EACCES;
}

static int may_open(const struct guard *guard, struct question *q)
{
    const struct place *one = &q->one;
    if (one->found == MISSING ? !(q->flags & O_CREAT) : q->flags & O_CREAT && q->flags & O_EXCL)
        return 0;
    int verdict = guard_verdict(guard, &q->caller, one);
    if (verdict == 'w')
        return 1;
    /* To read what is there, which somebody may have asked for in this way, too. */
    q->flags &= ~(uint64_t)O_CREAT;
    return verdict == 'r' && one->found == PRESENT && (q->flags & O_ACCMODE) == O_RDONLY && !(q->flags & O_TRUNC)
           && (q->flags & O_TMPFILE) != O_TMPFILE;
}

/* Whether the call may be made, on files of our own mounts, where nobody but the witness keeps the rules. */
static int may(const struct guard *guard, struct question *q)
{
    const struct place *one = &q->one, *other = &q->other;
    const struct caller *caller = &q->caller;
    switch (q->call->kind) {
    case OPENS:
    case OPENS_BY_STRUCT:
    case CREATES_FILE:
        return may_open(guard, q);
    case CREATES:
    case REMOVES:
        return one->found >= MISSING && guard_moves(guard, caller, one);
    case MOVES:
        return one->found == PRESENT && other->found >= MISSING && guard_moves(guard, caller, one)
               && guard_moves(guard, caller, other);
    case LINKS:
        return one->found == PRESENT && other->found == MISSING && guard_verdict(guard, caller, one) == 'w'
               && guard_moves(guard, caller, other);
    case WRITES:
        return one->found == PRESENT && guard_verdict(guard, caller, one) == 'w';
    }
    return 0;
}

/* Under mounts that keep everything else: a link that must stay. */
static int is_kept_by_us(const struct guard *guard, const struct question *q)
{
    return guard_keeps_link(guard, &q->caller, &q->one) || guard_keeps_link(guard, &q->caller, &q->other);
}

/* What the kernel says of paths before it looks at anything else. */
static int first_error(const struct question *q)
{
    int two = q->call->kind == MOVES || q->call->kind == LINKS;
    if (two && q->one.found == NOWHERE && q->one.object >= 0) {
        if (q->other.found != MISSING)
            return q->other.found == PRESENT ? EEXIST : q->other.error;
        return strchr(q->other.name, '/') ? ENOENT : EXDEV;
    }
    if (q->one.found == NOWHERE)
        return q->one.error;
    if (q->call->kind == LINKS && q->one.found == MISSING)
        return ENOENT;
    return two && q->other.found == NOWHERE ? q->other.error : 0;
}

static void guard_call(struct witness *w, struct question *q)
{
    const struct policy *policy = &w->policy;
    if (!is_waiting(w))
        return; /* The caller's number may be another's, and so was what we read. */
    if (q->unclear) {
        /* A caller that hides what it does is not let do it. */
        note(w, q->call->op, "");
        answer(w, EPERM);
        return;
    }
    int error = first_error(q), denied = !error && policy_denies(policy, q);
    if (denied)
        note(w, q->call->op, q->path);
    if (error)
        answer(w, error);
    else if (w->foreign ? is_kept_by_us(&policy->guard, q) : denied)
        answer(w, w->foreign || kernel_allows(policy, q->path) ? EROFS : EACCES);
    else if (!w->foreign && !may(&policy->guard, q))
        answer(w, other_error(q));
    else
        perform(q, &w->listener, &w->openings);
}

static void answer_about_files(struct witness *w, const struct call *call)
{
    struct question *q = &w->question;
    struct caller caller = caller_of(w);
    question_ask(q, call, w->listener.asked, &caller);
    /* Under mounts, the kernel judges everything but what becomes of a link, and by the caller's own rights: ours go
     * further, and we are in no Landlock domain.  Which call it is the caller cannot change. */
    int is_about_links = call->kind == REMOVES || call->kind == MOVES;
    int is_the_kernels = call->kind == ATTRIBUTES || (caller.foreign && !is_about_links);
    if (w->policy.guards && !is_the_kernels)
        guard_call(w, q);
    else {
        /* If the caller is gone its number may be another's, and so was what we read. */
        if (policy_denies(&w->policy, q) && is_waiting(w))
            note(w, call->op, q->path);
        listener_continue(&w->listener);
    }
    question_forget(q);
}

/* ---- The network. */

static const char *family_name(int family, char *text, size_t room)
{
    switch (family) {
    case AF_UNIX: return "AF_UNIX";
    case AF_INET: return "AF_INET";
    case AF_INET6: return "AF_INET6";
    case AF_NETLINK: return "AF_NETLINK";
    case AF_PACKET: return "AF_PACKET";
    case AF_VSOCK: return "AF_VSOCK";
    }
    snprintf(text, room, "AF_%d", family);
    return text;
}

union address {
    struct sockaddr any;
    struct sockaddr_un local;
    char bytes[256];
};

/* The address in a call.  Its size, or -1 and errno. */
static int read_address(struct witness *w, const struct call *call, union address *address)
{
    struct caller caller = caller_of(w);
    uint64_t size = argument(w, call->path + 1);
    memset(address, 0, sizeof *address);
    if (size < sizeof address->any.sa_family || size > sizeof(struct sockaddr_storage)) {
        errno = EINVAL;
        return -1;
    }
    return caller_bytes(&caller, argument(w, call->path), address, size) < 0 ? -1 : (int)size;
}

/* Takes note of an address that was refused, unless it would not have worked anyway. */
static void note_address(struct witness *w, const struct call *call, const union address *address)
{
    char text[PATH_MOST];
    if (address->any.sa_family != AF_UNIX || !address->local.sun_path[0]) {
        note(w, call->op, family_name(address->any.sa_family, text, sizeof text));
        return;
    }
    struct caller caller = caller_of(w);
    struct place place;
    int binds = call->number == SYS_bind;
    place_find(&caller, AT_FDCWD, address->local.sun_path, binds ? NAME : FOLLOW, &place);
    if (place_text(&place, text) == 0
        && (binds ? place.found == MISSING : place.found == PRESENT && could_write(&caller, &place, text)))
        note(w, call->op, text);
    place_release(&place);
}

static void refuse_network(struct witness *w, const struct call *call)
{
    char text[64];
    union address address;
    if (call->kind == REACHES)
        note(w, call->op, call->no_follow ? "" : family_name(argument(w, 0), text, sizeof text));
    else if (read_address(w, call, &address) > 0)
        note_address(w, call, &address);
    answer(w, EPERM);
}

/* A local socket has a name among files, and its socket may be bound to any other address as well: what we were shown
 * is what it gets. */
static void guard_address(struct witness *w, const struct call *call)
{
    union address address;
    struct question *q = &w->question;
    *q = (struct question){.call = call, .asked = w->listener.asked, .caller = caller_of(w),
                           .one = {.found = MISSING, .parent = -1, .object = -1},
                           .other = {.parent = -1, .object = -1}};
    int size = read_address(w, call, &address), error = size < 0 ? errno : 0;
    struct place *one = &q->one;
    if (!is_waiting(w))
        return;
    if (!error && address.any.sa_family == AF_UNIX && address.local.sun_path[0] && size > (int)sizeof(sa_family_t)) {
        place_find(&q->caller, AT_FDCWD, address.local.sun_path, NAME, one);
        if (place_text(one, q->path) < 0)
            q->path[0] = 0;
        int unknown = one->found == UNKNOWN;
        int denied = unknown || (one->found == MISSING && !guard_moves(&w->policy.guard, &q->caller, one));
        error = one->found == PRESENT ? EADDRINUSE : one->found == NOWHERE ? one->error : denied ? EROFS : 0;
        if (denied && (unknown || could_change_directory(&w->policy, q, one, q->path)))
            note(w, call->op, q->path);
    }
    if (!error && perform_bind(&q->caller, argument(w, 0), &address, size) < 0)
        error = errno;
    answer(w, error);
    question_forget(q);
}

/* ---- The thread. */

static void answer_next(struct witness *w)
{
    if (listener_receive(&w->listener) < 0)
        return;
    const struct call *call = call_find(w->listener.asked->data.nr);
    if (!call)
        answer(w, EPERM); /* Forbidden in every sandbox; no path to name. */
    else if (call->kind == ADDRESSES && w->policy.network)
        guard_address(w, call);
    else if (call->kind == REACHES || call->kind == ADDRESSES)
        refuse_network(w, call);
    else
        answer_about_files(w, call);
}

/* Gives up all power over files, as the command has none.  What is needed to look at the command is kept. */
static void drop_power(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct has[2] = {{0}};
    if (unshare(CLONE_FS) < 0 || syscall(SYS_capget, &head, has) < 0)
        _exit(EXIT_BROKEN);
    has[0].effective = has[0].permitted & 1U << CAP_SYS_PTRACE;
    has[1].effective = 0;
    if (syscall(SYS_capset, &head, has) < 0)
        _exit(EXIT_BROKEN);
}

static void *attend(void *given)
{
    struct witness *w = given;
    int open = 1;
    if (w->policy.guards)
        drop_power();
    for (;;) {
        struct pollfd polled[] = {{w->wake[0], POLLIN, 0}, {open ? w->listener.fd : -1, POLLIN, 0}};
        if (poll(polled, 2, w->openings.count ? OPENING_PAUSE_MS : -1) < 0 && errno != EINTR)
            _exit(EXIT_BROKEN);
        if (polled[0].revents)
            return NULL;
        if (polled[1].revents & POLLIN)
            answer_next(w);
        else if (polled[1].revents)
            open = 0; /* Nobody is left who could make a call. */
        openings_try(&w->openings, &w->listener);
    }
}

static void start_thread(struct witness *w)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    /* C libraries disagree on how large a stack is; the paths that are looked at take more than the least of them. */
    if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK_BYTES))
        _exit(EXIT_BROKEN);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&w->thread, &attributes, attend, w))
        _exit(EXIT_BROKEN);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

struct witness *witness_begin(int listener, const struct witness_terms *terms)
{
    size_t size = 0;
    struct witness *w = calloc(1, sizeof *w);
    for (uint32_t at = 0; at < terms->rule_count; at++)
        size += strlen(terms->rules + size) + 1;
    char *rules = malloc(size + 1);
    if (!w || !rules || pipe2(w->wake, O_CLOEXEC) < 0 || pthread_mutex_init(&w->noting, NULL))
        _exit(EXIT_BROKEN);
    memcpy(rules, terms->rules, size);
    w->root = -1;
    w->policy = (struct policy){.rules = rules, .rule_count = terms->rule_count, .guards = terms->guards,
                                .network = terms->network, .pipes = terms->pipes};
    if (terms->guards)
        guard_begin(&w->policy.guard, rules, terms->rule_count);
    listener_begin(&w->listener, listener);
    start_thread(w);
    return w;
}

int witness_end(struct witness *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_MS / 1000;
    close(w->wake[1]);
    if (pthread_timedjoin_np(w->thread, NULL, &until))
        return -1; /* It waits for a disk. */
    close(w->wake[0]);
    openings_release(&w->openings);
    listener_end(&w->listener);
    if (w->root >= 0)
        close(w->root);
    guard_end(&w->policy.guard);
    free(w->policy.rules);
    pthread_mutex_destroy(&w->noting);
    free(w);
    return 0;
}
