"""The values every layer shares (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

from . import old_names
from .recordings import HostRecording
from .sandbox import NO_SANDBOXES, Denial, Guarantees, Sandbox
from .users import User
from .value import record, value
from .wording import words_of_end


class Stream(Enum):
    """Where a chunk came from.  A terminal has one stream for both outputs."""

    STDOUT = "stdout"
    STDERR = "stderr"
    PTY = "pty"


class WriteStatus(Enum):
    """Whether bytes for stdin were accepted."""

    ACCEPTED = "accepted"
    """The bytes will reach the child, in order, unless it stops reading."""
    STDIN_CLOSED = "stdinClosed"
    """There is no stdin, the child closed it, or the child has exited."""


@value
class Size:
    """A terminal's size in characters."""

    rows: int = 24
    cols: int = 80


class Inherit(Enum):
    """Which of the host's variables a child starts from."""

    ALL = "all"
    CORE = "core"
    NONE = "none"


@value
class EnvironmentPolicy:
    """Which variables a child gets before the request's own are laid over them."""

    inherit: Inherit
    ignore_default_excludes: bool
    exclude: tuple[str, ...]
    set: tuple[tuple[str, str], ...]
    include_only: tuple[str, ...]


@value
class Limits:
    """What a process and everything it starts may use together; None is no limit."""

    memory: int | None = None
    """Bytes resident."""
    cpu: float | None = None
    """Seconds of processor time."""
    processes: int | None = None
    """At once, the first included."""
    files: int | None = None
    """Open files of each process."""


class Enforcer(StrEnum):
    """What enforces a limit."""

    CGROUP = "cgroup"
    """The kernel, for the whole tree: a control group."""
    RLIMIT = "rlimit"
    """The kernel, for each process."""
    SAMPLED = "sampled"
    """The server, which looks at the tree from time to time."""


UNLIMITED = Limits()
"""The limits of every process without any.  There is one such object, so that ``is`` recognizes it."""


@value
class ProcessTerms:
    """When a process is ended though nobody asks for it, and how."""

    timeout: float | None = None
    """Seconds from its start."""
    idle_timeout: float | None = None
    """Seconds in which it neither says nor is given anything."""
    grace: float = 0.0
    """Seconds between the request to end, SIGTERM, and the end."""
    output: int | None = None
    """Bytes of output after which it is ended."""
    drain: float | None = None
    """Seconds after its exit until its output is closed, whoever holds it open."""
    limits: Limits = UNLIMITED
    truncate: bool = False
    """Whether output beyond ``output`` is read and dropped, and nobody is ended for it."""


PLAIN = ProcessTerms()
"""The terms of a process that nothing but itself and its clients ends."""


@value
class Spec:
    """A program to start: arguments, directory, variables, terminal, terms, sandbox, user.

    Text stands for bytes as in Python's ``os``: UTF-8, and lone surrogates for bytes that are not UTF-8.
    """

    argv: Sequence[str]
    """The program and its arguments; the program is looked up in PATH of ``env``."""
    cwd: str
    """An absolute path."""
    env: Mapping[str, str | None]
    """The child's variables, or what is laid over those of ``env_policy``; None takes a variable away."""
    env_policy: EnvironmentPolicy | None = None
    """What the child inherits from the host; without one, nothing."""
    terminal: Size | None = None
    """Give the child a terminal of this size instead of pipes."""
    stdin: bool = False
    """Give the child a pipe as stdin.  A terminal is always writable."""
    arg0: str | None = None
    """What the child sees as its own name; the program that runs stays ``argv[0]``."""
    terms: ProcessTerms = PLAIN
    sandbox: Sandbox | None = None
    """What the child may do; without one, all that its user may."""
    user: User | None = None
    """Whose process it becomes; by default one of the server's own user."""
    variables: tuple[str, ...] | None = None
    """Patterns of the variables it may inherit; None for all that its policy gives it."""
    name: str = ""
    """What its client calls it: for the record only."""
    note: bytes = b""
    """What the next server needs to serve it to its client; without a note it ends with this one."""
    record: HostRecording | None = None
    """Have the host record its terminal."""


class Kind(Enum):
    """Why a process ended."""

    EXIT = "exit"
    """By itself, with a code."""
    SIGNAL = "signal"
    """By a signal that was not ours."""
    TIMEOUT = "timeout"
    IDLE_TIMEOUT = "idleTimeout"
    OOM = "oom"
    OUTPUT_LIMIT = "outputLimit"
    CPU_LIMIT = "cpuLimit"
    TERMINATED = "terminated"
    """Because somebody asked for it."""
    SANDBOX_DENIED = "sandboxDenied"
    LOST = "lost"
    """Nobody knows: whoever watched over it was killed."""


@value
class Cause:
    """Why we end a process."""

    kind: Kind
    by: str | None = None
    """Who ended the process: ``client``, or ``limit`` if nobody asked for it."""
    detail: str | None = None


@value
class Outcome:
    """How a process ended, and why."""

    kind: Kind
    exit_code: int | None = None
    """None after death by signal."""
    signal: int | None = None
    by: str | None = None
    detail: str | None = None

    def __str__(self) -> str:
        """Say it in a few words: ``exit 0``, ``SIGKILL``, ``timeout: more than 4 seconds``."""
        return words_of_end(self.kind.value, self.exit_code, self.signal, self.detail)


@value
class Usage:
    """What a tree has used: the processes of it that have ended, and whom they had waited for."""

    user_us: int
    system_us: int
    peak_bytes: int
    """The peak memory of the largest process."""


