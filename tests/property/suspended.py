"""Two exec endpoints that live the same life; one of them is written down and resumed now and then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from holdfast.backend import Packed
from holdfast.config import SessionLimits
from holdfast.dialects.exec.conversation import ExecEndpoint
from holdfast.dialects.exec.methods import METHODS
from holdfast.dialects.exec.scopes import SessionSnapshot, SharedSnapshot
from holdfast.dialects.exec.state import EndpointSnapshot
from holdfast.engine.ring import Budget, Ring, page
from holdfast.errors import HoldfastError
from holdfast.model import Chunk, Leftovers, Page, Stream
from holdfast.value import replace
from holdfast.wire import jsonrpc
from tests.fakes.dialects import FakeBackend, FakeClient, HandLoop, settled
from tests.fakes.exec_talk import INITIALIZED, START
from tests.fakes.watched import Watched

LIMITS = SessionLimits(
    detached_seconds=30.0,
    closed_seconds=20.0,
    attached_bytes=40,
    detached_bytes=120,
    kept_ended=2,
    kept_seconds=50.0,
)


class RingProcess(Watched):
    """A process whose output is really retained, and which nobody reads while a valve is shut."""

    def __init__(self, ring: Ring | None = None) -> None:
        super().__init__()
        self.ring = ring or Ring(limit=LIMITS.attached_bytes, chunks=100, budget=Budget(10**9))

    def copy(self) -> RingProcess:
        """The process as another object, which nobody watches yet."""
        twin = RingProcess(self.ring)
        twin.exit, twin.closed, twin.next_seq = self.exit, self.closed, self.next_seq
        return twin

    def say(self, data: bytes, stream: Stream = Stream.STDOUT) -> None:
        if self.is_read and not self.closed:
            self.ring.append(Chunk(self.next_seq, stream, data))
            super().say(data, stream)

    def try_read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        return page(self.ring, after, limit, next_seq=self.next_seq, end=self.exit, closed=self.closed)

    def retain(self, limit: int) -> None:
        self.ring.limit = limit
        self.ring.trim()

    def retained(self) -> int:
        return self.ring.total

    def pack(self) -> Packed | None:
        return (id(self),) if self.closed and self.ring.total < 20 else None

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        super().forget(leftovers)
        self.ring.close()


class Backend(FakeBackend):
    """Starts what it was given, and finds again what was packed."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[RingProcess] = []

    def unpack(self, packed: Packed) -> RingProcess:
        (found,) = (process for process in self.processes if id(process) == packed[0])
        return found

    def give(self) -> RingProcess:
        process = RingProcess()
        self.processes.append(process)
        self._outcomes.append(process)
        return process


@dataclass(frozen=True)
class Deed:
    """One thing that is done, or happens."""

    what: str
    name: str = ""
    number: int = 0
    flag: bool = False


class Twin:
    """An endpoint with one client, and a ledger of everything that the client can see."""

    def __init__(self, *, suspends: bool) -> None:
        self._suspends = suspends
        self.loop = HandLoop()
        self.backend = Backend()
        self.endpoint = self._make()
        self.running: dict[str, RingProcess] = {}
        self.session: str | None = None
        self.keys: dict[str, str] = {}
        self.ledger: list[Any] = []

    def _make(self) -> ExecEndpoint:
        return ExecEndpoint(self.backend, METHODS, loop=self.loop.loop, limits=LIMITS)

    async def begin(self) -> None:
        await self._connect(None)

    async def _connect(self, resume: str | None) -> None:
        self.client = FakeClient()
        self.talk = self.endpoint.greet(self.client)
        answer = await self._call("initialize", clientName="x", resumeSessionId=resume, holdfast=1)
        if isinstance(answer, str):
            self.ledger.append(answer.replace(resume or "?", "KEY"))
            answer = await self._call("initialize", clientName="x", holdfast=1)
            self.running = {name: process for name, process in self.running.items() if name.startswith("k")}
        self.session = answer["sessionId"]
        self.talk.notified(INITIALIZED)

    async def _call(self, method: str, **params: Any) -> Any:
        found = METHODS[method]
        try:
            result = await settled(found.handle(self.talk, found.decode(params or None)))
        except HoldfastError as error:
            return f"{type(error).__name__}: {error}"
        return json.loads(b"".join(jsonrpc.result(1, result)))["result"]

    async def do(self, deed: Deed) -> None:
        """Do it, and write down what the client is answered and told."""
        self.ledger.append(deed)
        self.ledger.append(await self._do(deed))
        self.ledger.append([json.loads(message) for message in self.client.raw])
        self.client.raw.clear()
        self.ledger.append({name: process.retained() for name, process in self.running.items()})

    async def _do(self, deed: Deed) -> Any:
        name, process = deed.name, self.running.get(deed.name)
        match deed.what:
            case "start":
                made = self.backend.give()
                keep = name.startswith("k")
                window = {"window": 1 + deed.number} if deed.flag else {}
                answer = await self._call(
                    "process/start",
                    **{**START, "processId": name, "keep": keep, "idempotent": True, **window},
                )
                if made in self.backend._outcomes:
                    self.backend._outcomes.remove(made)
                else:
                    self.running[name] = made
                return answer
            case "say" if process is not None:
                process.say(bytes([deed.number % 256]) * deed.number)
            case "end" if process is not None and process.exit is None:
                process.exit_with(deed.number)
            case "close" if process is not None and process.exit is not None and not process.closed:
                process.close()
            case "read":
                after, most = deed.number // 3, deed.number if deed.flag else None
                return await self._call("process/read", processId=name, afterSeq=after, maxBytes=most)
            case "ack":
                return await self._call("process/ack", processId=name, seq=deed.number, release=deed.flag)
            case "list":
                return self._timeless(await self._call("process/list"))
            case "wait":
                self.loop.move(deed.number / 2)
            case "lose":
                await self._lose(deed.number / 2)
        return None

    @staticmethod
    def _timeless(answer: Any) -> Any:
        for listed in answer["processes"]:
            del listed["startedAtMs"]
        return answer

    async def _lose(self, seconds: float) -> None:
        """Lose the connection; one of the twins its endpoint, too.  The client comes back after a while."""
        if self._suspends:
            snapshot = self._copied(self.endpoint.snapshot())
            self.endpoint.let_go()
            self.endpoint = self._make()
            self.endpoint.resume(snapshot)
        else:
            self.talk.ended()
        self.loop.move(seconds)
        await self._connect(self.session)

    def _copied(self, snapshot: EndpointSnapshot) -> EndpointSnapshot:
        """The snapshot with other objects for the processes, as if they had been written down, too."""
        copies: dict[RingProcess, RingProcess] = {}

        def copy(process: Any) -> RingProcess:
            assert isinstance(process, RingProcess)
            if process not in copies:
                copies[process] = process.copy()
            return copies[process]

        def entries(written: SessionSnapshot | SharedSnapshot) -> Any:
            strays = tuple(map(copy, written.strays))
            return replace(
                written,
                entries=tuple((entry, copy(process)) for entry, process in written.entries),
                strays=strays,
            )

        sessions, shared = map(entries, snapshot.sessions), map(entries, snapshot.shared)
        copied = EndpointSnapshot(tuple(sessions), tuple(shared))
        self.backend.processes = [copy(process) for process in self.backend.processes]
        self.running = {name: copy(process) for name, process in self.running.items()}
        return copied
