"""One of the hundred: a connection, a source of chance of its own, and what it does with both."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from bench.soaking.peer import Gone, Message, Peer, check
from bench.soaking.tale import Tale, digest

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOISE_BYTES = 1 << 20


@dataclass
class World:
    """What all users share."""

    urls: list[str]
    directory: Path
    web: str
    """The URL of the HTTP server that answers the requests of ``http/request``."""
    noise: bytes
    """What is in the file ``noise`` of the directory: output with known bytes is taken from it."""
    pause: float
    """Seconds between two deeds of one user, on average."""
    has_sandbox: bool = False
    done: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    bytes: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def noise_path(self) -> str:
        return str(self.directory / "noise")


class User:
    """Does one deed after the other until it is told to stop."""

    def __init__(self, world: World, number: int, seed: int, *, is_app: bool) -> None:
        self.world = world
        self.chance = Random(f"{seed}/{number}")
        self.number = number
        self.is_app = is_app
        self.url = self.chance.choice(world.urls)
        self.directory = world.directory / f"user{number}"
        self.directory.mkdir()
        self._names = 0
        self._peer: Peer | None = None

    # Connections.

    @property
    def peer(self) -> Peer:
        assert self._peer is not None
        return self._peer

    async def connect(self) -> Peer:
        """A new connection, ready to be used, with a new session."""
        self._peer = await self.join(await self.open())
        return self._peer

    async def open(self) -> Peer:
        """One more connection, without a word."""
        return await Peer.open(self.url)

    async def join(self, peer: Peer, resume: str | None = None) -> Peer:
        """The handshake; with an identifier, that of somebody who comes back."""
        if self.is_app:
            params: Message = {
                "clientInfo": {"name": "soak", "version": "1"},
                "capabilities": {"experimentalApi": True},
            }
            await peer.call("initialize", params)
        else:
            params = {"clientName": "soak", "holdfast": 1}
            if resume is not None:
                params["resumeSessionId"] = resume
            peer.session = (await peer.call("initialize", params))["sessionId"]
            check(resume in (None, peer.session), f"resumed {resume} and got {peer.session}")
        await peer.notify("initialized")
        return peer

    async def leave(self, peer: Peer) -> None:
        """End a connection one way or the other; what it has counted is kept."""
        await (peer.close() if self.chance.random() < 0.5 else peer.drop())
        self.count(peer)

    def count(self, peer: Peer) -> None:
        self.world.requests += peer.requests
        self.world.bytes += peer.bytes
        peer.requests = peer.bytes = 0

    def swap(self, peer: Peer) -> None:
        """Go on with another connection; the tales go on, too."""
        peer.tales = self.peer.tales
        self.count(self.peer)
        self._peer = peer

    # Names and sizes.

    def name(self) -> str:
        """One that was not used before."""
        self._names += 1
        return f"u{self.number}-{self._names}"

    def size(self, most: int = NOISE_BYTES) -> int:
        """Mostly small, sometimes large."""
        return int(most ** self.chance.random())

    def noise(self, size: int) -> str:
        """The digest of the first bytes of the noise."""
        return digest(memoryview(self.world.noise)[:size])

    # Processes.

    def start_params(self, name: str, argv: list[str], **options: Any) -> Message:
        return {
            "processId": name,
            "argv": argv,
            "cwd": self.directory.as_uri(),
            "env": {"PATH": PATH},
            "tty": False,
            **options,
        }

    async def start(self, *argv: str, **options: Any) -> str:
        """Start a process; give its name."""
        name = self.name()
        answer = await self.peer.call("process/start", self.start_params(name, [*argv], **options))
        check(answer["processId"] == name, f"{name} was started as {answer}")
        return name

    async def write(self, name: str, data: bytes, write_id: str) -> str:
        params = {"processId": name, "chunk": base64.b64encode(data).decode(), "writeId": write_id}
        status: str = (await self.peer.call("process/write", params))["status"]
        return status

    async def end(self, name: str, code: int | None = 0) -> Tale:
        """Wait for the end of a process, and look whether it is told as it must be."""
        tale = await self.peer.closed(name)
        check(not tale.mistakes, f"{name}: {tale.mistakes}")
        check(code is None or tale.code == code, f"{name}: exit code {tale.code}, not {code}: {tale.end}")
        return tale

    # The life of a user.

    async def live(self, deeds: dict[Deed, float], over: asyncio.Event) -> None:
        """Do things until it is over."""
        choices, weights = list(deeds), list(deeds.values())
        steps = 0
        while not over.is_set():
            steps += 1
            deed = self.chance.choices(choices, weights)[0]
            await self._try(deed, steps)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), self.chance.expovariate(1 / self.world.pause))
        await self._try(goodbye, steps)

    async def _try(self, deed: Deed, step: int) -> None:
        try:
            if self._peer is None:
                await self.connect()
            await deed(self)
            self.world.done[deed.__name__] += 1
            if self._peer is not None and self._peer.tales:
                raise AssertionError(f"left over: {list(self._peer.tales)}")
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding, and the others go on
            where = f"user {self.number} at {self.url}, step {step}, {deed.__name__}"
            self.world.failures.append(f"{where}:\n{traceback.format_exc()}")
            peer, self._peer = self._peer, None
            if peer is not None:
                with contextlib.suppress(OSError, TimeoutError, Gone):
                    await peer.drop()

    def forget(self) -> None:
        """The connection is used up; the next deed gets a new one."""
        if self._peer is not None:
            self.count(self._peer)
        self._peer = None


Deed = Callable[[User], Awaitable[None]]


async def goodbye(user: User) -> None:
    """Leave nothing behind, or leave that to the server."""
    if not user.is_app and user.chance.random() < 0.5:
        closed = await user.peer.call("session/close")
        check(closed == {"survivors": []}, f"session/close: {closed}")
    await user.leave(user.peer)
    user.forget()
