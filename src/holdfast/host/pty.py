"""Terminals: open one, resize it."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from holdfast.model import Size

_TIOCSPTLCK = 0x40045431
_TIOCGPTPEER = 0x5441
_TIOCSWINSZ = 0x5414

# The requests above are those of the common Linux architectures (x86, Arm, RISC-V, s390).


def open_terminal(size: Size) -> tuple[int, int]:
    """A new terminal: the descriptors of our side, which does not block, and of the child's.

    The child is handed the descriptor and no path: the path may lead to another's
    terminal by the time the child runs.
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
    """The character that means the end of input to the terminal, as its user has set it."""
    character: bytes = termios.tcgetattr(master)[6][termios.VEOF]
    return character


def resize(master: int, size: Size) -> None:
    """Set the size; the kernel tells the foreground group with SIGWINCH."""
    fcntl.ioctl(master, _TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))
