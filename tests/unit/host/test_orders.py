"""What is said to a shim and what it tells, byte by byte."""

from __future__ import annotations

import resource
import struct

import pytest

from holdfast.host.orders import StartOrder, StartStage, stage_of
from holdfast.host.sandbox.confinement import Confinement
from holdfast.reports import News, Report
from tests.fakes.fork_server import (
    CONFINED,
    GUARDED,
    HAS_STDIN,
    IN_FILE,
    ORDER,
    POWERLESS,
    SEARCH,
    START,
    TERMINAL,
    WITNESS,
    WRAPPED,
)

INLINE = 65_536
"""Bytes of an order that go into a message."""

PLAIN = StartOrder(cwd=b"/", program=b"/p", argv=[b"p"], env=[])
NONE = 0, 0, 0
"""The numbers of a sandbox: bytes of the filter, masks, rules."""
UNKEYED = 0, 0, 0
"""No place, no other user, and no key."""


# Orders.


@pytest.mark.parametrize(
    ("order", "flags", "counts", "sandbox", "body"),
    [
        (PLAIN, 0, (1, 0, 0, 0), NONE, b"/\0/p\0p\0"),
        (
            StartOrder(cwd=b"/", program=b"/p", argv=[b"", b"a", b""], env=[b"A=", b"=", b""], stdin=True),
            HAS_STDIN,
            (3, 3, 0, 0),
            NONE,
            b"/\0/p\0\0a\0\0A=\0=\0\0",
        ),
        (
            StartOrder(cwd=b"/", program=b"p", argv=[], env=[], path=b""),
            SEARCH,
            (0, 0, 0, 0),
            NONE,
            b"/\0p\0\0",
        ),
        (
            StartOrder(
                cwd=b"/\xff",
                program=b"p",
                argv=[b"p", b"x"],
                env=[b"A=1"],
                path=b"/bin:",
                terminal=True,
                limits=[(resource.RLIMIT_NOFILE, 64, 2**64 - 1), (resource.RLIMIT_CPU, 1, 3)],
                groups=[b"/g/1", b"/g/2"],
            ),
            TERMINAL | SEARCH,
            (2, 1, 2, 2),
            NONE,
            struct.pack("=6Q", 7, 64, 2**64 - 1, 0, 1, 3) + b"/\xff\0/g/1\0/g/2\0p\0/bin:\0p\0x\0A=1\0",
        ),
        (
            StartOrder(
                cwd=b"/",
                program=b"/p",
                argv=[b"p"],
                env=[],
                confinement=Confinement(b"FILTER.8", powerless=True),
            ),
            CONFINED | POWERLESS,
            (1, 0, 0, 0),
            (8, 0, 0),
            b"FILTER.8/\0/p\0p\0",
        ),
        (
            StartOrder(
                cwd=b"/",
                program=b"p",
                argv=[b"p"],
                env=[b"A=1"],
                path=b"/bin",
                limits=[(resource.RLIMIT_CPU, 1, 3)],
                confinement=Confinement(
                    b"FILTER.8",
                    wrapper=b"/bwrap",
                    masks=(b"/m", b"/n"),
                    rules=(b"r/", b"w/\xff", b"m/m"),
                    witness=True,
                    guard=True,
                ),
            ),
            SEARCH | CONFINED | WRAPPED | WITNESS | GUARDED,
            (1, 1, 1, 0),
            (8, 2, 3),
            struct.pack("=3Q", 0, 1, 3) + b"FILTER.8/\0p\0/bin\0/bwrap\0/m\0/n\0r/\0w/\xff\0m/m\0p\0A=1\0",
        ),
    ],
    ids=["plain", "empty texts", "empty path", "everything", "a filter", "a whole sandbox"],
)
def test_an_order_is_a_head_and_texts_that_each_end_with_a_nul(
    order: StartOrder, flags: int, counts: tuple[int, ...], sandbox: tuple[int, ...], body: bytes
) -> None:
    """The other side counts texts; what is absent must not stand for an empty one."""
    head, rest = order.encode()

    assert (ORDER.unpack(head), rest) == ((START, flags, *counts, len(body), *sandbox, *UNKEYED), body)


def test_the_numbers_of_a_user_come_behind_the_limits() -> None:
    order = StartOrder(
        cwd=b"/",
        program=b"/p",
        argv=[b"p"],
        env=[],
        limits=[(resource.RLIMIT_CPU, 1, 3)],
        user=(2**32 - 2, 5, 7),
    )
    body = struct.pack("=3Q3I", 0, 1, 3, 2**32 - 2, 5, 7) + b"/\0/p\0p\0"

    head, rest = order.encode()

    assert (ORDER.unpack(head), rest) == ((START, 0, 1, 0, 1, 0, len(body), *NONE, 0, 3, 0), body)


def of_size(size: int) -> StartOrder:
    """An order whose texts take so many bytes."""
    texts = len(PLAIN.encode()[1])
    return StartOrder(cwd=b"/", program=b"/p", argv=[b"p"], env=[b"x" * (size - texts - 1)])


@pytest.mark.parametrize(("size", "flags"), [(INLINE, 0), (INLINE + 1, IN_FILE)])
def test_an_order_that_fits_into_no_message_says_that_it_is_in_a_file(size: int, flags: int) -> None:
    """Its size is that of the file."""
    head, body = of_size(size).encode()

    assert (ORDER.unpack(head), len(body)) == ((START, flags, 1, 1, 0, 0, size, *NONE, *UNKEYED), size)


# News.


@pytest.mark.parametrize(
    ("detail", "by_signal", "alone"), [(0, False, False), (1, True, False), (2, False, True), (3, True, True)]
)
def test_an_exit_says_whether_it_was_a_signal_and_whether_anybody_is_left(
    detail: int, *, by_signal: bool, alone: bool
) -> None:
    report = Report(News.EXITED, 9, detail)

    assert (report.by_signal, report.alone) == (by_signal, alone)


def test_a_failure_says_at_which_stage() -> None:
    """The numbers are the other side's too."""
    stages = [stage_of(Report(News.FAILED, 2, detail)) for detail in range(1, 11)]

    assert stages == [
        StartStage.FORK,
        StartStage.TERMINAL,
        StartStage.DIRECTORY,
        StartStage.SEARCH,
        StartStage.PROGRAM,
        StartStage.LIMIT,
        StartStage.GROUP,
        StartStage.SANDBOX,
        StartStage.HIDDEN,
        StartStage.NO_GROUP,
    ]
