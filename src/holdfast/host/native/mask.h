/* Masks: empty directories that exist only so that a sandbox has something to mount on. */

#ifndef HOLDFAST_MASK_H
#define HOLDFAST_MASK_H

/* Makes a mask, or joins those who use it.  A descriptor that holds it; -1 if something else is at the path. */
int mask_take(const char *path);

/* Gives it back; the last user removes the directory. */
void mask_give(const char *path, int fd);

#endif
