"""What a user at a terminal is told of the connection."""

from __future__ import annotations

import asyncio
import os
import pty
import tty
from collections.abc import Iterator

import pytest

from holdfast.cli.notice import Notice
from tests.fakes.server import PATIENCE

Ends = tuple[int, int]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Both ends of a terminal: ours, and that of whoever looks at it."""
    master, slave = pty.openpty()
    yield slave, master
    os.close(master)
    os.close(slave)


async def shown(fd: int, size: int) -> bytes:
    """So many bytes, as soon as they are shown."""
    text = b""
    while len(text) < size:
        text += await asyncio.wait_for(asyncio.to_thread(os.read, fd, size - len(text)), PATIENCE)
    return text


LOST = b"holdfast: connection lost, trying again...\r\n"
BACK = b"holdfast: connected again\r\n"


async def test_a_long_break_and_its_end_are_told_once(ends: Ends) -> None:
    slave, master = ends
    notice = Notice(slave, wait=0.0)
    notice.told(False)
    notice.told(False)
    lost = await shown(master, len(LOST))
    notice.told(True)
    notice.told(True)

    assert lost == LOST
    assert await shown(master, len(BACK)) == BACK


async def test_a_short_break_is_not_mentioned(ends: Ends) -> None:
    """Connections break and come back many times a day; nobody has to know."""
    slave, master = ends
    notice = Notice(slave, wait=PATIENCE)
    notice.told(False)
    notice.told(True)
    os.write(slave, b"nothing before this")

    assert await shown(master, 19) == b"nothing before this"


async def test_where_another_program_draws_it_has_lines_of_its_own(ends: Ends) -> None:
    slave, master = ends
    tty.setraw(slave)
    notice = Notice(slave, wait=0.0)
    notice.told(False)

    assert await shown(master, len(LOST) + 2) == b"\r\n" + LOST


async def test_a_terminal_that_is_gone_does_no_harm() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    notice = Notice(writer, wait=0.0)
    notice.told(False)
    await asyncio.to_thread(lambda: None)
    notice.told(True)
    os.close(writer)
