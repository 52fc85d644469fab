"""What a process says and is given while its servers are killed, and the ledger of what clients were told."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from holdfast.model import Stream

BOTH = (Stream.STDOUT, Stream.STDERR)
END = b"code 7"


@dataclass
class Script:
    """What the child says and is given."""

    pipes: tuple[int, ...] = ()
    """Bytes in each pipe, which are of the two streams by turns."""
    late: tuple[int, ...] = ()
    """The same, after the exit."""
    terminal: int = 0
    writes: tuple[int, ...] = ()
    before: int = 0
    """Chunks of one byte that were said before anybody is killed."""
    writes_before: int = 0
    limit: int = 1 << 30
    is_stale: bool = False
    """Whether an earlier command has left the cursor in what becomes the first cell."""


SCRIPTS = {
    # Cells, blocks, both streams, the first growth of the index, a terminal, writes of all sizes.
    "life": Script(
        pipes=(13, 3000, 80, 1300, 270_000, 9, 2000, 40),
        late=(5, 70),
        terminal=3000,
        writes=(10, 3000, 3000, 9000, 270_000, 7),
    ),
    "stale": Script(pipes=(13, 5000, 80), writes=(10,), is_stale=True),
    # Everything but the newest is dropped, block by block.
    "drops": Script(pipes=(60_000, 3000, 200_000, 100, 140_000, 30, 65_000), limit=70_000),
    "cell": Script(pipes=(3, 4, 5, 6), before=30),
    "directory": Script(pipes=(3, 4, 5), before=254, writes=(5, 6, 7, 8), writes_before=61),
    "segments": Script(pipes=(3, 4, 5, 6, 7), before=16_381, limit=400),
    "old segments": Script(pipes=(1, 1, 1, 1, 1), before=16_782, limit=400),
}


@lru_cache(maxsize=256)
def content(what: str, size: int) -> bytes:
    """Bytes that are nowhere the same."""
    return random.Random(what).randbytes(size)  # noqa: S311 (the same in every process)


@dataclass
class Ledger:
    """What clients were told by all servers together."""

    script: Script
    chunks: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    adopted: int = 0
    end: tuple[Any, ...] = ()
    left: tuple[Any, ...] = ()
    wrong: list[str] = field(default_factory=list)

    def hear(self, told: list[Any]) -> None:
        for kind, *facts in told:
            if kind == "chunk":
                seq, *chunk = facts
                if self.chunks.setdefault(seq, tuple(chunk)) != tuple(chunk):
                    self.wrong.append(f"chunk {seq} is another one than before")
            elif kind == "adopted":
                self.adopted += facts[0]
            elif kind == "end":
                self.end = tuple(facts)
            else:
                self.left = tuple(facts)

    def check(self, read: bytes) -> list[str]:
        """What is wrong, in words."""
        for what, found, expected in self._figures(read):
            if found != expected:
                self.wrong.append(f"{what}: {_short(found)} instead of {_short(expected)}")
        return self.wrong

    def _figures(self, read: bytes) -> Iterator[tuple[str, object, object]]:
        script = self.script
        said = {stream: bytearray() for stream in ("stdout", "stderr", "pty")}
        for _, (stream, piece) in sorted(self.chunks.items()):
            said[stream] += piece
        expected = {"stdout": bytearray(b"." * script.before), "stderr": bytearray()}
        expected["pty"] = bytearray(content("terminal", script.terminal))
        for part, first in ((script.pipes, 0), (script.late, len(script.pipes))):
            for number, size in enumerate(part):
                expected[BOTH[number % 2].value] += content(f"pipe {first + number}", size)
        for stream, data in expected.items():
            yield stream, bytes(said[stream]), bytes(data)
        facts, exit_seq, closed_seq, next_seq, is_counted = self.end or ((), 0, 0, 0, False)
        numbers = [seq for seq in range(1, len(self.chunks) + 2) if seq != exit_seq]
        yield "numbers", sorted(self.chunks), numbers
        late = {seq for seq, (_, data) in self.chunks.items() if seq > exit_seq}
        yield "numbers behind the exit", bool(late), bool(script.late)
        yield "close and next", (closed_seq, next_seq), (len(self.chunks) + 2, len(self.chunks) + 3)
        yield "facts", facts, (b"facts" * 100, b"because", END, 4711, 2.5, 3.0)
        yield "budget", is_counted, True
        writes = [content(f"write {-number}", 1) for number in range(script.writes_before)]
        writes += [content(f"write {number}", size) for number, size in enumerate(script.writes, 1)]
        yield "stdin", read, b"".join(writes)
        yield "left", self.left[:2], (0, 0)
        yield "memory", self.left[2] < 9 << 20 if self.left else None, True


def _short(found: object) -> str:
    return f"{len(found)} bytes" if isinstance(found, bytes) else repr(found)[:200]
