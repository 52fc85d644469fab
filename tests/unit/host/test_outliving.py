"""What a shim is given to hold of a command, and what is made of it by the next server."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.host.orders import HeldPlace
from holdfast.host.outliving import HostFacts, files_of, places_of
from holdfast.host.pty import open_terminal
from holdfast.host.shim import Shim
from holdfast.model import UNLIMITED, Limits, Size, Stream
from holdfast.reports import NO_LIMITS, EnforcedLimits


class Holding:
    """Implements ``outliving.Holding``: opens what it is asked for, and counts."""

    def __init__(self) -> None:
        self.opened: list[int] = []

    def begin(self, facts: HostFacts) -> int:
        return 1

    def open_cursor(self) -> int:
        self.opened.append(os.open(os.devnull, os.O_RDWR))
        return self.opened[-1]


@pytest.fixture
def shim() -> Iterator[Shim]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        made = Shim(ours)
        yield made
        made.close()


def test_a_shim_gets_the_pipes_of_each_command_and_a_cursor_once(shim: Shim) -> None:
    """The cursor stays with the shim over all its commands."""
    holding = Holding()
    outputs = ((Stream.STDOUT, 11), (Stream.STDERR, 12))

    first = places_of(shim, 10, outputs, holding)
    second = places_of(shim, None, outputs, holding)

    (cursor,) = holding.opened
    assert first == {
        HeldPlace.STDIN: 10,
        HeldPlace.STDOUT: 11,
        HeldPlace.STDERR: 12,
        HeldPlace.CURSOR: cursor,
    }
    assert second == {HeldPlace.STDOUT: 11, HeldPlace.STDERR: 12}


def test_a_terminal_is_held_once_for_both_ways(shim: Shim) -> None:
    shim.cursor = os.open(os.devnull, os.O_RDWR)

    assert places_of(shim, 10, ((Stream.PTY, 11),), Holding()) == {HeldPlace.STDOUT: 11}


def test_the_next_server_finds_pipes_and_terminals() -> None:
    with ExitStack() as stack:
        master, peer = open_terminal(Size())
        reader, writer = os.pipe()
        for fd in (master, peer, reader, writer):
            stack.callback(os.close, fd)

        piped = files_of({HeldPlace.STDIN: writer, HeldPlace.STDOUT: reader})
        stdin, outputs = files_of({HeldPlace.STDOUT: master})
        assert stdin is not None
        stack.callback(os.close, stdin)

        assert piped == (writer, ((Stream.STDOUT, reader),))
        assert outputs == ((Stream.PTY, master),)
        assert os.isatty(stdin)
        assert files_of({}) == (None, ())


def test_limits_are_kept_by_the_controllers_that_were_found() -> None:
    limits = Limits(memory=5)

    assert HostFacts(controllers=("memory",)).limits(limits) == EnforcedLimits(limits, frozenset({"memory"}))
    assert HostFacts().limits(UNLIMITED) is NO_LIMITS
