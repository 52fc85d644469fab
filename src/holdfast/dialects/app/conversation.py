"""The app endpoint, the conversation with each of its clients, and the processes, which end with it.

What must hold of a process, from its start to its result:

1. Output is told, or kept, up to the cap and in order; all of it before the result.
2. From the exit on nothing reaches the process any more, also while the rest of
   its output is awaited.
3. There is one result, and nothing follows it; what is left of the process is
   gone by then.
"""

from __future__ import annotations

import asyncio
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from time import time

import msgspec

from holdfast.backend import HostedBackend, HostedProcess, Valve
from holdfast.config import AppLimits
from holdfast.dialects.dialect import Client, Method, WireError
from holdfast.dialects.scope import Scope, Starting, Strays
from holdfast.errors import HoldfastError, LimitReached, OutOfTurn
from holdfast.model import Chunk, Exit, Kind, Leftovers, Stream, utf8_size
from holdfast.protocol.app import AppCapabilities, AppInitializeParams, AppInitializeResult, ClientInfo
from holdfast.protocol.shapes import Shape
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Notification, Response

from .explain import Declined, explain
from .order import COMMAND, PROCESS, Family, Terms
from .output import Capped, Drain, OutputRoom

_encode = msgspec.json.Encoder().encode

NOTIFICATIONS = frozenset({PROCESS.delta, COMMAND.delta, "process/exited"})
"""What a client can be told without asking."""

_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class AppEndpoint:
    """What all conversations share.  Implements ``dialect.Endpoint``."""

    def __init__(
        self,
        backend: HostedBackend,
        methods: Mapping[str, Method],
        *,
        loop: asyncio.AbstractEventLoop,
        limits: AppLimits | None = None,
    ) -> None:
        self.backend = backend
        self.methods = methods
        self.loop = loop
        self.limits = limits or AppLimits()
        self.room = OutputRoom(self.limits.buffered_total)

    def pick(self, text: bytes) -> AppEndpoint:
        return self

    def greet(self, client: Client) -> AppConversation:
        return AppConversation(self, client)

    def usage(self) -> Mapping[str, int]:
        return {"app.buffered_total": self.limits.buffered_total - self.room.left}

    def close(self) -> None:
        pass  # Everything ends with its connection.


def around(method: str) -> tuple[bytes, bytes]:
    """What comes before and behind the params of a notification."""
    return b'{"method":"%b","params":' % method.encode(), b',"emittedAtMs":%d}' % int(time() * 1000)


