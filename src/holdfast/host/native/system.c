/* What several parts ask of the kernel. */

#define _GNU_SOURCE
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static const int ignored[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE,
                              SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU};

static void dispose(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    for (size_t at = 0; at < sizeof ignored / sizeof *ignored; at++)
        sigaction(ignored[at], &action, NULL);
}

void ignore_signals(void) { dispose(SIG_IGN); }

void restore_signals(void) { dispose(SIG_DFL); }

void reset_signals(void)
{
    enum { SIGNALS = 64, MASK_BYTES = 8 };
    unsigned long by_default[8] = {0};
    for (int number = 1; number <= SIGNALS; number++)
        syscall(SYS_rt_sigaction, number, by_default, NULL, MASK_BYTES);
}

int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void read_beginning(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, room - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
}

int peer_is_gone(int error)
{
    return error == EPIPE || error == ECONNRESET || error == ENOTCONN || error == EBADF;
}

static int send_with(int socket, struct msghdr *message, const int *files, int count, int flags)
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int) * SEND_MOST)] = {0};
    if (count) {
        message->msg_control = space, message->msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *extra = (struct cmsghdr *)space;
        extra->cmsg_level = SOL_SOCKET, extra->cmsg_type = SCM_RIGHTS;
        extra->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(extra), files, sizeof(int) * count);
    }
    return sendmsg(socket, message, MSG_NOSIGNAL | flags) < 0 ? -1 : 0;
}

int send_descriptor(int socket, const void *data, size_t size, int fd)
{
    struct iovec part = {(void *)data, size};
    return send_with(socket, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, &fd, 1, 0);
}

int send_descriptors(int socket, struct iovec *parts, size_t part_count, const int *files, int count)
{
    return send_with(socket, &(struct msghdr){.msg_iov = parts, .msg_iovlen = part_count}, files, count, MSG_DONTWAIT);
}

void close_from(int first)
{
    if (syscall(SYS_close_range, first, ~0U, 0) < 0)
        for (int fd = first; fd < 65536; fd++)
            close(fd);
}

int receive_descriptors(int socket, void *data, size_t size, int *files, int most, ssize_t *got)
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int) * RECEIVE_MOST)];
    struct iovec part = {data, size};
    /* CMSG_SPACE is rounded up, and the kernel fills that with one descriptor more: CMSG_LEN is exact. */
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = CMSG_LEN(sizeof(int) * (most < RECEIVE_MOST ? most : RECEIVE_MOST))};
    int count = 0;
    *got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *extra = *got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (extra && extra->cmsg_level == SOL_SOCKET && extra->cmsg_type == SCM_RIGHTS) {
        count = (extra->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(files, CMSG_DATA(extra), sizeof(int) * count);
    }
    if (*got >= 0 && message.msg_flags & MSG_CTRUNC) {
        while (count)
            close(files[--count]);
        *got = -1, errno = EMFILE;
    }
    return count;
}
