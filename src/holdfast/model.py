"""The values every layer shares (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Stream(Enum):
    """Where a chunk came from.  A terminal has one stream for both outputs."""

    STDOUT = "stdout"
    STDERR = "stderr"
    PTY = "pty"


class WriteStatus(Enum):
    """What became of bytes offered to stdin."""

    ACCEPTED = "accepted"
    """Ours now: they reach the child in order, or the child does not want them."""
    STDIN_CLOSED = "stdinClosed"
    """There is no stdin, the child closed it, or the child has exited."""


@dataclass(frozen=True, slots=True)
class Size:
    """A terminal's size in characters."""

    rows: int = 24
    cols: int = 80


class Inherit(Enum):
    """Which of the host's variables a child starts from."""

    ALL = "all"
    CORE = "core"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class EnvPolicy:
    """Which variables a child gets before the request's own are laid over them."""

    inherit: Inherit
    ignore_default_excludes: bool
    exclude: tuple[str, ...]
    set: tuple[tuple[str, str], ...]
    include_only: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """What to start.

    Text stands for bytes the way the operating system's interfaces of Python
    do it: UTF-8, with bytes that are not UTF-8 as lone surrogates.
    """

    argv: Sequence[str]
    """The program and its arguments; the program is looked up in PATH of ``env``."""
    cwd: str
    """An absolute path."""
    env: Mapping[str, str | None]
    """The child's variables: all of them, or what is laid over those of ``env_policy``.

    None takes a variable away.
    """
    env_policy: EnvPolicy | None = None
    """What the child inherits from the host; without one, nothing."""
    terminal: Size | None = None
    """Give the child a terminal of this size instead of pipes."""
    stdin: bool = False
    """Give the child a pipe as stdin.  A terminal is always writable."""
    arg0: str | None = None
    """What the child sees as its own name; the program that runs stays ``argv[0]``."""


@dataclass(slots=True)
class Chunk:
    """Bytes of one stream, as one read returned them, with their number."""

    seq: int
    stream: Stream
    data: bytes


@dataclass(slots=True)
class Page:
    """An answer to ``Process.read``."""

    chunks: Sequence[Chunk]
    next_seq: int
    """One more than the last number the reader now knows of."""
    exit_code: int | None
    """None while the process runs."""
    closed: bool

    @property
    def exited(self) -> bool:
        return self.exit_code is not None


@dataclass(frozen=True, slots=True)
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