class AppConversation:
    """One client's talk, from the handshake on.  Implements ``dialect.Conversation``."""

    __slots__ = (
        "_experimental",
        "_initialized",
        "_silenced",
        "backend",
        "client",
        "commands",
        "endpoint",
        "numbers",
        "processes",
        "strays",
        "unnamed",
        "valve",
    )

    binary = False
    envelope = jsonrpc.LOOSE

    def __init__(self, endpoint: AppEndpoint, client: Client) -> None:
        self.endpoint = endpoint
        self.client = client
        self.backend = endpoint.backend.on_behalf_of(client.principal, client.peer)
        limits = endpoint.limits
        make = partial(Scope[Run], limit=limits.names, most_bytes=limits.name_bytes, name="app.names")
        self.processes: Scope[Run] = make()
        self.commands: Scope[Run] = make()
        self.unnamed: Scope[Run] = make()
        """Commands whose client gave them no name."""
        self.numbers = count()
        self.strays = Strays()
        """What ended processes and commands have left behind."""
        self.valve = Valve()
        self._initialized = False
        self._experimental = False
        self._silenced: frozenset[str] = frozenset()

    # The handshake.

    def begin(self, params: AppInitializeParams) -> AppInitializeResult:
        if self._initialized:
            raise OutOfTurn("Already initialized")
        client = params.client_info
        if _NOT_IN_A_HEADER.search(client.name):
            raise Declined(f"Invalid clientInfo.name: '{client.name}'. Must be a valid HTTP header value.")
        wanted = params.capabilities or AppCapabilities()
        silenced = wanted.opt_out_notification_methods or ()
        _check_opt_outs(silenced, self.endpoint.limits)
        self._initialized = True
        self._experimental = wanted.experimental_api
        # We keep what we could ever tell.
        self._silenced = NOTIFICATIONS.intersection(silenced)
        info = self.backend.info
        return AppInitializeResult(_user_agent(client, info.version), f"{info.home or info.cwd}/.holdfast")

    def gate(self, method: Method) -> None:
        if not method.family:
            return
        if not self._initialized:
            raise OutOfTurn("Not initialized")
        if method.family.startswith("process/"):
            self.need_experimental(method.family)

    def need_experimental(self, feature: str) -> None:
        """Refuse ``feature`` unless the client said that it knows what it asks for."""
        if not self._experimental:
            raise Declined(f"{feature} requires experimentalApi capability")

    def scope(self, family: Family) -> Scope[Run]:
        """Where the names of this family are."""
        return self.processes if family is PROCESS else self.commands

    # What the client is told.

    def wants(self, method: str) -> bool:
        """Whether the client wants notifications of this method."""
        return method not in self._silenced

    def notify(self, method: str, params: Shape) -> None:
        if self.wants(method):
            prefix, suffix = around(method)
            self.client.send(prefix + _encode(params) + suffix)

    # Implements ``dialect.Conversation``.

    def malformed(self, detail: str) -> None:
        return None

    def notified(self, notification: Notification) -> None:
        pass  # ``initialized`` changes nothing here, and others are not for us.

    def answered(self, response: Response) -> None:
        pass

    def congested(self) -> None:
        self.valve.shut()

    def drained(self) -> None:
        self.valve.open()

    def explain(self, error: HoldfastError) -> WireError:
        return explain(error, self.endpoint.methods)

    def usage(self) -> Mapping[str, int]:
        scopes = self.processes, self.commands, self.unnamed
        return {"app.names": max(map(len, scopes)), "app.name_bytes": max(scope.size for scope in scopes)}

    def ended(self) -> None:
        for entry in self._entries():
            if isinstance(entry, Starting):
                entry.cancel()
            else:
                entry.abandon()
        self.strays.end()

    def _entries(self) -> Iterator[Run | Starting]:
        for scope in (self.processes, self.commands, self.unnamed):
            yield from scope


def _user_agent(client: ClientInfo, version: str) -> str:
    system = f"{platform.system()} {platform.release()}; {platform.machine()}"
    return f"holdfast/{version} ({system}) ({client.name.strip()}; {client.version.strip()})"


def _check_opt_outs(names: Sequence[str], limits: AppLimits) -> None:
    if len(names) > limits.opt_outs:
        raise LimitReached("notifications to opt out of", limits.opt_outs, name="app.opt_outs")
    if sum(map(utf8_size, names)) > limits.opt_out_bytes:
        raise LimitReached(
            "bytes of notifications to opt out of", limits.opt_out_bytes, name="app.opt_out_bytes"
        )


# What runs.

TIMED_OUT = 124
"""The exit code of a process that was killed because its time was over."""


