"""Terminals: open one, name its far side, resize it."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from holdfast.model import Size

_TIOCSPTLCK = 0x40045431
_TIOCGPTN = 0x80045430
_TIOCSWINSZ = 0x5414

# The requests above are those of the common Linux architectures (x86, Arm, RISC-V, s390).


def open_terminal(size: Size) -> tuple[int, bytes]:
    """A new terminal: our side's descriptor, non-blocking, and the path of the child's side.

    The child's side is not opened here: the child that opens it first, as the
    leader of a new session, makes it its controlling terminal by doing so.
    """
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
        (number,) = struct.unpack("i", fcntl.ioctl(master, _TIOCGPTN, bytes(4)))
        resize(master, size)
    except BaseException:
        os.close(master)
        raise
    return master, b"/dev/pts/%d" % number


def end_of_file(master: int) -> bytes:
    """The character that means the end of input to the terminal, as its user has set it."""
    character: bytes = termios.tcgetattr(master)[6][termios.VEOF]
    return character


def resize(master: int, size: Size) -> None:
    """Set the size; the kernel tells the foreground group with SIGWINCH."""
    fcntl.ioctl(master, _TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))
