"""Processes of the exec dialect on the wire, once they run: requests, answers, notifications (pure)."""

from __future__ import annotations

import signal as signals
from enum import Enum, StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.model import Kind, ProcessState, Stream, WriteStatus

from .shapes import U64, Base64Text, Nothing, Params, Shape, Signature, Usize, open_choice, within_u64
from .start import TerminalSize

# What is asked.


class ReadParams(Params):
    wire_name = "ReadParams"

    process_id: str
    after_seq: U64 | None = None
    """Only chunks with a higher number; null is 0.  The others are acknowledged by it."""
    max_bytes: Usize | None = None
    """Stop before the chunk that would go over it; the first is given whatever its size."""
    wait_ms: U64 | None = None
    """Hold an empty answer back for so long, until there is output, exit or close; null is 0."""

    def __post_init__(self) -> None:
        # None of them is negative, so that one comparison tells most often that all are small.
        if (self.after_seq or 0) | (self.max_bytes or 0) | (self.wait_ms or 0) >= 2**63:
            within_u64(self.after_seq, self.max_bytes, self.wait_ms)


class WriteParams(Params):
    wire_name = "WriteParams"

    process_id: str
    chunk: Base64Text
    """The bytes, in base64 with padding."""
    write_id: str | None = None
    """Not empty; the same one is written once.  The last 4,096 accepted ones are remembered.  Without
    one (clients up to 0.140 send none) the bytes are written, and a retry would write them again."""


class SignalName(Enum):
    INTERRUPT = "interrupt"
    TERMINATE = "terminate"
    KILL = "kill"
    """Needs ``tree``, or a client that knows the extensions: others are told that it does not exist."""
    HANGUP = "hangup"
    QUIT = "quit"
    USER1 = "user1"
    USER2 = "user2"
    STOP = "stop"
    CONTINUE = "continue"


SIGNAL_NUMBERS = {
    SignalName.INTERRUPT: signals.SIGINT,
    SignalName.TERMINATE: signals.SIGTERM,
    SignalName.KILL: signals.SIGKILL,
    SignalName.HANGUP: signals.SIGHUP,
    SignalName.QUIT: signals.SIGQUIT,
    SignalName.USER1: signals.SIGUSR1,
    SignalName.USER2: signals.SIGUSR2,
    SignalName.STOP: signals.SIGSTOP,
    SignalName.CONTINUE: signals.SIGCONT,
}
"""What the words mean on a host."""


class SignalParams(Params):
    wire_name = "SignalParams"

    process_id: str
    signal: SignalName
    tree: bool | None = None
    """To everybody that it has started, instead of its process group."""


class AckParams(Params):
    wire_name = "AckParams"

    process_id: str
    seq: U64 | None = None
    """The client has everything up to this number; null: nothing that it had not before."""
    release: bool = False
    """Hold the process no longer, whatever is acknowledged from now on."""

    def __post_init__(self) -> None:
        within_u64(self.seq)


class TerminateParams(Params):
    wire_name = "TerminateParams"

    process_id: str
    grace_ms: U64 | None = None
    """SIGTERM first, and the end so much later.  If given, what an exited one left behind is ended too."""

    def __post_init__(self) -> None:
        within_u64(self.grace_ms)


class WaitParams(Params):
    wire_name = "WaitParams"

    process_id: str
    wait_ms: U64 | None = None
    """Wait so long for the exit; null is 0."""

    def __post_init__(self) -> None:
        within_u64(self.wait_ms)


class FindParams(Params):
    wire_name = "FindParams"

    name: str
    """Its name, its identifier, or at least 4 characters with which only its identifier begins."""


class RemoveProcessParams(Params):
    wire_name = "RemoveProcessParams"

    process_id: str


class CloseStdinParams(Params):
    wire_name = "CloseStdinParams"

    process_id: str
    write_id: str | None = None
    """An identifier that is sent again takes effect once, as with ``process/write``."""


class ResizeParams(Params):
    wire_name = "ResizeParams"

    process_id: str
    size: TerminalSize


# What is answered.


class WriteAnswer(StrEnum):
    """What becomes of bytes for stdin: a ``WriteStatus``, or there is no process that could take them."""

    ACCEPTED = WriteStatus.ACCEPTED.value
    STDIN_CLOSED = WriteStatus.STDIN_CLOSED.value
    UNKNOWN_PROCESS = "unknownProcess"
    STARTING = "starting"


class WriteResult(Shape):
    status: str
    """``accepted``, ``stdinClosed``, ``unknownProcess`` or ``starting``."""


class TerminateResult(Shape):
    running: bool
    """Whether there was something to end."""
    survivors: list[int] = msgspec.field(default_factory=list)
    """Pids of those who could not be ended."""
    tree_exact: bool = False
    """Whether everybody whom the process had started was in sight."""


class WireOutcome(Shape):
    """How a process ended, and why."""

    kind: Annotated[str, open_choice(Kind)]
    exit_code: int | None = None
    """Null after death by signal."""
    signal: str | None = None
    """The signal it died of, as in ``SIGKILL``."""
    by: str | None = None
    """Who ended it: ``client`` or ``limit``."""
    detail: str | None = None
    """The reason in words."""


class WireUsage(Shape):
    """What a process used, and those whom it had waited for."""

    user_ms: U64
    system_ms: U64
    max_rss_bytes: U64
    """Of the largest of them."""


class WireDenial(Shape):
    """Something that a sandbox has refused, although it would have worked without one."""

    op: str
    """The name of a system call; empty stands for more than can be listed."""
    path: str
    """What it was about: a path, or a kind of socket."""
    count: U64


