/* The descriptor on which the kernel hands system calls over, and the answers to them. */

#ifndef HOLDFAST_LISTENER_H
#define HOLDFAST_LISTENER_H

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

struct listener {
    int fd;
    struct seccomp_notif *asked;   /* The call that is being answered. */
    struct seccomp_notif_resp *reply;
    size_t asked_size, reply_size; /* The kernel's own structures may be larger than those we were compiled with. */
};

/* Takes the descriptor. */
void listener_begin(struct listener *listener, int fd);
void listener_end(struct listener *listener);

/* Receives the next call.  -1 if whoever made it is gone. */
int listener_receive(struct listener *listener);

/* Whether a call still waits for its answer: else its caller is gone, and the number of that may be another's. */
int listener_is_waiting(const struct listener *listener, uint64_t id);

/* The call fails with this error; with 0 it has succeeded. */
void listener_answer(struct listener *listener, uint64_t id, int error);
/* The kernel makes the call. */
void listener_continue(struct listener *listener);
/* The call returns a descriptor of the caller's that is made from `fd`, which is closed. */
void listener_hand_over(struct listener *listener, uint64_t id, int fd, int flags);

#endif
