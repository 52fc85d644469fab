/* A process that made a system call which was handed over: what it calls its own. */

#ifndef HOLDFAST_CALLER_H
#define HOLDFAST_CALLER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct caller {
    pid_t thread;
    int root;              /* A descriptor of its root directory, which outlives the call. */
    int foreign;           /* Whether its mounts are not ours. */
};

/* The process that it is a thread of. */
pid_t caller_process(const struct caller *caller);

/* A descriptor of its working directory (AT_FDCWD), or of what one of its descriptors stands for; -1 and errno. */
int caller_directory(const struct caller *caller, int number);
int caller_descriptor(const struct caller *caller, int number);

/* If a path leads through what the kernel shows each process of itself (/proc/self, /dev/fd): a descriptor of what that
 * is for the caller, and `*path` is what follows.  -1 if it does not, -2 if there is no such thing. */
int caller_shortcut(const struct caller *caller, const char **path);

/* Copies from its memory: 0, or -1 if that cannot be read. */
int caller_bytes(const struct caller *caller, uint64_t address, void *bytes, size_t size);
/* A text from its memory: 0, or the number of the error that the kernel would give for such a text. */
int caller_text(const struct caller *caller, uint64_t address, char *text, size_t room);

mode_t caller_umask(const struct caller *caller);

/* Its controlling terminal, as the number of a device; 0 if it has none. */
dev_t caller_terminal(const struct caller *caller);

#endif
