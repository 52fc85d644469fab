"""The interface of everything that can run processes.

The engine on this host is one backend, a connection to another server is another.
Dialects know this module and no backend; they serve what is kept on this host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .inspection import InspectedHere
from .model import Chunk, Ended, Exit, HostInfo, Leftovers, Page, Size, Spec, Stream, WriteStatus
from .principal import Principal
from .ranges import RangedHere
from .screens import HostedScreen
from .value import value

if TYPE_CHECKING:
    from .files import Files
    from .reports import Load
    from .web import Http


class Watcher(Protocol):
    """An object that is told, synchronously and in the order of the numbers, what a process does.

    Calls come on the event loop.  A watcher neither waits nor raises; one that raises is removed and logged.
    """

    def output(self, chunk: Chunk) -> None:
        """Take a piece of output.

        Its bytes may be a view of memory that is used again later: who needs them after the call copies them.
        """

    def ended(self, stream: Stream) -> None:
        """Take note that this stream has ended.  This is the only event without a number.

        Of a process on another host it is told with the close.
        """

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        """The process ended.  Output of those it left behind may still follow."""

    def closed(self, seq: int) -> None:
        """All output has ended, and with it the numbers.  Nothing follows."""


class Valve:
    """A switch that is shut while a watcher is behind; then the processes behind it are not read.

    A child that goes on writing has to wait, and so does the news of its end.
    """

    __slots__ = ("_waiting", "is_open")

    def __init__(self) -> None:
        self.is_open = True
        self._waiting: set[Callable[[], None]] | None = None

    def wait(self, resume: Callable[[], None]) -> None:
        """Have ``resume`` called once, when the valve opens."""
        if self._waiting is None:
            self._waiting = set()
        self._waiting.add(resume)

    def shut(self) -> None:
        self.is_open = False

    def open(self) -> None:
        self.is_open = True
        waiting, self._waiting = self._waiting, None
        for resume in waiting or ():
            resume()


class Watch(Protocol):
    """One watcher's hold on one process."""

    def stop(self) -> None:
        """Tell this watcher nothing more.  May be called twice, also from the watcher."""


class Process(Protocol):
    """A process from its start until it is forgotten, on this host or another.

    Output, exit and close share one series of numbers: from 1, without gaps.
    What the child wrote before it ended is numbered before its exit.

    Raises, of a process on another host:
        LinkLost: It could not be asked.  It may still run.
    """

    @property
    def pid(self) -> int | None:
        """Its PID on the host where it runs; None if a server does not send it."""

    @property
    def exit(self) -> Exit | None:
        """How the process ended; None while it runs, and until its watchers know of the exit."""

    @property
    def exit_code(self) -> int | None:
        """The exit code, 128 + n after death by signal n; None while it runs."""

    @property
    def closed(self) -> bool:
        """Whether its output has ended, and with it the numbers."""

    @property
    def next_seq(self) -> int:
        """The number that the next event will get."""

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> Watch:
        """Tell ``watcher`` everything from now on, as long as ``valve`` is open."""

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        """Return the output behind number ``after``.

        With ``wait``, an empty answer is held back for up to that many seconds,
        until there is output, the process exits or its output ends.

        Reading takes nothing away: the same call gives the same chunks until
        newer output pushes them out.  A jump in the numbers means that this has
        happened.  Cancelling loses nothing.

        Args:
            limit: Stop before the chunk that would go over this many bytes.  The
                first chunk is given whatever its size, so that a small limit
                cannot stall a reader.
        """

    async def wait(self, seconds: float) -> Exit | None:
        """Wait for its end, that many seconds at the most; None if it still runs then."""

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        """Hand bytes to the child's stdin, once per ``write_id`` if there is one.

        Returns when the bytes are queued; waits while the queue is full.  Calls
        take effect in the order they were made.  A ``write_id`` that was accepted
        before is accepted again and its bytes are not written.  Cancelling a
        call that still waits takes its bytes back, if the process is on this host.

        Raises:
            StdinFailed: The process is being terminated.
        """

    async def close_stdin(self, *, write_id: str | None = None) -> WriteStatus:
        """Take no more for stdin, and close it once everything offered before is written.

        A terminal stays open, and its reader gets the character that means the end.
        Once per ``write_id``, as with ``write``.
        """

    async def resize(self, size: Size) -> None:
        """Give the terminal another size.  Does nothing once it is gone.

        Raises:
            NoTerminal: There never was one.
        """

    async def signal(self, number: int, *, tree: bool = False) -> None:
        """Send a signal to the process group.  Does nothing once the process has exited.

        With ``tree``, to everybody it has started instead, as long as one of them is left.

        Raises:
            SignalFailed: The system refused, or the other host has no word for this signal.
        """

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        """End the process and everything it has started; return when they are gone.

        With ``grace``, everybody is asked to end, with SIGTERM, and killed that many
        seconds later.  Once they are killed exit and close follow at once, also when
        a stranger holds the output open.
        """


Packed = tuple[Any, ...]
"""An ended process as plain values: numbers, texts, bytes, and tuples and lists of them."""


