"""The processes of a scope: one entry each, and the way its events reach the client."""

from __future__ import annotations

import marshal
import struct
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from holdfast.backend import HostedBackend, HostedProcess, Valve
from holdfast.dialects.dialect import Client
from holdfast.model import Chunk, Exit, Leftovers, Stream
from holdfast.protocol import events
from holdfast.value import value

from .window import RELEASED, Clock, Retention, Window, WindowSnapshot

if TYPE_CHECKING:
    from holdfast.announcing import Announcer

_encode = msgspec.json.Encoder().encode


class Announcing(Protocol):
    """Whoever all processes of a scope belong to, as an entry sees it."""

    @property
    def announcer(self) -> Announcer | None:
        """Tells what happens to them; None while nobody wants to know."""


class Home(Protocol):
    """The scope that an entry belongs to, as the entry sees it."""

    @property
    def tenant(self) -> Announcing: ...

    @property
    def client(self) -> Client | None:
        """The client that gets the notifications about its processes; None while no client is attached."""

    @property
    def extended(self) -> bool:
        """Whether that client knows our extensions."""

    @property
    def valve(self) -> Valve:
        """Shut while that client is behind."""


class EntryOwner(Protocol):
    """Keeps account of the processes of all scopes."""

    def closed(self, entry: Entry) -> None: ...

    def notify(self, entry: Entry, end: Exit | None) -> None:
        """Tell whom the client has named how the process has ended; None if nobody knows."""


@value
class StartSummary:
    """What is remembered of the request for a process."""

    about: bytes
    """What a list says of it: members of a JSON object."""
    fingerprint: bytes
    """Equal for equal requests; empty if nobody will compare it."""
    retain: int | None
    """Bytes of output to retain, if the client said how many."""
    sandboxed: bool = False
    window: int | None = None
    """Bytes of output that the client may leave unacknowledged, if it acknowledges any."""
    alias: str = ""
    """What people call the process; empty if it has no name but its identifier."""
    auto_remove: bool = False
    """Whether nobody wants to see it in a list once its output has ended."""
    again: bytes = b""
    """The request itself, as JSON, for a restart; empty if there is none."""
    notify: str = ""
    """The URL that is told of the end; empty if there is none."""


@value
class EntrySnapshot:
    """An entry, written down.  The process itself is its backend's to write down."""

    name: str
    request: StartSummary
    unacknowledged: int
    """Bytes that are retained in any case."""
    window: WindowSnapshot | None
    deadline: float | None
    """When it is forgotten; None while its process has not closed."""


class Entry:
    """One process under the name that its client gave it.

    Lives as long as its scope knows the process.  The client may change or be
    away; then nobody is notified, and what was missed can be read.
    """

    __slots__ = ("home", "name", "process", "request", "retention", "window")

    def __init__(
        self,
        home: Home,
        name: str,
        process: HostedProcess,
        request: StartSummary,
        *,
        owner: EntryOwner,
        retention: Retention,
    ) -> None:
        self.home = home
        self.name = name
        self.process = process
        self.request = request
        self.retention = retention
        self.window: Window | None = None
        """Holds the process up while its client has not acknowledged enough; None if it need not."""
        process.watch(Notifier(self, owner), home.valve)

    # What is retained.

    def leave(self) -> None:
        """The client is away: retain more, so that it finds everything on its return."""
        self.retention.is_for_absent = True
        self.process.retain(self.retention.size)

    def catch_up(self) -> None:
        """The client has everything: retain no more than for any client that is attached."""
        self.retention.is_for_absent = False
        self.process.retain(self.retention.size)

    def open_window(self, size: int, *, clock: Clock, patience: float | None) -> Window:
        """Hold the process up while more than ``size`` bytes are not acknowledged.

        With ``patience``, a window that nobody uses for so many seconds opens by itself.
        """
        self.window = window = Window(
            self.process, size, clock=clock, make_room=self._retain_unacknowledged, patience=patience
        )
        self.retention.unacknowledged = window.room
        return window

    def release_window(self) -> None:
        """The client acknowledges nothing any more, and relies on no more than what it asked for."""
        if self.window is not None:
            self.window.release()
            self.process.acknowledged(RELEASED)
            self._retain_unacknowledged(0)

    def acknowledge(self, seq: int) -> None:
        """The client has everything up to this number."""
        if self.window is not None:
            self.window.acknowledge(seq)
            self.process.acknowledged(self.window.acknowledged)

    def _retain_unacknowledged(self, size: int) -> None:
        self.retention.unacknowledged = size
        self.process.retain(self.retention.size)

    # What is told to those who follow all processes.

    def announce(self, announcer: Announcer, *, kept: bool) -> None:
        """The process runs."""
        name, request = self.name, self.request
        about = _about(b"{%b}" % request.about)
        announcer.started(name, request.alias, self.process, argv=about.argv, terminal=about.tty, kept=kept)

    # The end.

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        """Give up the process: see ``HostedProcess.forget``."""
        window, self.window = self.window, None
        self.process.forget(leftovers)
        if window is not None:
            window.release()

    def snapshot(self, deadline: float | None) -> EntrySnapshot:
        """Return what another entry of this process needs to go on.  ``deadline`` is when it is forgotten."""
        return EntrySnapshot(
            self.name,
            self.request,
            self.retention.unacknowledged,
            None if self.window is None else self.window.snapshot(),
            deadline,
        )


