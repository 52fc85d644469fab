"""A random scenario as data, and the model of what a client may rely on, whatever the order of events.

The model says which answers are possible, and which bytes a process must have
said in the end (pure).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.client import sha256

NAMES = ("a", "b", "c", "d")


# The steps.


@dataclass(frozen=True)
class Start:
    """Start a process, perhaps with a request right behind it in the same packet."""

    name: str
    kind: str
    seed: int
    behind: str = ""


@dataclass(frozen=True)
class Write:
    """Write to a process, several times at once; perhaps repeat the last write first."""

    name: str
    sizes: tuple[int, ...]
    retry: bool = False


@dataclass(frozen=True)
class Read:
    """Read from a process, from somewhere."""

    name: str
    back: int
    most: int | None
    wait: int


@dataclass(frozen=True)
class Control:
    """``signal``, ``terminate`` or ``settle``: wait for the end of a process that ends by itself."""

    name: str
    verb: str


@dataclass(frozen=True)
class Reconnect:
    """Lose the connection, with or without writes under way, and come back."""

    how: str
    unanswered: tuple[tuple[str, int], ...] = ()


Step = Start | Write | Read | Control | Reconnect


# What processes do.

GENERATOR = """
import os, random, sys
plan = random.Random(int(sys.argv[1]))
for _ in range(plan.randrange(1, 12)):
    fd, size = plan.choice((1, 1, 2)), plan.choice((1, 10, 1000, 5000, 20000))
    data = plan.randbytes(size)
    while data:
        data = data[os.write(fd, data):]
sys.exit(plan.randrange(0, 4))
"""


def generated(seed: int) -> tuple[bytes, bytes, int]:
    """What the generator writes to stdout and stderr, and its exit code."""
    plan = random.Random(seed)  # noqa: S311  (repeatable, not secret)
    said = {1: b"", 2: b""}
    for _ in range(plan.randrange(1, 12)):
        fd, size = plan.choice((1, 1, 2)), plan.choice((1, 10, 1000, 5000, 20000))
        said[fd] += plan.randbytes(size)
    return said[1], said[2], plan.randrange(0, 4)


RAW = "stty raw -echo; echo ready; exec cat"
"""A terminal that changes no byte, once it has said so."""

COMMANDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "generator": (["sh", "-c", 'trap "" INT; exec python3 -I -S -c "$0" "$1"', GENERATOR, "{seed}"], {}),
    "echo": (["cat"], {"pipeStdin": True}),
    "terminal": (["sh", "-c", RAW], {"tty": True}),
    "quick": (["sh", "-c", "echo out; echo err >&2; exit 5"], {}),
    "sleeper": (["sleep", "1000"], {}),
    "missing": (["/no/such/program"], {}),
}
ENDLESS = {"echo", "terminal", "sleeper"}
WRITABLE = {"echo", "terminal"}


@dataclass
class Book:
    """What the client knows of one process: the ledger of its bytes, and what it did to it."""

    kind: str
    seed: int
    chunks: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    exited: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    accepted: list[bytes] = field(default_factory=list)
    write_ids: list[str] = field(default_factory=list)
    interrupted: bool = False
    terminated: bool = False

    @property
    def disturbed(self) -> bool:
        return self.interrupted or self.terminated

    @property
    def known(self) -> int:
        """Up to which number everything is known, without a gap."""
        numbers = self.chunks.keys() | self.exited.keys() | self.closed
        last = 0
        while last + 1 in numbers:
            last += 1
        return last

    def note_chunk(self, seq: int, stream: str, data: bytes) -> None:
        """A chunk never changes, by whichever way it is seen."""
        assert self.chunks.setdefault(seq, (stream, data)) == (stream, data)

    def said(self, *streams: str) -> bytes:
        return b"".join(data for _, (stream, data) in sorted(self.chunks.items()) if stream in streams)

    def check(self) -> None:
        """The whole contract of a process that has closed."""
        last = max(self.chunks.keys() | self.exited.keys() | self.closed)
        assert len(self.exited) == len(self.closed) == 1, "one exit, one close"
        assert self.closed == {last}, "the close is the last"
        assert self.known == last, "no gap"
        assert not self.chunks.keys() & self.exited.keys(), "one number, one event"
        (code,) = self.exited.values()
        self._check_code(code)
        self._check_bytes(cut=self.disturbed and code in (130, 137))

    def _check_code(self, code: int) -> None:
        natural = {"generator": generated(self.seed)[2], "quick": 5}.get(self.kind)
        possible = {natural} - {None}
        if self.terminated:
            possible.add(137)
        if self.interrupted:
            possible.add(130)
        assert code in possible, f"exit code {code} is none of {possible}"

    def _check_bytes(self, *, cut: bool) -> None:
        """What was assembled equals what was written; if the process was cut short, what there is of it."""
        if self.kind == "generator":
            out, err, _ = generated(self.seed)
        elif self.kind == "quick":
            out, err = b"out\n", b"err\n"
        else:
            out, err = b"".join(self.accepted), b""
            if self.kind == "terminal":
                out = b"ready\n" + out
        for expected, got in ((out, self.said("stdout", "pty")), (err, self.said("stderr"))):
            if cut:
                expected = expected[: len(got)]
            assert sha256(got) == sha256(expected), f"{len(got)} bytes instead of {len(expected)}"