class WaitResult(Shape, kw_only=True):
    exited: bool
    exit_code: int | None = None
    outcome: WireOutcome | None = None
    usage: WireUsage | None = None
    held_by: list[int] = msgspec.field(default_factory=list)
    """Pids of those who hold the output of an exited process open, as far as they were seen."""
    closed: bool
    sandbox_denied: bool | UnsetType = UNSET
    """As in the answer to ``process/read``; told of an exited process that has a sandbox."""
    denials: list[WireDenial] | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    denial: str | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    dropped_bytes: U64 | UnsetType = UNSET
    """As in the answer to ``process/read``."""


class ListedProcess(Shape):
    process_id: str
    argv: list[str]
    """Cut after about 1,024 characters, with ``...`` as the last element then."""
    cwd: str
    """URI."""
    tty: bool
    started_at_ms: U64
    """When it was asked for, in milliseconds since 1970."""
    state: Annotated[str, open_choice(ProcessState)]
    pid: int | None
    """Null while it starts."""
    exit_code: int | None
    outcome: WireOutcome | None
    next_seq: U64
    retained_bytes: U64
    kept: bool | UnsetType = UNSET
    """Told if it belongs to no client."""
    name: str | UnsetType = UNSET
    """What people call it, if it was given a name."""
    waiting_for_input: bool | UnsetType | None = UNSET
    """Told of a running process if ``inspect`` was asked for: as in ``process/inspect``."""

    def __post_init__(self) -> None:
        within_u64(self.next_seq)


class ListResult(Shape):
    processes: list[ListedProcess]
    """The session's, then the kept ones; in the order in which they were asked for, as many as fit."""
    more: bool | UnsetType = UNSET
    """Told if there are more, which did not fit."""


class WireOutputGap(Shape):
    """Output that is no longer kept."""

    from_seq: U64
    to_seq: U64
    """The last number of it."""
    bytes: U64 | None = None
    """Null if so much was dropped that nobody knows."""

    def __post_init__(self) -> None:
        within_u64(self.from_seq, self.to_seq, self.bytes)


class OutputChunk(Shape):
    """Bytes of one stream, with their number."""

    seq: U64
    stream: Stream
    chunk: Base64Text
    """The bytes, in base64."""

    def __post_init__(self) -> None:
        within_u64(self.seq)


class ReadResult(Shape, kw_only=True):
    chunks: list[OutputChunk]
    """What is kept, in order."""
    next_seq: U64
    """With ``maxBytes`` and chunks: one more than the last chunk.  Otherwise the number of the next event."""
    exited: bool
    """Whether the process has ended."""
    exit_code: int | None = None
    """128 + n after death by signal n; null while the process runs."""
    closed: bool
    """Whether its output has ended too."""
    failure: str | None = None
    """Always null."""
    sandbox_denied: bool = False
    """Whether the process has failed, and its sandbox had refused it something."""
    denials: list[WireDenial] | UnsetType = UNSET
    """What the sandbox has refused; told if there is anything."""
    denial: str | UnsetType = UNSET
    """``exact`` if that was seen, ``guess`` if concluded from the output; told with the extensions."""
    gap: WireOutputGap | UnsetType | None = UNSET
    """What is missing before the first chunk; told if there is anything."""
    outcome: WireOutcome | UnsetType = UNSET
    """Told of an exited process.  A client that does not know the extensions is not told of kind ``exit``."""
    usage: WireUsage | UnsetType = UNSET
    """Of an exited process; told to clients that know the extensions."""
    held_by: list[int] | UnsetType = UNSET
    """Pids of those who held the output open after its exit; told to the same, if there are any."""
    dropped_bytes: U64 | UnsetType = UNSET
    """Bytes of output beyond the limit that were dropped up to its exit; told if there are any."""

    def __post_init__(self) -> None:
        within_u64(self.next_seq)


# What is told.


class ProcessOutput(Shape):
    """A process has written something."""

    process_id: str
    seq: U64
    """Output, exit and close of a process share one gapless series of numbers."""
    stream: Stream
    chunk: Base64Text
    """The bytes, in base64; at most 64 KiB of them."""

    def __post_init__(self) -> None:
        within_u64(self.seq)


class ProcessExited(Shape):
    """A process has ended; output may follow if other processes hold it open."""

    process_id: str
    seq: U64
    exit_code: int
    """128 + n after death by signal n."""
    sandbox_denied: bool = False
    """As in the answer to ``process/read``."""
    denials: list[WireDenial] | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    denial: str | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    outcome: WireOutcome | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    usage: WireUsage | UnsetType = UNSET
    """Told to clients that know the extensions."""
    held_by: list[int] | UnsetType = UNSET
    """Pids of those who hold the output open, as far as a glance shows; told if there are any."""
    dropped_bytes: U64 | UnsetType = UNSET
    """As in the answer to ``process/read``."""

    def __post_init__(self) -> None:
        within_u64(self.seq)


class ProcessClosed(Shape):
    """A process has ended and so has its output: nothing follows."""

    process_id: str
    seq: U64

    def __post_init__(self) -> None:
        within_u64(self.seq)


FIND = Signature("process/find", FindParams, ListedProcess)
REMOVE = Signature("process/remove", RemoveProcessParams, Nothing)
READ = Signature("process/read", ReadParams, ReadResult)
ACK = Signature("process/ack", AckParams, Nothing)
WAIT = Signature("process/wait", WaitParams, WaitResult)
WRITE = Signature("process/write", WriteParams, WriteResult)
CLOSE_STDIN = Signature("process/closeStdin", CloseStdinParams, WriteResult)
RESIZE = Signature("process/resize", ResizeParams, Nothing)
SIGNAL = Signature("process/signal", SignalParams, Nothing)
TERMINATE = Signature("process/terminate", TerminateParams, TerminateResult)
