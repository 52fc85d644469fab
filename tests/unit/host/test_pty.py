"""Terminals: open one, resize it."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from holdfast.host.pty import open_terminal, resize
from holdfast.model import Size
from tests.fakes.process import nothing_left_open, python, read_until, started


def test_both_sides_are_one_terminal_of_the_size_asked_for() -> None:
    master, slave = open_terminal(Size(rows=50, cols=132))
    try:
        assert os.get_terminal_size(slave) == os.terminal_size((132, 50))
        os.write(slave, b"hello\n")
        assert os.read(master, 100) == b"hello\r\n"
    finally:
        os.close(slave)
        os.close(master)


def test_our_side_does_not_block_and_neither_leaks_into_children() -> None:
    master, slave = open_terminal(Size())
    try:
        assert (os.get_blocking(master), os.get_blocking(slave)) == (False, True)
        assert (os.get_inheritable(master), os.get_inheritable(slave)) == (False, False)
    finally:
        os.close(slave)
        os.close(master)


def test_our_side_ends_when_the_last_of_the_other_side_closes() -> None:
    master, slave = open_terminal(Size())
    os.close(slave)
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            os.read(master, 100)
    finally:
        os.close(master)


def test_a_size_no_terminal_can_have_leaves_no_descriptor() -> None:
    with nothing_left_open(), pytest.raises(struct.error):
        open_terminal(Size(rows=70_000))


def test_a_new_size_is_told_to_the_child_with_a_signal() -> None:
    """Full-screen programs draw themselves anew on it."""
    source = """if True:
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
        print("ready", flush=True)
        signal.sigwait({signal.SIGWINCH})
        print(*os.get_terminal_size(), flush=True)
    """
    with started(python(source, terminal=Size())) as child:
        ((_, master),) = child.outputs
        read_until(master, b"ready\r\n")

        resize(master, Size(rows=33, cols=111))

        assert read_until(master, b"\n") == b"111 33\r\n"
