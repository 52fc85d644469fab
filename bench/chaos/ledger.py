"""What must come out, and what has: the sums of a run."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

from holdfast.model import Chunk, Stream

_SHOWN = 20
"""Faults that are told one by one."""


@dataclass
class Ledger:
    """Everything that was counted; ``wrong`` says in words what is not as it must be."""

    deeds: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    streams: int = 0
    size: int = 0
    chunks: int = 0
    writes: int = 0
    repeated: int = 0
    """Writes that were sent twice on purpose, with the same identifier."""
    missing: int = 0
    doubled: int = 0
    gaps: int = 0
    codes: int = 0
    lost_writes: int = 0
    doubled_writes: int = 0
    doubled_starts: int = 0
    kills: int = 0
    early: int = 0
    """Kills of a server that did not serve yet."""
    restarts: int = 0
    """Servers that served after another one."""
    adopting: int = 0
    """Restarts in which bytes without a number were adopted."""
    reconnections: int = 0
    processes_left: int = 0
    cells_left: int = 0
    arena_bytes: int = 0
    wrong: list[str] = field(default_factory=list)

    def stream(self, whose: str, got: bytes, expected: bytes) -> None:
        """Compare what came of one stream with what was said there."""
        self.streams += 1
        self.size += len(got)
        if hashlib.sha256(got).digest() == hashlib.sha256(expected).digest():
            return
        same = next(
            (at for at, (one, two) in enumerate(zip(got, expected, strict=False)) if one != two),
            min(len(got), len(expected)),
        )
        self.missing += max(0, len(expected) - len(got))
        self.doubled += max(0, len(got) - len(expected))
        self.wrong.append(
            f"{whose}: {len(got)} bytes instead of {len(expected)}, another one at {same}: "
            f"{got[same - 16 : same + 48]!r} instead of {expected[same - 16 : same + 48]!r}"
        )

    def numbers(self, whose: str, chunks: list[Chunk]) -> None:
        """Look for gaps in the numbers: only the exit may have one between those of the output."""
        self.chunks += len(chunks)
        numbers = [chunk.seq for chunk in chunks]
        if not numbers:
            return
        if numbers != sorted(set(numbers)):
            self.gaps += 1
            self.wrong.append(f"{whose}: numbers out of order: {numbers}")
        absent = set(range(1, numbers[-1])) - set(numbers)
        if len(absent) > 1:
            self.gaps += len(absent) - 1
            self.wrong.append(f"{whose}: the numbers {sorted(absent)} are absent")

    def end(self, whose: str, got: object, expected: object) -> None:
        """Compare an exit code, or how a process ended."""
        if got != expected:
            self.codes += 1
            self.wrong.append(f"{whose}: ended with {got}, not {expected}")

    def print(self) -> int:
        """Print everything; return the exit code of the run."""
        rows = {
            "kills of the server": f"{self.kills}, {self.early} of them before it served",
            "restarts": f"{self.restarts}, bytes without a number were adopted in {self.adopting}",
            "deeds": ", ".join(f"{name} {count}" for name, count in sorted(self.deeds.items())),
            "connections that broke": self.reconnections,
            "starts, streams, chunks": f"{self.starts}, {self.streams}, {self.chunks}",
            "bytes of output": self.size,
            "writes": f"{self.writes}, {self.repeated} of them sent twice",
            "bytes missing": self.missing,
            "bytes doubled": self.doubled,
            "gaps in numbers": self.gaps,
            "wrong exit codes": self.codes,
            "writes lost, doubled": f"{self.lost_writes}, {self.doubled_writes}",
            "starts doubled": self.doubled_starts,
            "processes left": self.processes_left,
            "arena cells left": f"{self.cells_left} (memory {self.arena_bytes / 1024:.0f} KiB)",
        }
        for name, value in rows.items():
            print(f"{name:26} {value}")
        for wrong in self.wrong[:_SHOWN]:
            print(f"\nWRONG: {wrong}")
        bad = len(self.wrong)
        print(f"\n{f'{bad} wrong' if bad else 'all well'}", flush=True)
        return int(bool(bad))


def joined(chunks: list[Chunk], *streams: Stream) -> bytes:
    """The bytes of these streams."""
    return b"".join(chunk.data for chunk in chunks if chunk.stream in streams)