class HostedProcess(Process, HostedScreen, InspectedHere, RangedHere, Protocol):
    """A process of this host, with what a server needs that offers it to clients; nothing here waits."""

    @property
    def pid(self) -> int:
        """The kernel's name for it."""

    @property
    def has_leftovers(self) -> bool:
        """Whether the process has ended and something that it has started still runs."""

    def limits_enforced(self) -> dict[str, str]:
        """How each of its limits is enforced: by ``cgroup``, ``rlimit`` or ``sampled``."""

    @property
    def running(self) -> bool:
        """Whether it has not ended yet: at this moment, also while the news of its end is held back."""

    def try_read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page | None:
        """``read``, if it can be answered without waiting; None if not."""

    def listen(self, tell: Callable[[], object], *, after: int, deadline: float) -> Callable[[], None]:
        """Call ``tell`` once, at the latest at ``deadline``, when ``try_read`` may have news.

        It is called in the midst of other work, takes note and does nothing else.  Returns how to stop that.
        """

    def try_write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus | None:
        """``write``, if it can be done without waiting; None if not."""

    def close_stdin_now(self, *, write_id: str | None = None) -> WriteStatus:
        """``close_stdin``, which never waits here."""

    def resize_now(self, size: Size) -> None:
        """``resize``, which never waits here."""

    def signal_now(self, number: int, *, tree: bool = False) -> None:
        """``signal``, which never waits here."""

    def end_now(self) -> None:
        """Kill the process and everything it has started, as ``end`` without a grace; does not wait."""

    def look_at_holders(self, tell: Callable[[bool], None]) -> None:
        """Find out whether any process of its tree that holds its output open is busy.

        ``tell`` is called once, also at once: with True if one of them, or of those below
        them, runs or waits for a processor or a disk, did so since this was last asked, or
        cannot be looked at.  It may come after ``forget``.
        """

    def look_at_load(self, tell: Callable[[Load | None, float], None]) -> None:
        """Find out what its whole tree uses, and how many seconds ago that was seen.

        ``tell`` is called once, also at once; with None if nobody is left of the tree.  Who asks often is
        told what was seen a moment before: a client decides how large a tree is, and how often it asks.
        """

    def output_bytes(self) -> int:
        """How many bytes of output were kept at some time, those that were dropped since included."""

    def drain(self) -> None:
        """Read what the pipes hold and tell the watchers at once, whether or not a valve is open.

        Bounded by what is waiting at this moment, whoever goes on talking.
        """

    def retain(self, limit: int) -> None:
        """Keep at most this many bytes of output from now on; with 0, no later output."""

    def retained(self) -> int:
        """How many bytes of output are kept."""

    def acknowledged(self, seq: int) -> None:
        """Note, for a server that goes on after this one, that its client has everything up to a number."""

    def pack(self) -> Packed | None:
        """All there is to know of it, for ``HostedBackend.unpack``; None as long as something can change.

        What the process keeps goes over into this; it is not to be used any more.
        """

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        """Give up the process: end it and everything it has started, if it runs, and drop its output.

        ``leftovers`` says what becomes of those whom it has started if it has ended itself.
        """


class ImmediateControls:
    """Mixed into processes of this host: what may have to wait elsewhere, and never does here."""

    __slots__ = ()

    @property
    def exit_code(self: HostedProcess) -> int | None:
        return None if self.exit is None else self.exit.code

    async def close_stdin(self: HostedProcess, *, write_id: str | None = None) -> WriteStatus:
        return self.close_stdin_now(write_id=write_id)

    async def resize(self: HostedProcess, size: Size) -> None:
        self.resize_now(size)

    async def signal(self: HostedProcess, number: int, *, tree: bool = False) -> None:
        self.signal_now(number, tree=tree)


class Backend(Protocol):
    """Something that can start processes."""

    @property
    def info(self) -> HostInfo:
        """What the host is like on which they run."""

    @property
    def files(self) -> Files:
        """The files of that host."""

    @property
    def http(self) -> Http:
        """HTTP requests from that host."""

    async def start(self, spec: Spec) -> Process:
        """Start a process.

        Nothing is told to anybody before the caller's next wait, so a watcher
        attached at once misses nothing.  Cancelling leaves no process behind.

        Raises:
            SpawnFailed: It could not be started; the error names what is at fault.
            LimitReached: This backend runs as many processes as it may.
        """

    async def aclose(self) -> None:
        """Kill every process and wait for their end.  Nothing can be started after."""


class Ledger(Protocol):
    """Small facts that outlive this server, each under a number."""

    def put(self, data: bytes) -> int:
        """Keep these bytes; return their number, which is not 0.

        Raises:
            LimitReached: There is no room for them.
        """

    def remove(self, number: int) -> None:
        """Keep nothing any more under a number; may be called twice."""

    def items(self) -> Iterable[tuple[int, bytes]]:
        """All numbers and their bytes, in the order in which they were put."""


@value
class RecoveredProcess:
    """A process that another server has started, and that goes on here."""

    note: bytes
    """``Spec.note`` of it."""
    process: HostedProcess
    closed_at: float | None
    """When its output ended, by the clock of the loop; None if it has not."""
    acknowledged: int
    """What ``HostedProcess.acknowledged`` was last told."""
    is_forgotten: bool
    """Whether it was forgotten, and only somebody whom it has started is left."""


class HostedBackend(Backend, Protocol):
    """A backend on this host."""

    async def start(self, spec: Spec) -> HostedProcess: ...

    @property
    def is_durable(self) -> bool:
        """Whether processes with a ``Spec.note`` outlive this server."""

    @property
    def ledger(self) -> Ledger | None:
        """Small facts that outlive this server as processes with a ``Spec.note`` do, if those do."""

    def recovered(self) -> Sequence[RecoveredProcess]:
        """Give the processes of the server before, once."""

    def on_behalf_of(self, principal: Principal, peer: str = "") -> HostedBackend:
        """This backend, as far as the principal may use it; ``peer`` is its address, for the record.

        Raises then, besides:
            Forbidden: The principal's token does not allow it.
            AuditFailed: It cannot be written down.
        """

    def unpack(self, packed: Packed) -> HostedProcess:
        """The process that ``HostedProcess.pack`` gave.  It is to be forgotten once."""
