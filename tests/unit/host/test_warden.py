"""The socket between us and a warden."""

from __future__ import annotations

import os
import resource
import socket
import struct
from collections.abc import Iterator

import pytest

from holdfast.host.orders import LOST, News, Order, Report
from holdfast.host.sandbox.cage import Cage, Held
from holdfast.host.warden import Warden
from holdfast.model import Usage
from holdfast.sandbox import Denial
from tests.fakes.nursery import (
    CONFINED,
    DENIAL,
    KILL,
    ORDER,
    RELEASE,
    REPORT,
    RULESET,
)
from tests.fakes.process import nothing_left_open

INLINE = 65_536
"""Bytes of an order that go into a message."""

PLAIN = Order(cwd=b"/", program=b"/p", argv=[b"p"], env=[])


def of_size(size: int) -> Order:
    """An order whose texts take so many bytes."""
    texts = len(PLAIN.encode()[1])
    return Order(cwd=b"/", program=b"/p", argv=[b"p"], env=[b"x" * (size - texts - 1)])


# The socket.


@pytest.fixture
def ends() -> Iterator[tuple[Warden, socket.socket]]:
    """Our end, and the one that a warden would have."""
    with nothing_left_open():
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.setblocking(False)
        warden = Warden(ours)
        yield warden, theirs
        warden.close()
        theirs.close()


Ends = tuple[Warden, socket.socket]


def received(end: socket.socket) -> tuple[bytes, list[str]]:
    """The next message, and what the descriptors are that came with it."""
    data, files, _, _ = socket.recv_fds(end, ORDER.size + INLINE, 8)
    names = []
    for fd in files:
        names.append(os.readlink(f"/proc/self/fd/{fd}"))
        os.close(fd)
    return data, names


def test_a_start_hands_over_the_order_and_the_files_in_their_sequence(ends: Ends) -> None:
    """Who mixes them up gives a child its own output to read."""
    warden, far = ends
    files = [os.open(path, os.O_RDONLY) for path in ("/", "/proc", "/dev")]

    warden.start(PLAIN, files)

    assert received(far) == (b"".join(PLAIN.encode()), ["/", "/proc", "/dev"])
    for fd in files:
        os.close(fd)


@pytest.mark.parametrize("flag", [RULESET, 0])
def test_what_a_sandbox_hands_over_comes_after_the_standard_files(ends: Ends, flag: int) -> None:
    """A Landlock ruleset, or what bubblewrap is told; the cage keeps its own."""
    warden, far = ends
    held = Held(os.open("/proc", os.O_RDONLY))
    cage = Cage(b"FILTER.8", ruleset=held) if flag else Cage(b"FILTER.8", arguments=held)
    order = Order(cwd=b"/", program=b"/p", argv=[b"p"], env=[], cage=cage)
    file = os.open("/", os.O_RDONLY)

    warden.start(order, [file])

    data, files = received(far)
    assert (data, files) == (b"".join(order.encode()), ["/", "/proc"])
    assert ORDER.unpack_from(data)[1] == CONFINED | flag
    assert cage.handed is not None
    assert os.readlink(f"/proc/self/fd/{cage.handed.fileno()}") == "/proc"
    os.close(file)


def test_a_start_may_come_without_files(ends: Ends) -> None:
    """A terminal is opened by its path."""
    warden, far = ends

    warden.start(PLAIN, [])

    assert received(far) == (b"".join(PLAIN.encode()), [])


def test_a_long_order_comes_in_a_file_after_the_others(ends: Ends) -> None:
    """A message has a bound that arguments and variables do not keep."""
    warden, far = ends
    order = of_size(3 * INLINE)
    file = os.open("/", os.O_RDONLY)

    warden.start(order, [file])

    data, files, _, _ = socket.recv_fds(far, ORDER.size + 1, 8)
    assert (data, len(files)) == (order.encode()[0], 2)
    assert os.readlink(f"/proc/self/fd/{files[0]}") == "/"
    assert os.pread(files[1], 4 * INLINE, 0) == order.encode()[1]
    for fd in (file, *files):
        os.close(fd)


def test_what_comes_later_is_a_head_alone(ends: Ends) -> None:
    warden, far = ends

    warden.release()
    warden.kill()

    told = [received(far), received(far)]
    assert told == [(ORDER.pack(what, *[0] * 9), []) for what in (RELEASE, KILL)]