class _About(msgspec.Struct):
    """What is announced of the request for a process."""

    argv: list[str]
    tty: bool


_about = msgspec.json.Decoder(_About).decode


class Notifier:
    """Turns the events of a process into notifications of the exec dialect.  Implements ``backend.Watcher``.

    The end of the hot path: a chunk becomes one message, put together from what was
    made when the process started.
    """

    __slots__ = ("_entry", "_home", "_name", "_owner")

    def __init__(self, entry: Entry, owner: EntryOwner) -> None:
        self._entry = entry
        self._home = entry.home
        self._owner = owner
        self._name = _encode(entry.name)

    def output(self, chunk: Chunk) -> None:
        client = self._home.client
        if client is not None:
            client.send(*events.output(self._name, chunk))

    def ended(self, stream: Stream) -> None:
        pass  # Clients of this dialect are not notified of the end of a single stream.

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        client = self._home.client
        if client is not None:
            client.send(events.exited(self._name, seq, exit, extended=self._home.extended))
        announcer = self._home.tenant.announcer
        if announcer is not None:
            entry = self._entry
            announcer.exited(entry.name, entry.request.alias, entry.process, exit)
        if self._entry.request.notify:
            self._owner.notify(self._entry, exit)

    def closed(self, seq: int) -> None:
        client = self._home.client
        if client is not None:
            client.send(events.closed(self._name, seq))
        self._entry.window = None
        self._owner.closed(self._entry)


_LEAST = 520
"""Bytes: the interpreter takes smaller blocks from a store of its own, which gives little memory back."""

_LENGTHS = struct.Struct("<II")
"""The lengths of two parts of an archived entry: what a list says first, and what it says last."""


class ArchivedEntry(bytes):
    """An entry whose process has closed and left nobody behind, in one block of memory.

    Thousands of ended processes are retained for a while.  As objects each would be a dozen
    pieces, and memory goes back to the system only when all their neighbours are gone, too.
    """

    __slots__ = ()

    @staticmethod
    def of(entry: Entry, key: str) -> ArchivedEntry | None:
        """``entry`` of the session ``key`` in one block; None if it can still change, or is large."""
        process = entry.process.pack()
        if process is None:
            return None
        request = entry.request
        head, state = events.listed_head(entry.name, request.about), events.listed_state(entry.process)
        data = marshal.dumps(
            (key, entry.name, request.fingerprint, request.sandboxed, process, request.alias, request.again)
        )
        block = b"".join((_LENGTHS.pack(len(head), len(state)), head, state, data))
        return ArchivedEntry(block.ljust(_LEAST, b"\0"))  # What follows the value is not read.

    @property
    def listed(self) -> tuple[bytes, bytes]:
        """What a list says of it.  Stored as it is: a list may be of tens of thousands."""
        head, state = _LENGTHS.unpack_from(self)
        middle = _LENGTHS.size + head
        return self[_LENGTHS.size : middle], self[middle : middle + state]

    def _load(self) -> tuple[str, str, bytes, bool, Any, str, bytes]:
        head, state = _LENGTHS.unpack_from(self)
        found: tuple[str, str, bytes, bool, Any, str, bytes]
        found = marshal.loads(memoryview(self)[_LENGTHS.size + head + state :])  # noqa: S302
        return found

    @property
    def key(self) -> str:
        """The key of its session; empty for a shared process."""
        return self._load()[0]

    @property
    def name(self) -> str:
        return self._load()[1]

    def restore(self, home: Home, backend: HostedBackend, owner: EntryOwner) -> Entry:
        """The entry as it was."""
        _, name, fingerprint, sandboxed, process, alias, again = self._load()
        about = self.listed[0].removeprefix(events.listed_head(name, b"")[:-1]).removesuffix(b",")
        return Entry(
            home,
            name,
            backend.unpack(process),
            StartSummary(about, fingerprint, None, sandboxed, alias=alias, again=again),
            owner=owner,
            retention=_SETTLED,
        )


_SETTLED = Retention(None, attached=1, detached=1)
"""The retention of every archived process: its output no longer changes, and nothing of it is dropped."""
