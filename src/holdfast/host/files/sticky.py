"""What the kernel refuses in directories that everybody may write to.

Somebody may have put a link or a file there for others to fall into.  The kernel
looks at that when it follows a link, and when it opens a file that it was asked to
make; whoever follows links and looks for files by himself has to do the same.
"""

from __future__ import annotations

import os
import stat
from functools import cache

_SHARED = stat.S_ISVTX | stat.S_IWOTH


def may_follow(directory: os.stat_result, link: os.stat_result) -> bool:
    """Whether the kernel would follow a link in this directory."""
    return (
        not level("protected_symlinks")
        or directory.st_mode & _SHARED != _SHARED
        or link.st_uid in (os.geteuid(), directory.st_uid)
    )


def may_write(directory: os.stat_result, file: os.stat_result) -> bool:
    """Whether the kernel would open a file in this directory for somebody who would also have made it."""
    kept = level("protected_regular")
    shared_with = stat.S_IWOTH | (stat.S_IWGRP if kept > 1 else 0)
    return (
        not kept
        or not directory.st_mode & stat.S_ISVTX
        or not directory.st_mode & shared_with
        or file.st_uid in (os.geteuid(), directory.st_uid)
    )


@cache
def level(setting: str) -> int:
    """How strict the kernel is; where that cannot be read, as strict as it can be."""
    try:
        with open(f"/proc/sys/fs/{setting}", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 2
