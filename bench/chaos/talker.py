"""What the processes of the chaos say, and the program that says it: one text for both sides.

    python -I -S talker.py MARK ROLE ARGUMENT...

Whoever starts appends a byte to the file MARK, so that a start that was made twice is seen.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

SIZES = (1, 7, 80, 80, 700, 4096, 5000, 30_000)
"""Bytes of one write: below, at and above what a page, a cell of memory and a pipe take."""

_PAGE = 4096


def pieces(seed: int, stream: int, size: int) -> Iterator[bytes]:
    """What is said on a stream, write by write; every page says which one it is, all over."""
    state, at = seed * 2 + stream, 0
    while at < size:
        state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        length = min(SIZES[state >> 40 & 7], size - at)
        first, last = at // _PAGE, (at + length) // _PAGE
        pages = (
            (b"%x.%d.%x." % (seed, stream, page)).ljust(32, b"-") * (_PAGE // 32)
            for page in range(first, last + 1)
        )
        yield b"".join(pages)[at % _PAGE : at % _PAGE + length]
        at += length


def speech(seed: int, stream: int, size: int) -> bytes:
    """All that is said on a stream."""
    return b"".join(pieces(seed, stream, size))


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _make_raw() -> None:
    """Have a terminal pass bytes on as they are."""
    if os.isatty(1):
        import tty

        tty.setraw(1)


def talk(seed: str, size: str, streams: str, code: str, pause: str) -> int:
    """Say ``size`` bytes on each of the streams, in turn, with a pause in milliseconds after each write."""
    _make_raw()
    waiting = [(int(fd), pieces(int(seed), int(fd), int(size))) for fd in streams]
    while waiting:
        for talking in list(waiting):
            piece = next(talking[1], None)
            if piece is None:
                waiting.remove(talking)
            else:
                _write(talking[0], piece)
        time.sleep(int(pause) / 1000)
    if int(code) < 0:
        os.kill(os.getpid(), -int(code))
    return int(code)


def echo(size: str, code: str, pause: str) -> int:
    """Say everything again, up to the end or to so many bytes; slowly if there is a pause."""
    _make_raw()
    _write(1, b"!")
    left = int(size) or 1 << 40
    while left and (data := os.read(0, min(left, 65_536))):
        left -= len(data)
        time.sleep(int(pause) / 1000)
        _write(1, data)
    return int(code)


def _leave(number: int, frame: object) -> None:
    _write(1, b"bye")
    os._exit(9)


def stay(how: str) -> int:
    """Stay until somebody ends this: at the first SIGTERM with a word, or only by force."""
    if how == "polite":
        signal.signal(signal.SIGTERM, _leave)
    elif how == "parent":
        # One that leaves the group, and one that leaves the session.
        for leave in (os.setpgrp, os.setsid):
            if not os.fork():
                leave()
                signal.pause()
    _write(1, b"!")
    while True:
        signal.pause()


def confined(forbidden: str, *words: str) -> int:
    """Try to make a file that the sandbox does not allow; then talk."""
    try:
        os.close(os.open(forbidden, os.O_WRONLY | os.O_CREAT))
    except OSError:
        return talk(*words)
    return 1


def main() -> int:
    mark, role, *words = sys.argv[1:]
    fd = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, b"x")
    os.close(fd)
    return {"talk": talk, "echo": echo, "stay": stay, "confined": confined}[role](*words)  # type: ignore[operator, no-any-return]


if __name__ == "__main__":
    sys.exit(main())
