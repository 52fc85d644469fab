"""Bytes as a source of choices: the same bytes give the same ones, so that a case can be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")

TEXTS = (
    *(
        "",
        "p",
        "x",
        "a/b",
        "..",
        "\0",
        "\u00e9",
        "\ufffd",
        "\U0010ffff",
        "\u0301",
        'q"\\\n',
        "~/x",
        "/tmp",
        "*.py",
    ),
    *(
        "file:///tmp",
        "file:///a%20b/%FF",
        "file://host/x",
        "FILE:/c:/x",
        "file:///a/../b",
        "http://x/",
        "file:///%00",
    ),
    *(
        "YQ==",
        "YWI=",
        "YWJj",
        "YQ=",
        "YR==",
        "Y Q==",
        "YWJj" * 40,
        "YWJj" * 40 + "=",
        "exact",
        "exit",
        "stdout",
    ),
    *(
        "01234567-89ab-cdef-0123-456789abcdef",
        "urn:uuid:" + "0" * 32,
        "SIGKILL",
        "SIGRTMIN+3",
        "SIG" + "9" * 30,
    ),
    *("backend", "landlock", "weaknesses", "protectsSubpaths", "reason"),
    *(":read-only", ":workspace", "accepted", "unknownProcess", "directory", "No such file (os error 2)"),
)
"""Texts that mean something to somebody."""

NUMBERS = (
    *(
        0,
        1,
        -1,
        2,
        24,
        127,
        1000,
        65_535,
        65_536,
        2**31,
        2**53 + 1,
        2**63 - 1,
        2**63,
        2**64 - 1,
        2**64,
        2**70,
    ),
    *(-(2**63), -(2**63) - 1, 10**25, -(10**40), 10**320),
)
FLOATS = (0.5, -0.0, 1e300, 1.0, 5e-324, 1e22)


class Draw:
    """Choices, made by the bytes in turn; when there are no more, every choice is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def below(self, end: int) -> int:
        """A number from 0 up to ``end``, which is not included."""
        found = self.byte()
        if end > 256:
            found = found << 8 | self.byte()
        return found % end

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def rest(self) -> bytes:
        found, self._at = self._data[self._at :], len(self._data)
        return found

    def some(self, most: int) -> bytes:
        """Up to ``most`` bytes, as they are."""
        size = self.below(most + 1)
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    @property
    def is_empty(self) -> bool:
        return self._at >= len(self._data)

    # Values of JSON.

    def text(self) -> str:
        if (kind := self.byte()) < 192:
            return TEXTS[kind % len(TEXTS)]
        return self.some(24).decode(errors="replace")

    def number(self) -> int:
        kind = self.byte()
        return kind - 100 if kind < 128 else NUMBERS[kind % len(NUMBERS)]

    def value(self, depth: int = 0) -> Any:
        """Anything."""
        match self.below(8 if depth < 4 else 6):
            case 0:
                return None
            case 1:
                return bool(self.below(2))
            case 2:
                return self.number()
            case 3:
                return self.pick(FLOATS)
            case 4 | 5:
                return self.text()
            case 6:
                return [self.value(depth + 1) for _ in range(self.below(4))]
            case _:
                return {self.text(): self.value(depth + 1) for _ in range(self.below(4))}

    def like(self, kind: type) -> Any:
        """JSON that is nearly a ``kind``: most of what is in it fits, and some does not."""
        return self._like(_shape(kind))

    def _like(self, shape: inspect.Type) -> Any:
        if self.byte() >= 248:
            return self.value(2)
        match shape:
            case inspect.Metadata(type=inner):
                return self._like(inner)
            case inspect.UnionType(types=types):
                return self._like(self.pick(types))
            case inspect.IntType():
                return self.number()
            case inspect.BoolType():
                return bool(self.below(2))
            case inspect.NoneType():
                return None
            case inspect.StrType():
                return self.text()
            case inspect.EnumType(cls=cls):
                return self.pick([member.value for member in cls])
            case inspect.ListType(item_type=item):
                return [self._like(item) for _ in range(self.below(4))]
            case inspect.DictType(value_type=item):
                return {self.text(): self._like(item) for _ in range(self.below(4))}
            case inspect.StructType():
                return self._struct(shape)
            case _:
                return self.value(1)

    def _struct(self, shape: inspect.StructType) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if shape.tag_field is not None and self.byte() < 250:
            found[shape.tag_field] = shape.tag
        for field in shape.fields:
            # Most of what may be left out is, as in messages of clients.
            if self.byte() >= (3 if field.required else 160):
                found[field.encode_name] = self._like(field.type)
        if self.byte() >= 250:
            found[self.text()] = self.value(2)
        return found


@cache
def _shape(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def pieces(data: bytes, draw: Draw, most: int = 6) -> list[bytes]:
    """``data``, cut in places that are drawn."""
    cuts = sorted(draw.below(len(data) + 1) for _ in range(draw.below(most + 1)))
    return [data[start:end] for start, end in pairwise([0, *cuts, len(data)])]


SECONDS = 5.0
"""For what takes a thousandth of it: nobody else is served meanwhile."""


def timed(work: Callable[[], T]) -> T:
    """What ``work`` gives, unless it needs far more time than it has any reason to."""
    start = time.process_time()
    try:
        return work()
    finally:
        assert time.process_time() - start < SECONDS, "far too slow"


def is_tellable(words: str) -> bool:
    """Whether somebody can be told this in JSON."""
    return bool(msgspec.json.decode(msgspec.json.encode(words)) == words)
