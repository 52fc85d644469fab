"""Whether ``/proc`` tells of our own processes: without that no tree can be ended."""

from __future__ import annotations

import errno
import os

from holdfast.errors import HostUnfit

_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system says if it is short of something."""

_FIX = "without our own no process could be ended: mount -t proc proc"


def check(place: str = "/proc") -> None:
    """See that our own process is there, under the number that we know it by.

    In an empty ``/proc`` nobody is to be found, and in that of another PID namespace
    the numbers are those of others: a tree would look as if it had ended, or a
    stranger as if it were of the tree.

    Raises:
        HostUnfit: It is not so.
        OSError: That cannot be seen now.
    """
    try:
        number = os.readlink(f"{place}/self")
        with open(f"{place}/self/status", "rb") as file:
            status = dict(line.split(b":", 1) for line in file if b":" in line)
    except OSError as error:
        if error.errno in _SHORT:
            raise
        raise HostUnfit(f"{place} cannot be read: {error.strerror}; {_FIX} {place}") from error
    # One number for each namespace from that of the mount down to ours: ours must be the first.
    numbers = status.get(b"NSpid", number.encode()).split()
    if number != str(os.getpid()) or len(numbers) != 1:
        raise HostUnfit(f"{place} is that of another PID namespace; {_FIX} {place}")
