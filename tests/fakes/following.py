"""A process on a server that says what a test wants."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.client.process import RemoteProcess
from holdfast.client.remote import RemoteBackend
from holdfast.errors import HoldfastError, OutputGap
from holdfast.place import Naming
from tests.fakes.peer import FEATURES, Message, Peer, Talk, peer
from tests.fakes.process import command
from tests.fakes.recorder import Recorder
from tests.fakes.remote import background, far


class Witness(Recorder):
    """A watcher that also notes what was lost."""

    def lost(self, error: HoldfastError) -> None:
        facts = error.args if isinstance(error, OutputGap) else (type(error).__name__,)
        self._note(0, ("lost", *facts))


def chunk(seq: int, data: bytes, stream: str = "stdout") -> Message:
    return {"seq": seq, "stream": stream, "chunk": base64.b64encode(data).decode()}


def page(
    *chunks: Message, next_seq: int, exit_code: int | None = None, closed: bool = False, **more: Any
) -> Message:
    """The answer to a read."""
    return {
        "chunks": list(chunks),
        "nextSeq": next_seq,
        "exited": exit_code is not None,
        "exitCode": exit_code,
        "closed": closed,
        "failure": None,
        **more,
    }


@dataclass
class Scene:
    """One process, its server and its client."""

    server: Peer
    talk: Talk
    backend: RemoteBackend
    process: RemoteProcess
    witness: Witness
    asked: Message
    """How it was started."""

    @property
    def name(self) -> str:
        return self.process.name

    def say(self, seq: int, data: bytes, stream: str = "stdout") -> None:
        self.talk.tell("process/output", processId=self.name, **chunk(seq, data, stream))

    def exit(self, seq: int, code: int = 0) -> None:
        self.talk.tell("process/exited", processId=self.name, seq=seq, exitCode=code)

    def close(self, seq: int) -> None:
        self.talk.tell("process/closed", processId=self.name, seq=seq)

    async def read(self, answer: Message) -> Message:
        """Answer the client's next read; return how it asked."""
        asked = await self.talk.hear("process/read")
        self.talk.answer(asked, answer)
        params: Message = asked["params"]
        assert params.pop("processId") == self.name
        return params

    async def reconnect(self, session: str = "s1") -> None:
        """Break the connection and accept the next one."""
        self.talk.abort()
        self.talk = await self.server.welcome(session, *FEATURES)

    async def forget(self) -> None:
        """Break the connection; the next one has a session of its own."""
        self.talk.abort()
        self.talk = await self.server.accept()
        self.talk.refuse(await self.talk.hear(), -32600, "unknown session id s1")
        await self.talk.shake_hands("s2", *FEATURES)


@asynccontextmanager
async def scene(
    *features: str, watched: bool = True, keep: bool = False, **options: Any
) -> AsyncIterator[Scene]:
    """A process that was just started."""
    async with peer() as server, far(server, *(features or FEATURES), **options) as (backend, talk):
        starting = background(backend.start(command("x"), Naming(name="p", keep=keep)))
        asked = await talk.hear("process/start")
        talk.answer(asked, {"processId": "p", "pid": 7})
        process = await starting
        witness = Witness()
        if watched:
            process.watch(witness)
        yield Scene(server, talk, backend, process, witness, asked["params"])
