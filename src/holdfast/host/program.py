"""Which file a program name stands for."""

from __future__ import annotations

import errno
import os
import stat

from .text import to_bytes

DEFAULT_PATH = "/usr/local/bin:/bin:/usr/bin"
"""For a child whose environment has no PATH at all."""


def find(name: str, path: str, cwd: str) -> bytes:
    """The path to execute for ``name``, as a child with this PATH would find it.

    A name with a slash is itself, relative to ``cwd``.  Any other name is looked
    up in ``path``; a file that may not be executed is passed over and
    only told when nothing better is found.

    Raises:
        OSError: Nothing of that name can be executed.
    """
    if "/" in name:
        return to_bytes(name)
    program = to_bytes(name)
    start = to_bytes(cwd)
    number = errno.ENOENT
    for directory in to_bytes(path).split(b":"):  # An empty part is the working directory.
        candidate = os.path.join(start, directory, program)
        try:
            mode = os.stat(candidate).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            number = errno.EACCES
            continue
        if stat.S_ISREG(mode) and os.access(candidate, os.X_OK):
            return candidate
        number = errno.EACCES
    raise OSError(number, os.strerror(number))
