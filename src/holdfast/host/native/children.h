/* The children of this process. */

#ifndef HOLDFAST_CHILDREN_H
#define HOLDFAST_CHILDREN_H

#include <sys/types.h>

/* Calls `each` with the pid of every child; it may reap that child.  Returns 1 if the list was whole, and 0 if it is
 * not known now who is a child.  The kernel's list may miss children while others end: a caller that has to know all
 * of them asks again. */
int for_each_child(void (*each)(void *context, pid_t pid), void *context);

/* Whether there is any child.  `dead` is one that has ended and is not reaped yet; 0 if there is none.  The kernel
 * answers this whatever /proc shows. */
int has_children(pid_t *dead);

/* The state of a process in one letter, as /proc has it: Z for one that has ended.  0 if it cannot be seen. */
char state_of(pid_t pid);

#endif
