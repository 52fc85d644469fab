/* The system calls that a filter hands over, and what one of them is about. */

#ifndef HOLDFAST_CALL_H
#define HOLDFAST_CALL_H

#include "place.h"

#include <linux/seccomp.h>
#include <stdint.h>

enum call_kind {
    CREATES,
    REMOVES,
    MOVES,
    LINKS,
    WRITES,
    ATTRIBUTES,
    OPENS,
    OPENS_BY_STRUCT,
    CREATES_FILE,
    REACHES,               /* The network, without an address. */
    ADDRESSES,             /* The same with one. */
};

struct call {
    int number;
    const char *op;        /* What it is called in reports. */
    signed char kind;
    signed char directory, path;   /* Which arguments; -1 for the working directory. */
    signed char directory2, path2;
    signed char flags, mode;       /* Which arguments; -1 without. */
    int no_follow;         /* The flag that keeps the last link from being followed; -1: always.  Of calls that reach
                            * for the network: whether the first argument is no family of addresses. */
};

/* A call with everything that it is about, found out. */
struct question {
    const struct call *call;
    const struct seccomp_notif *asked;
    struct caller caller;
    uint64_t flags, mode, resolve;
    struct place one, other;
    char path[PATH_MOST], other_path[PATH_MOST]; /* Empty if they have none. */
    int unclear;           /* Whether it could not be found out what the call is about. */
};

/* The line of the table for the number of a call; NULL if every sandbox forbids it. */
const struct call *call_find(int number);

int call_opens(const struct call *call);

/* Finds out what a call is about.  `question_forget` closes what that holds. */
void question_ask(struct question *q, const struct call *call, const struct seccomp_notif *asked,
                  const struct caller *caller);
void question_forget(struct question *q);

#endif
