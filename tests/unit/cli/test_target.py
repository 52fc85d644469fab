"""Where the work is done, and how it is run."""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import socket
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.api.host import Host
from holdfast.cli.report import Failure
from holdfast.cli.target import ConnectionNotice, perform, url_of
from holdfast.errors import UnknownProcess
from tests.fakes.server import PATIENCE


def arguments(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"url": None, "token_file": None, "reconnect": 0.0, **given})


async def nothing(host: Host) -> int:
    return len(await host.processes())


def test_an_option_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "ws://variable:1")

    assert url_of(arguments()) == "ws://variable:1"
    assert url_of(arguments(url="ws://option:1")) == "ws://option:1"
    monkeypatch.setenv("HOLDFAST_URL", "")
    assert url_of(arguments()) is None


def test_without_a_server_the_user_is_told_how_to_get_one() -> None:
    with pytest.raises(Failure, match=r"no server given: use --url .* start one with 'holdfast serve'"):
        perform(arguments(), nothing)


def test_what_can_be_done_here_is_done_here() -> None:
    assert perform(arguments(), nothing, embedded=True) == 0


@pytest.mark.slow
def test_a_server_is_asked(url: str) -> None:
    assert perform(arguments(url=url), nothing) >= 0


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{free.getsockname()[1]}"

        with pytest.raises(Failure, match=f"{url}.*is a server there"):
            perform(arguments(url=url), nothing)


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(Failure, match="ws://HOST:PORT"):
        perform(arguments(url="http://x"), nothing)


def test_errors_of_the_library_become_failures() -> None:
    async def fail(host: Host) -> int:
        raise UnknownProcess("p")

    with pytest.raises(Failure, match="no process named 'p'"):
        perform(arguments(), fail, embedded=True)


def test_a_token_file_that_is_of_no_use_is_refused(tmp_path: Path) -> None:
    """Better than to be refused by the server, in words about tokens."""
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("\n")
    binary.write_bytes(b"\xff")

    for path, words in ((empty, "is empty"), (binary, "it is not text"), (tmp_path / "none", "No such file")):
        with pytest.raises(Failure, match=words):
            perform(arguments(token_file=str(path), url="ws://127.0.0.1:1"), nothing)


@pytest.mark.parametrize("text", ["one\ntwo", "nul\0", "\u00e4"])
def test_a_token_of_more_than_one_line_is_refused(text: str, tmp_path: Path) -> None:
    """It goes into the head of a request, where a line of its own would mean something."""
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(Failure, match="more in it than one line"):
        perform(arguments(token_file=str(path), url="ws://127.0.0.1:1"), nothing)


# The notice of a lost connection.

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
    notice = ConnectionNotice(slave, wait=0.0)
    notice.on_connection_change(False)
    notice.on_connection_change(False)
    lost = await shown(master, len(LOST))
    notice.on_connection_change(True)
    notice.on_connection_change(True)

    assert lost == LOST
    assert await shown(master, len(BACK)) == BACK


async def test_a_short_break_is_not_mentioned(ends: Ends) -> None:
    """Connections break and come back many times a day; nobody has to know."""
    slave, master = ends
    notice = ConnectionNotice(slave, wait=PATIENCE)
    notice.on_connection_change(False)
    notice.on_connection_change(True)
    os.write(slave, b"nothing before this")

    assert await shown(master, 19) == b"nothing before this"


async def test_where_another_program_draws_it_has_lines_of_its_own(ends: Ends) -> None:
    slave, master = ends
    tty.setraw(slave)
    notice = ConnectionNotice(slave, wait=0.0)
    notice.on_connection_change(False)

    assert await shown(master, len(LOST) + 2) == b"\r\n" + LOST


async def test_a_terminal_that_is_gone_does_no_harm() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    notice = ConnectionNotice(writer, wait=0.0)
    notice.on_connection_change(False)
    await asyncio.to_thread(lambda: None)
    notice.on_connection_change(True)
    os.close(writer)