@pytest.mark.parametrize(
    ("message", "report"),
    [
        (REPORT.pack(1, 7, 0, 8, 0, 0, 0), Report(News.STARTED, 7, 0, 8, Usage(0, 0, 0), [])),
        (REPORT.pack(2, 2, 4, 0, 0, 0, 0), Report(News.FAILED, 2, 4, 0, Usage(0, 0, 0), [])),
        (REPORT.pack(3, 9, 1, 0, 5, 6, 7), Report(News.EXITED, 9, 1, 0, Usage(5, 6, 7168), [])),
        (
            REPORT.pack(4, 0, 0, 0, 2**40, 2**41, 2**42),
            Report(News.EMPTY, 0, 0, 0, Usage(2**40, 2**41, 2**52), []),
        ),
        (
            REPORT.pack(5, 2, 0, 0, 0, 0, 0) + struct.pack("=2i", 11, 12),
            Report(News.SURVIVORS, 2, 0, 0, Usage(0, 0, 0), [11, 12]),
        ),
        (
            REPORT.pack(5, 256, 0, 0, 0, 0, 0) + struct.pack("=256i", *range(256)),
            Report(News.SURVIVORS, 256, 0, 0, Usage(0, 0, 0), list(range(256))),
        ),
        (
            REPORT.pack(DENIAL, 3, 0, 0, 0, 0, 0) + b"open\0/a\xff b",
            Report(News.DENIAL, denial=Denial("open", "/a\udcff b", 3)),
        ),
        (
            REPORT.pack(DENIAL, 7, 0, 0, 0, 0, 0) + b"\0",
            Report(News.DENIAL, denial=Denial("", "", 7)),
        ),
        (
            REPORT.pack(DENIAL, 1, 0, 0, 0, 0, 0) + b"o" * 15 + b"\0" + b"s" * 1023,
            Report(News.DENIAL, denial=Denial("o" * 15, "s" * 1023, 1)),
        ),
    ],
    ids=["started", "failed", "exited", "empty", "survivors", "many survivors", "denial", "bare", "longest"],
)
def test_news_is_taken_apart(ends: Ends, message: bytes, report: Report) -> None:
    """The kernel counts memory in KiB; everybody above us counts in bytes."""
    warden, far = ends
    far.send(message)

    assert warden.hear() == report


def test_news_comes_one_piece_at_a_time_and_none_is_no_wait(ends: Ends) -> None:
    warden, far = ends
    before = warden.hear()
    far.send(REPORT.pack(1, 7, 0, 8, 0, 0, 0))
    far.send(REPORT.pack(4, 0, 0, 0, 0, 0, 0))

    told = [warden.hear(), warden.hear(), warden.hear()]

    assert before is None
    assert [report and report.news for report in told] == [News.STARTED, News.EMPTY, None]


def test_a_warden_that_is_gone_is_lost_after_its_last_words(ends: Ends) -> None:
    """What it told before it was killed is true all the same."""
    warden, far = ends
    far.send(REPORT.pack(1, 7, 0, 8, 0, 0, 0))
    far.close()

    told = [warden.hear(), warden.hear(), warden.hear()]

    assert [report and report.news for report in told] == [News.STARTED, News.LOST, News.LOST]
    assert told[1] is LOST


def test_a_warden_that_went_without_having_read_everything_is_lost_too(ends: Ends) -> None:
    """The kernel has another word for it."""
    warden, far = ends
    warden.release()
    far.close()

    assert (warden.hear(), warden.hear()) == (LOST, LOST)


def test_the_last_words_of_who_has_not_read_everything_are_heard(ends: Ends) -> None:
    """The kernel names the loss first; the reason of a start that failed comes behind it."""
    warden, far = ends
    warden.start(PLAIN, [])
    far.send(REPORT.pack(2, 12, 1, 0, 0, 0, 0))
    far.close()

    told = [warden.hear(), warden.hear()]

    assert [report and report.news for report in told] == [News.FAILED, News.LOST]


def test_an_order_to_a_warden_that_is_gone_is_no_error(ends: Ends) -> None:
    """It may have gone in this moment; that is told as news, once and in one place."""
    warden, far = ends
    far.close()

    warden.start(PLAIN, [])
    warden.start(of_size(2 * INLINE), [])
    warden.release()
    warden.kill()

    assert warden.hear() is LOST


def test_a_warden_may_be_given_up_twice(ends: Ends) -> None:
    warden, far = ends

    warden.close()
    warden.close()

    assert far.recv(1) == b""


def test_without_memory_for_a_long_order_the_caller_is_told_and_nothing_is_left(ends: Ends) -> None:
    """It cannot wait, and nothing was said to the warden yet."""
    warden, far = ends
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            warden.start(of_size(2 * INLINE), [])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    with pytest.raises(BlockingIOError):
        far.recv(1)
