"""The socket between us and a shim."""

from __future__ import annotations

import os
import resource
import socket
import struct
from collections.abc import Iterator

import pytest

from holdfast.host.orders import StartOrder
from holdfast.host.sandbox.confinement import Confinement, Held
from holdfast.host.shim import Shim
from holdfast.model import Usage
from holdfast.reports import LOST, News, Report
from holdfast.sandbox import Denial
from tests.fakes.fork_server import (
    CONFINED,
    DENIAL,
    KILL,
    ORDER,
    RELEASE,
    REPORT,
    RULESET,
    SIGNAL,
)
from tests.fakes.process import nothing_left_open

INLINE = 65_536
"""Bytes of an order that go into a message."""

PLAIN = StartOrder(cwd=b"/", program=b"/p", argv=[b"p"], env=[])


def of_size(size: int) -> StartOrder:
    """An order whose texts take so many bytes."""
    texts = len(PLAIN.encode()[1])
    return StartOrder(cwd=b"/", program=b"/p", argv=[b"p"], env=[b"x" * (size - texts - 1)])


# The socket.


@pytest.fixture
def ends() -> Iterator[tuple[Shim, socket.socket]]:
    """Our end, and the one that a shim would have."""
    with nothing_left_open():
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.setblocking(False)
        shim = Shim(ours)
        yield shim, theirs
        shim.close()
        theirs.close()


Ends = tuple[Shim, socket.socket]


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
    shim, far = ends
    files = [os.open(path, os.O_RDONLY) for path in ("/", "/proc", "/dev")]

    shim.start(PLAIN, files)

    assert received(far) == (b"".join(PLAIN.encode()), ["/", "/proc", "/dev"])
    for fd in files:
        os.close(fd)


@pytest.mark.parametrize("flag", [RULESET, 0])
def test_what_a_sandbox_hands_over_comes_after_the_standard_files(ends: Ends, flag: int) -> None:
    """A Landlock ruleset, or what bubblewrap is told; the confinement keeps its own."""
    shim, far = ends
    held = Held(os.open("/proc", os.O_RDONLY))
    confinement = Confinement(b"FILTER.8", ruleset=held) if flag else Confinement(b"FILTER.8", arguments=held)
    order = StartOrder(cwd=b"/", program=b"/p", argv=[b"p"], env=[], confinement=confinement)
    file = os.open("/", os.O_RDONLY)

    shim.start(order, [file])

    data, files = received(far)
    assert (data, files) == (b"".join(order.encode()), ["/", "/proc"])
    assert ORDER.unpack_from(data)[1] == CONFINED | flag
    assert confinement.handed is not None
    assert os.readlink(f"/proc/self/fd/{confinement.handed.fileno()}") == "/proc"
    os.close(file)


def test_a_start_may_come_without_files(ends: Ends) -> None:
    """A terminal is opened by its path."""
    shim, far = ends

    shim.start(PLAIN, [])

    assert received(far) == (b"".join(PLAIN.encode()), [])


def test_a_long_order_comes_in_a_file_after_the_others(ends: Ends) -> None:
    """A message has a bound that arguments and variables do not keep."""
    shim, far = ends
    order = of_size(3 * INLINE)
    file = os.open("/", os.O_RDONLY)

    shim.start(order, [file])

    data, files, _, _ = socket.recv_fds(far, ORDER.size + 1, 8)
    assert (data, len(files)) == (order.encode()[0], 2)
    assert os.readlink(f"/proc/self/fd/{files[0]}") == "/"
    assert os.pread(files[1], 4 * INLINE, 0) == order.encode()[1]
    for fd in (file, *files):
        os.close(fd)


def test_what_comes_later_is_a_head_alone(ends: Ends) -> None:
    shim, far = ends

    shim.release()
    shim.kill()
    shim.signal(15)

    told = [received(far), received(far), received(far)]
    expected = (RELEASE, 0), (KILL, 0), (SIGNAL, 15)
    assert told == [(ORDER.pack(what, flags, *[0] * 11), []) for what, flags in expected]


def test_a_shim_is_there_until_its_end_of_the_socket_closes(ends: Ends) -> None:
    """Whatever it has told before: until then it keeps the number of its command from others."""
    shim, far = ends
    far.send(REPORT.pack(3, 9, 1, 0, 5, 6, 7))
    before = shim.is_there()

    far.close()
    after = shim.is_there()
    shim.close()

    assert (before, after, shim.is_there()) == (True, False, False)


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
    shim, far = ends
    far.send(message)

    assert shim.receive() == report


def test_news_comes_one_piece_at_a_time_and_none_is_no_wait(ends: Ends) -> None:
    shim, far = ends
    before = shim.receive()
    far.send(REPORT.pack(1, 7, 0, 8, 0, 0, 0))
    far.send(REPORT.pack(4, 0, 0, 0, 0, 0, 0))

    told = [shim.receive(), shim.receive(), shim.receive()]

    assert before is None
    assert [report and report.news for report in told] == [News.STARTED, News.EMPTY, None]


def test_a_shim_that_is_gone_is_lost_after_its_last_words(ends: Ends) -> None:
    """What it told before it was killed is true all the same."""
    shim, far = ends
    far.send(REPORT.pack(1, 7, 0, 8, 0, 0, 0))
    far.close()

    told = [shim.receive(), shim.receive(), shim.receive()]

    assert [report and report.news for report in told] == [News.STARTED, News.LOST, News.LOST]
    assert told[1] is LOST


def test_a_shim_that_went_without_having_read_everything_is_lost_too(ends: Ends) -> None:
    """The kernel has another word for it."""
    shim, far = ends
    shim.release()
    far.close()

    assert (shim.receive(), shim.receive()) == (LOST, LOST)


def test_the_last_words_of_who_has_not_read_everything_are_heard(ends: Ends) -> None:
    """The kernel names the loss first; the reason of a start that failed comes behind it."""
    shim, far = ends
    shim.start(PLAIN, [])
    far.send(REPORT.pack(2, 12, 1, 0, 0, 0, 0))
    far.close()

    told = [shim.receive(), shim.receive()]

    assert [report and report.news for report in told] == [News.FAILED, News.LOST]


def test_an_order_to_a_shim_that_is_gone_is_no_error(ends: Ends) -> None:
    """It may have gone in this moment; that is told as news, once and in one place."""
    shim, far = ends
    far.close()

    shim.start(PLAIN, [])
    shim.start(of_size(2 * INLINE), [])
    shim.release()
    shim.kill()

    assert shim.receive() is LOST


def test_a_shim_may_be_given_up_twice(ends: Ends) -> None:
    shim, far = ends

    shim.close()
    shim.close()

    assert far.recv(1) == b""


def test_without_memory_for_a_long_order_the_caller_is_told_and_nothing_is_left(ends: Ends) -> None:
    """It cannot wait, and nothing was said to the shim yet."""
    shim, far = ends
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            shim.start(of_size(2 * INLINE), [])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    with pytest.raises(BlockingIOError):
        far.recv(1)
