/* What several parts ask of the kernel: descriptors over sockets, dispositions of signals, files of /proc. */

#ifndef HOLDFAST_SYSTEM_H
#define HOLDFAST_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The exit status of one of our processes that cannot go on: it was sent a message that makes no sense, or there is
 * no memory.  The fork server then kills what is left of the tree of such a shim. */
enum { EXIT_BROKEN = 3 };

/* The fork server, its shims and the init of a sandbox ignore what somebody may send to all processes of a user or of
 * a terminal.  A command gets the default dispositions back. */
void ignore_signals(void);
void restore_signals(void);

/* Sets every signal back to its default, even those that the C library keeps to itself. */
void reset_signals(void);

/* Milliseconds of a clock that nobody can set. */
int64_t now_ms(void);

/* Reads the beginning of a file as text, which is terminated by a NUL.  Empty if the file cannot be read. */
void read_beginning(const char *path, char *text, size_t room);

/* Whether an error of a socket says that nobody is at its other end.  Any other one is of this moment, for want of
 * memory say. */
int peer_is_gone(int error);

/* Sends a message with one descriptor; 0, or -1 and errno. */
int send_descriptor(int socket, const void *data, size_t size, int fd);

/* The same with some descriptors, or with none, and without waiting. */
int send_descriptors(int socket, struct iovec *parts, size_t part_count, const int *files, int count);

/* Closes all descriptors from this number on. */
void close_from(int first);

enum { RECEIVE_MOST = 16 };        /* Descriptors that receive_descriptors can receive at once, */
enum { SEND_MOST = 200 };          /* and those that send_descriptors can send. */

/* Receives a message without waiting, with up to `most` descriptors.  Returns how many descriptors came;
 * `got` is what recvmsg returned.  If more came than that, or than can be open, none is kept: `got` is -1, and errno
 * EMFILE. */
int receive_descriptors(int socket, void *data, size_t size, int *files, int most, ssize_t *got);

#endif
