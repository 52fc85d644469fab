"""The descriptors we were started with."""

from __future__ import annotations

import os


def open_standard_files() -> None:
    """Make sure that descriptors 0 to 2 are taken, so that nothing we open gets one of them."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
