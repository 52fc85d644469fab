/* The descriptor on which the kernel hands system calls over, and the answers to them. */

#define _GNU_SOURCE
#include "listener.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef SECCOMP_IOCTL_NOTIF_ADDFD
struct seccomp_notif_addfd {
    uint64_t id;
    uint32_t flags, srcfd, newfd, newfd_flags;
};
#define SECCOMP_IOCTL_NOTIF_ADDFD SECCOMP_IOW(3, struct seccomp_notif_addfd)
#endif

enum { ADD_AND_SEND = 2 };

void listener_begin(struct listener *listener, int fd)
{
    struct seccomp_notif_sizes sizes = {0};
    syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
    listener->fd = fd;
    listener->asked_size = sizeof *listener->asked, listener->reply_size = sizeof *listener->reply;
    if (sizes.seccomp_notif > listener->asked_size)
        listener->asked_size = sizes.seccomp_notif;
    if (sizes.seccomp_notif_resp > listener->reply_size)
        listener->reply_size = sizes.seccomp_notif_resp;
    listener->asked = malloc(listener->asked_size), listener->reply = malloc(listener->reply_size);
    if (!listener->asked || !listener->reply)
        _exit(EXIT_BROKEN);
}

void listener_end(struct listener *listener)
{
    close(listener->fd);
    free(listener->asked), free(listener->reply);
    listener->fd = -1, listener->asked = NULL, listener->reply = NULL;
}

int listener_receive(struct listener *listener)
{
    memset(listener->asked, 0, listener->asked_size);
    return ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_RECV, listener->asked) < 0 ? -1 : 0;
}

int listener_is_waiting(const struct listener *listener, uint64_t id)
{
    return !ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

static void send_reply(struct listener *listener, uint64_t id, int error, int64_t value, uint32_t flags)
{
    struct seccomp_notif_resp *reply = listener->reply;
    memset(reply, 0, listener->reply_size);
    reply->id = id, reply->error = -error, reply->val = value, reply->flags = flags;
    ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_SEND, reply);
}

void listener_answer(struct listener *listener, uint64_t id, int error) { send_reply(listener, id, error, 0, 0); }

void listener_continue(struct listener *listener)
{
    send_reply(listener, listener->asked->id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

void listener_hand_over(struct listener *listener, uint64_t id, int fd, int flags)
{
    struct seccomp_notif_addfd added = {id, ADD_AND_SEND, fd, 0, flags & O_CLOEXEC};
    int number = ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
    if (number < 0 && errno == EINVAL) {
        added.flags = 0; /* A kernel that does one thing at a time. */
        number = ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
        if (number >= 0)
            send_reply(listener, id, 0, number, 0);
    }
    if (number < 0)
        listener_answer(listener, id, errno);
    close(fd);
}
