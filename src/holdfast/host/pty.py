"""Pseudoterminals: opening one, resizing it, and the character that ends its input."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from holdfast.model import Size

_TIOCSPTLCK = 0x40045431
_TIOCGPTPEER = 0x5441
_TIOCSWINSZ = 0x5414
_TIOCGWINSZ = 0x5413

# The requests above are those of the common Linux architectures (x86, Arm, RISC-V, s390).


def open_terminal(size: Size) -> tuple[int, int]:
    """Open a new terminal.  Return the descriptors of our side, which does not block, and of the child's.

    The child gets a descriptor and not a path, because the path may lead to another terminal by the time
    the child runs.
    """
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
        resize(master, size)
        peer = fcntl.ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except BaseException:
        os.close(master)
        raise
    return master, peer


def end_of_file(master: int) -> bytes:
    """Return the character that means the end of input to a terminal, as its settings are now."""
    character: bytes = termios.tcgetattr(master)[6][termios.VEOF]
    return character


def resize(master: int, size: Size) -> None:
    """Set the size of a terminal.  The kernel sends SIGWINCH to its foreground group."""
    fcntl.ioctl(master, _TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))


def size(master: int) -> Size | None:
    """Return the size of a terminal; None if it has none, or is none."""
    try:
        rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(master, _TIOCGWINSZ, bytes(8)))
    except OSError:
        return None
    return Size(rows, cols) if rows and cols else None
