"""Ways that need luck: part of ``intruder.py``."""

from __future__ import annotations

import ctypes
import os
import threading

from tests.fakes.intruder_files import AT_FDCWD, RENAME_EXCHANGE, RENAMEAT2, About, Way, call, libc

RACES: dict[str, Way] = {}


def way(function: Way) -> Way:
    RACES[function.__name__] = function
    return function


class _Swapper:
    """Does something again and again while another tries its luck."""

    def __init__(self, again: Way, a: About) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(again, a))

    def _work(self, again: Way, a: About) -> None:
        while not self._over.is_set():
            again(a)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@way
def swapped_links(a: About) -> dict[str, int]:
    """A name that leads inside at one moment and outside at the next."""
    inner, outer = os.path.join(a.root, "inner"), os.path.join(a.root, "outer")
    os.symlink(os.path.join(a.root, "file"), inner)
    os.symlink(a.target, outer)
    names = os.fsencode(inner), os.fsencode(outer)

    def swap(_: About) -> None:
        call(RENAMEAT2, AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)

    counts = {"done": 0, "refused": 0}
    with _Swapper(swap, a):
        for _ in range(a.tries):
            try:
                fd = os.open(inner, os.O_WRONLY | os.O_TRUNC)
            except OSError:
                counts["refused"] += 1
                continue
            os.write(fd, b"taken\n")
            os.close(fd)
            counts["done"] += 1
    return counts


@way
def swapped_words(a: About) -> dict[str, int]:
    """A path that is another by the time it is looked at again."""
    ours, theirs = os.fsencode(a.place), os.fsencode(a.target)
    room = ctypes.create_string_buffer(4096)
    call_number = {"open": 2, "unlink": 87}[a.also or "open"]
    counts = {"done": 0, "refused": 0}
    pads = [text.ljust(max(len(ours), len(theirs)) + 1, b"\0") for text in (ours, theirs)]

    def swap(_: About) -> None:
        for pad in pads:
            ctypes.memmove(room, pad, len(pad))

    with _Swapper(swap, a):
        for _ in range(a.tries):
            fd = libc.syscall(ctypes.c_long(call_number), room, os.O_WRONLY | os.O_CREAT, 0o644)
            counts["done" if fd >= 0 else "refused"] += 1
            if fd > 2:
                os.write(fd, b"taken\n")
                os.close(fd)
    return counts


@way
def flood(a: About) -> int:
    """Many calls that somebody has to look at, each about something else."""
    refused = 0
    for number in range(a.tries):
        try:
            os.mkdir(f"{a.directory}/new{number}")
        except OSError:
            refused += 1
    return refused


@way
def flood_of_threads(a: About) -> int:
    """The same from many threads, and with processes that come and go."""
    refused: list[int] = []

    def work(number: int) -> None:
        for turn in range(a.tries):
            pid = os.fork()
            if pid == 0:
                try:
                    os.close(os.open(a.target, os.O_WRONLY))
                except OSError:
                    os._exit(7)
                os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7:
                refused.append(number * turn)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(refused)