@value
class Denied:
    """What a sandbox has to do with the end of a process."""

    failed: bool
    """Whether the process failed and the sandbox had refused it something."""
    exact: bool
    """Whether that is known, and not guessed from what it said."""
    denials: tuple[Denial, ...] = ()
    """What was refused."""


@value
class Exit:
    """The end of a process."""

    code: int
    """128 + n after death by signal n; -1 if nobody knows."""
    outcome: Outcome
    usage: Usage | None = None
    held_by: Sequence[int] = ()
    """The PIDs of processes that hold its output open."""
    denied: Denied | None = None
    """Whether the sandbox is to blame for the end; None without a sandbox."""
    dropped: int = 0
    """Bytes of output beyond the limit that were read and dropped up to the end."""


@value
class Ended:
    """What a request for the end of a process came to."""

    running: bool
    """Whether the process still ran when its end was requested."""
    survivors: Sequence[int] = ()
    """The PIDs of processes that could not be ended."""
    exact: bool = True
    """Whether everything that the process had started is accounted for."""


@value
class Gap:
    """Output that was dropped: its first and last number, and its size."""

    first: int
    last: int
    size: int | None
    """Bytes; None if there was too much to keep account of."""


class Leftovers(Enum):
    """What to do with the processes that one leaves behind."""

    SPARE = 1
    END_GROUP = 2
    """End those that stayed in its group."""
    END = 3
    """End them all."""


@record
class Chunk:
    """Bytes of one stream, as one read returned them, with their number."""

    seq: int
    stream: Stream
    data: bytes


@record
class Page:
    """An answer to ``Process.read``."""

    chunks: Sequence[Chunk]
    next_seq: int
    """One more than the last number the reader now knows of."""
    exit: Exit | None
    """None while the process runs."""
    closed: bool
    gap: Gap | None = None
    """What is missing before the first chunk."""

    @property
    def exited(self) -> bool:
        return self.exit is not None

    @property
    def exit_code(self) -> int | None:
        return None if self.exit is None else self.exit.code


@value
class HostInfo:
    """What a client may want to know of the host before it starts anything."""

    shell: str
    """The path of the user's shell."""
    cwd: str
    home: str | None
    temp: str
    temp_dirs: Sequence[str]
    """Where the server was told to keep temporary files, if it was."""
    provider: str
    """An opaque identifier, the same for as long as the host's installation."""
    version: str
    sandboxes: Guarantees = NO_SANDBOXES
    durable: bool = False
    """Whether processes outlive a crash of the server."""
    screens: bool = False
    """Whether it is known what terminals show."""


class ProcessState(StrEnum):
    """How far a process is.  A member equals its word, and prints as it."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    CLOSED = "closed"

    __repr__ = str.__repr__


@value
class CurrentUsage:
    """What a process and everything it has started use at one moment."""

    name: str
    """What people call it; its identifier, if it has no name."""
    identifier: str
    """What no other process is ever called."""
    cpu_us: int
    """Processor time in microseconds since it began, that of those who have ended included."""
    resident_bytes: int
    """Memory of all of them together; what several of them share counts several times."""
    processes: int
    """How many of them there are.  With 0, all have ended and are about to be removed."""
    output_bytes: int
    """Bytes of output up to now, of all that was kept at some time."""
    age: float = 0.0
    """Seconds since this was seen; who compares two of them subtracts it from the time of the answer."""


@value
class Listing:
    """One line of a list of processes."""

    name: str
    """What people call it; its identifier, if it has no name."""
    pid: int | None
    """None while it starts."""
    argv: Sequence[str]
    """Cut after about 1,024 characters, with ``...`` as the last element then."""
    cwd: str
    terminal: bool
    started: float
    """When it was asked for, in seconds since 1970."""
    state: ProcessState | str
    """``starting``, ``running``, ``exited`` or ``closed``; a newer server may know others."""
    exit_code: int | None
    outcome: Outcome | None
    next_seq: int
    retained: int
    """Bytes of output that are kept."""
    kept: bool = False
    """Whether it outlives the client that asked for it."""
    identifier: str = ""
    """What no other process is ever called."""
    waiting_for_input: bool | None = None
    """Whether it waits for input; None if that is not known, or was not asked for."""


@value
class HttpHeader:
    """A header of a request."""

    name: str
    value: str
    variable: str | None = None
    """A variable of the server whose value is put behind ``value``; the client need not know it."""


@value
class HttpRequest:
    """What to ask of whom."""

    method: str
    url: str
    """As ``web.parse_url`` gives it."""
    headers: tuple[HttpHeader, ...] = ()
    """Sent in this order, repeats included."""
    body: bytes = b""
    timeout: float | None = None
    """Seconds for the whole exchange, the body of the response included; None is no limit."""
    follow: bool = True
    """Whether redirects are followed, or are the response."""


# Text.  The locale of a server must not change what a child sees, so text is always UTF-8, and bytes that are
# not UTF-8 are carried as lone surrogates.


def to_bytes(text: str) -> bytes:
    """Return the bytes of a variable, an argument or a path."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """Return the text that stands for the bytes of a variable, an argument or a path."""
    return data.decode("utf-8", "surrogateescape")


def utf8_size(text: str) -> int:
    """Return the bytes of a text, as the kernel counts them, and as they are sent but for escapes of JSON."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_unicode(text: str) -> bool:
    """Whether it has no half of a character: those stand for bytes that are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"EnvPolicy": "EnvironmentPolicy", "Terms": "ProcessTerms"})
