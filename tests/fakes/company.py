"""Clients that mind their own business while somebody else attacks the server, and what the server holds.

A neighbour has a session and a process that echoes what it is given.  Round after round it has a text
echoed and asks for the status.  Whatever the attack, every byte comes back once and in order, and no
round takes for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tests.fakes.client import Client, Message
from tests.fakes.floods import Account
from tests.fakes.server import (
    PATIENCE,
    Program,
    commands,
    descendants,
    eventually,
    open_files,
    resident_bytes,
    zombies,
)
from tests.fakes.trees import greet

MIB = 1 << 20

_PAUSE = 0.02
"""Seconds between two rounds, so that the neighbours themselves are no load."""


class Neighbour:
    """One client, its process, and an account of what went in and came out."""

    def __init__(self, talking: Client, number: int) -> None:
        self.talking = talking
        self.left = False
        self.rounds = 0
        self.worst = 0.0
        """Seconds of the longest round."""
        self._chance = random.Random(number)  # noqa: S311  (a repeatable text, not a secret)
        self._sent = hashlib.sha256()
        self._size = 0
        self._heard = Account()
        talking.on_message = self._hear

    def _hear(self, message: Message) -> None:
        if message.get("method", "").startswith("process/"):
            self._heard.hear(message["params"])

    async def round(self, *, within: float = PATIENCE) -> None:
        """Have a text echoed, and ask for the status."""
        started = time.monotonic()
        text = self._chance.randbytes(self._chance.randrange(1, 2000))
        self._sent.update(text)
        self._size += len(text)
        async with asyncio.timeout(within):
            status = await self.talking.write("echo", text, f"w{self.rounds}")
            assert status == "accepted"
            await self.talking.until(lambda: self._heard.size >= self._size, within=within)
            await self.talking.call("environment/status", within=within)
        self.rounds += 1
        self.worst = max(self.worst, time.monotonic() - started)

    async def live(self) -> None:
        """One round after the other."""
        while True:
            await self.round(within=3 * PATIENCE)
            await asyncio.sleep(_PAUSE)

    async def leave(self) -> None:
        """End the process, check the account, close the session."""
        await self.talking.call("process/closeStdin", {"processId": "echo"})
        tale = await self.talking.closed("echo")
        assert tale.exit_codes == [0]
        assert self._heard.hashes == {"stdout": self._sent.hexdigest()}  # Numbers are checked as they come.
        await self.talking.call("session/close")
        self.left = True


@dataclass
class Company:
    """The neighbours of an attacker."""

    neighbours: list[Neighbour]
    lives: list[asyncio.Task[None]]

    async def is_well(self, *, rounds: int = 1) -> None:
        """Wait until each of them has begun and finished that many rounds from now on."""
        marks = [each.rounds + 1 + rounds for each in self.neighbours]

        def so_far() -> bool:
            for life in self.lives:
                if life.done():
                    life.result()
            return all(each.rounds >= mark for each, mark in zip(self.neighbours, marks, strict=True))

        await eventually(so_far, within=3 * PATIENCE)

    async def rest(self) -> None:
        """Begin no more rounds.  May be called twice."""
        for life in self.lives:
            life.cancel()
        await asyncio.gather(*self.lives, return_exceptions=True)

    @property
    def worst(self) -> float:
        return max(each.worst for each in self.neighbours)


@contextlib.asynccontextmanager
async def company(url: str, count: int = 2) -> AsyncIterator[Company]:
    """Neighbours who live while the body runs; at the end nothing of theirs was lost."""
    neighbours = []
    for number in range(count):
        talking = await Client.connect(url)
        await greet(talking)
        await talking.start("echo", "cat", pipeStdin=True)
        neighbours.append(Neighbour(talking, number))
    loop = asyncio.get_running_loop()
    lives = [loop.create_task(each.live()) for each in neighbours]
    made = Company(neighbours, lives)
    try:
        yield made
        await made.is_well()
        await made.rest()
        for each in neighbours:
            await each.leave()  # A round that was cut short is completed by its echo.
    finally:
        await made.rest()
        for each in neighbours:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                if not each.left:
                    await each.talking.call("session/close")
            await each.talking.close()
    logging.getLogger(__name__).info("longest round of a neighbour: %.3f s", made.worst)


@dataclass
class Footprint:
    """What a server holds of the system."""

    files: int
    commands: int
    family: int
    memory: int

    @classmethod
    def of(cls, program: Program) -> Footprint:
        pid = program.pid
        return cls(open_files(pid), len(commands(pid)), len(descendants(pid)), resident_bytes(pid))


@contextlib.asynccontextmanager
async def no_trace(program: Program, url: str, *, memory: int = 64 * MIB) -> AsyncIterator[None]:
    """What is done inside leaves nothing behind in the server: no file, no process, little memory."""
    await _once(url)  # What is made at first use is not a trace of anybody.
    await eventually(lambda: Footprint.of(program).commands == 0)
    before = Footprint.of(program)
    yield
    assert program.code is None
    await _once(url)

    def is_back() -> bool:
        now = Footprint.of(program)
        return (now.files, now.commands) <= (before.files, 0) and now.family <= before.family

    try:
        await eventually(is_back)
        await eventually(lambda: Footprint.of(program).memory <= before.memory + memory)
    except AssertionError as error:
        raise AssertionError(f"before {before}, now {Footprint.of(program)}") from error
    assert zombies(program.pid) == []


async def _once(url: str) -> None:
    """The life of one client, with everything that makes a server set something up."""
    talking = await Client.connect(url)
    await greet(talking)
    for tty in (False, True):
        await talking.start(f"once-{tty}", "true", tty=tty)
        await talking.closed(f"once-{tty}")
    await talking.call("fs/getMetadata", {"path": "file:///"})
    await talking.call("session/close")
    await talking.close()
