"""Slow and silent peers: they hold a socket each, and nothing that is anybody else's.

``HOLDFAST_LONG=1`` also waits until the server has found out that they are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.fakes.attackers import HEAD, address, dial, reset
from tests.fakes.backends import LONG
from tests.fakes.company import company, no_trace
from tests.fakes.frames import CONTINUATION, PING, TEXT, frame_bytes, frame_head
from tests.fakes.server import PATIENCE, Program, eventually, open_files, program_at

EACH = 100
"""Sockets of each kind."""

HANDSHAKE = 10.0
"""Seconds that a peer has to say what it wants."""

DEAD = 50.0
"""Seconds after which a peer that gives no sign of life is gone: ping and pong."""

pytestmark = [pytest.mark.slow, pytest.mark.stress]


@pytest.fixture
def served() -> Iterator[tuple[Program, str]]:
    with program_at() as served:
        yield served


@contextlib.contextmanager
def sockets(url: str, count: int) -> Iterator[list[socket.socket]]:
    made = [dial(url) for _ in range(count)]
    try:
        yield made
    finally:
        for each in made:
            reset(each)


def has_ended(made: socket.socket) -> bool:
    """Whether the server has hung up."""
    try:
        while made.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.timeout(90)
async def test_who_never_says_what_it_wants_is_sent_away(served: tuple[Program, str]) -> None:
    """Whether it says nothing, or a byte now and then: the time for the whole request counts."""
    program, url = served
    async with no_trace(program, url), company(url) as neighbours:
        with sockets(url, 2 * EACH) as made:
            silent, slow = made[:EACH], made[EACH:]
            await eventually(lambda: open_files(program.pid) > 2 * EACH)
            await neighbours.is_well()
            for byte in HEAD[:100]:
                with contextlib.suppress(ConnectionError):
                    for each in slow:
                        each.send(bytes((byte,)))
                await asyncio.sleep(HANDSHAKE / 50)
                if all(map(has_ended, slow)):
                    break
            await eventually(lambda: all(map(has_ended, made)), within=HANDSHAKE + PATIENCE)
            await neighbours.is_well()
            assert len(silent) == EACH


HALVES = {
    "half a header": frame_head(TEXT, 70_000)[:5],
    "half a frame": frame_bytes(TEXT, bytes(70_000))[:30_000],
    "a message without an end": frame_bytes(TEXT, b"{", final=False)
    + frame_bytes(CONTINUATION, b" ", final=False),
    "nothing": b"",
    "half a ping": frame_bytes(PING, bytes(100))[:50],
}


@contextlib.contextmanager
def stopped_proxy(url: str) -> Iterator[tuple[str, int]]:
    """A peer whose machine has gone: the connection stands, and nobody is there."""
    host, port = address(url)
    source = (
        "import socket, sys, time\n"
        f"made = socket.create_connection(({host!r}, {port}))\n"
        f"made.sendall({HEAD!r})\n"
        "made.recv(1000); print('open', flush=True)\n"
        "time.sleep(1000)\n"
    )
    proxy = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    try:
        assert proxy.stdout is not None
        assert proxy.stdout.readline() == b"open\n"
        proxy.send_signal(signal.SIGSTOP)
        yield url, proxy.pid
    finally:
        proxy.kill()
        proxy.communicate()


@contextlib.asynccontextmanager
async def half_said(program: Program, url: str) -> AsyncIterator[list[socket.socket]]:
    """Many WebSockets, each of which has said half of something and then no more."""
    with sockets(url, EACH * len(HALVES) // 5) as made:
        for each in made:
            each.setblocking(True)
            each.sendall(HEAD)
            assert each.recv(1000).startswith(b"HTTP/1.1 101 ")
            each.setblocking(False)
        for number, each in enumerate(made):
            each.send(list(HALVES.values())[number % len(HALVES)])
        await eventually(lambda: open_files(program.pid) > len(made))
        yield made


@pytest.mark.timeout(60)
async def test_half_a_message_holds_up_nobody(served: tuple[Program, str]) -> None:
    """Its beginning is kept, for as long as its sender is there."""
    async with no_trace(*served), company(served[1]) as neighbours:
        async with half_said(*served):
            await neighbours.is_well(rounds=3)
        await eventually(lambda: open_files(served[0].pid) < EACH)
        await neighbours.is_well()


@pytest.mark.skipif(not LONG, reason="takes a minute")
@pytest.mark.timeout(300)
async def test_peers_that_give_no_sign_of_life_are_given_up(served: tuple[Program, str]) -> None:
    """With half a message or without, and with nobody there who could know that it has ended."""
    program, url = served
    async with no_trace(program, url), company(url) as neighbours:
        with stopped_proxy(url) as (_, pid):
            async with half_said(program, url) as made:
                before = open_files(program.pid)
                await eventually(lambda: all(map(has_ended, made)), within=DEAD + 2 * PATIENCE)
                await eventually(lambda: open_files(program.pid) <= before - len(made) - 1)
                await neighbours.is_well()
            os.kill(pid, signal.SIGCONT)