class Run:
    """One process of an app connection, from its start to its result.  Implements ``backend.Watcher``."""

    __slots__ = (
        "_drain",
        "_loop",
        "_on_lost",
        "_on_over",
        "_tell",
        "_terms",
        "_timer",
        "exit_code",
        "killed",
        "over",
        "process",
        "stderr",
        "stdin_open",
        "stdout",
    )

    def __init__(
        self,
        process: HostedProcess,
        terms: Terms,
        *,
        valve: Valve,
        room: OutputRoom,
        loop: asyncio.AbstractEventLoop,
        tell: Callable[[Stream, bytes, bool], None],
        on_over: Callable[[Run], bool | None],
        on_lost: Callable[[], object],
    ) -> None:
        """
        Args:
            tell: Takes a piece of streamed output, and whether the cap is reached with it.
            on_over: Called when everything about the process is known.  True if what is kept of its output
                is needed for longer: then ``give_back`` is the caller's.
            on_lost: Called instead if there will be no result.
        """
        self.process = process
        self.stdout = Capped(terms.cap, room)
        self.stderr = Capped(terms.cap, room)
        self.stdin_open = terms.stdin
        self.exit_code: int | None = None
        self.over = False
        self.killed = False
        """Whether it was ended by somebody, or by its timeout."""
        self._terms = terms
        self._tell = tell
        self._on_over = on_over
        self._on_lost = on_lost
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        streams = (Stream.STDOUT,) if terms.terminal else (Stream.STDOUT, Stream.STDERR)
        self._drain = Drain(streams, quiet=terms.quiet, hard=terms.hard)
        process.retain(0)  # It is told or kept here; nobody asks for it again.
        process.watch(self, valve if terms.streamed else None)

    @property
    def takes_stdin(self) -> bool:
        """Whether it was started to be written to."""
        return self._terms.stdin

    @property
    def torn(self) -> bool:
        """Whether the output may end in the middle of a character, wherever the caps were."""
        return self.killed or self._drain.unfinished

    @property
    def drain_timed_out(self) -> bool:
        """Whether the output was cut short because somebody held it open for too long."""
        return self._drain.timed_out

    # Implements ``backend.Watcher``.

    def output(self, chunk: Chunk) -> None:
        if chunk.stream is Stream.STDERR:
            stream, capped = Stream.STDERR, self.stderr
        else:
            stream, capped = Stream.STDOUT, self.stdout
        if capped.full:
            return
        if self._terms.streamed:
            data, full = capped.cut(chunk.data)
            self._tell(stream, data, full)
        else:
            full = capped.keep(chunk.data)
        if full:
            self._drain.ended(stream)
        if self.exit_code is not None:
            self._drain.on_output(self._loop.time())
            if full:
                self._look()

    def ended(self, stream: Stream) -> None:
        self._drain.ended(Stream.STDERR if stream is Stream.STDERR else Stream.STDOUT)
        if self.exit_code is not None and not self._drain.unfinished:
            self._look()

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        timed_out = exit.outcome.kind is Kind.TIMEOUT
        self.killed = self.killed or timed_out
        self.exit_code = TIMED_OUT if timed_out else exit.code
        self._drain.exited(self._loop.time())
        self._look()

    def closed(self, seq: int) -> None:
        self._drain.all_ended()
        self._finish()

    # Time.

    def _look(self) -> None:
        """See when it will be over.  Not here and now: whoever tells us something has not finished."""
        now = self._loop.time()
        self._set_timer(now if self._drain.is_over(now) else self._drain.deadline)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._on_drain_due)

    def _on_drain_due(self) -> None:
        self.process.drain()  # What is ready wins over a deadline.
        if self.over:
            return
        now = self._loop.time()
        look = not self._drain.is_over(now) and self._drain.is_to_look(now)
        self._go_on(now)
        if look:
            self.process.look_at_holders(self._on_looked)

    def _on_looked(self, at_work: bool) -> None:  # noqa: FBT001
        if self.over:
            return
        self.process.drain()  # It may have been said after the look.
        if not self.over:
            now = self._loop.time()
            self._drain.looked(now, at_work=at_work)
            self._go_on(now)

    def _go_on(self, now: float) -> None:
        if self._drain.is_over(now):
            self._finish()
        else:
            self._set_timer(self._drain.deadline)

    # The end.

    def kill(self) -> None:
        """Kill the process and everything it has started; its exit and its result follow."""
        self.killed = True
        self.process.end_now()

    def _finish(self) -> None:
        # Whoever has left the group of a process that ended by itself is not in its way.
        self._let_go(Leftovers.END if self.killed else Leftovers.END_GROUP)
        if not self._on_over(self):
            self.give_back()

    def abandon(self) -> None:
        """End it without a result.  May be called twice."""
        if not self.over:
            self._let_go(Leftovers.END)
            self._on_lost()
            self.give_back()

    def give_back(self) -> None:
        """Let go of what was kept of the output."""
        self.stdout.give_back()
        self.stderr.give_back()

    def _let_go(self, leftovers: Leftovers) -> None:
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.process.forget(leftovers)
