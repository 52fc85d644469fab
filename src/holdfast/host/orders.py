"""What a warden is told, and what it tells: the messages, as bytes and as values (pure).

The other side is ``nursery.c``, and ``nursery.py`` where nothing was compiled.
All three change together.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from holdfast.model import Usage
from holdfast.sandbox import Denial
from holdfast.value import value

if TYPE_CHECKING:
    from .sandbox.cage import Cage


_ORDER = struct.Struct("10I")
_LIMIT = struct.Struct("3Q")
_REPORT = struct.Struct("IiII3Q")
_PID = struct.Struct("i")
REPORT_MOST = _REPORT.size + 16 + 256 * _PID.size
"""Bytes of the longest report."""

INLINE = 65_536
"""Bytes of an order that fit into a message; longer ones are handed over in a file."""

_START, _RELEASE, _KILL = 1, 2, 3
_TERMINAL, _SEARCH, _IN_FILE, _HAS_STDIN, _QUIETLY = 1, 2, 4, 8, 16
_CONFINED, _RULESET, _WRAPPED, _WITNESS, _GUARD, _POWERLESS = 32, 64, 128, 256, 512, 1024
_BY_SIGNAL, _ALONE = 1, 2


class News(Enum):
    """What a warden can tell."""

    STARTED = 1
    FAILED = 2
    EXITED = 3
    EMPTY = 4
    """Nobody is left of the tree."""
    SURVIVORS = 5
    """Those who were killed and live."""
    LOST = 6
    """The warden is gone, and with it the knowledge of how the command ended."""
    DENIAL = 7
    """Something that the sandbox has refused; all of it comes just before the exit."""


class Stage(Enum):
    """Where a start failed."""

    FORK = 1
    TERMINAL = 2
    DIRECTORY = 3
    SEARCH = 4
    PROGRAM = 5
    LIMIT = 6
    GROUP = 7
    SANDBOX = 8
    HIDDEN = 9
    """The program is there, but not to be seen in the sandbox."""


@value
class Report:
    """One piece of news."""

    news: News
    value: int = 0
    """A pid, an error number, an exit status or a signal's number."""
    detail: int = 0
    warden: int = 0
    """The warden's pid, with ``STARTED``."""
    usage: Usage | None = None
    pids: Sequence[int] = ()
    denial: Denial | None = None

    @staticmethod
    def read(data: bytes) -> Report:
        """What a warden has sent."""
        what, value, detail, warden, user, system, peak = _REPORT.unpack_from(data)
        if what == News.DENIAL.value:
            op, _, subject = data[_REPORT.size :].partition(b"\0")
            return Report(News.DENIAL, denial=Denial(os.fsdecode(op), os.fsdecode(subject), value))
        pids = [pid for (pid,) in _PID.iter_unpack(data[_REPORT.size :])]
        return Report(News(what), value, detail, warden, Usage(user, system, peak * 1024), pids)

    @property
    def stage(self) -> Stage:
        return Stage(self.detail)

    @property
    def by_signal(self) -> bool:
        return bool(self.detail & _BY_SIGNAL)

    @property
    def alone(self) -> bool:
        """Whether the command has left nobody behind."""
        return bool(self.detail & _ALONE)


LOST = Report(News.LOST)


@value
class Order:
    """What a warden is to start."""

    cwd: bytes
    program: bytes
    argv: Sequence[bytes]
    env: Sequence[bytes]
    path: bytes | None = None
    """Where to look for ``program``; without it ``program`` is a file."""
    terminal: bytes | None = None
    stdin: bool = False
    limits: Sequence[tuple[int, int, int]] = ()
    """Resource, soft limit, hard limit."""
    groups: Sequence[bytes] = ()
    """Files of control groups that take a pid."""
    cage: Cage | None = None

    def encode(self) -> tuple[bytes, bytes]:
        """The head, to which the caller may add ``_IN_FILE``, and what follows it."""
        texts = [self.cwd]
        flags = _HAS_STDIN if self.stdin else 0
        if self.terminal is not None:
            flags |= _TERMINAL
            texts.append(self.terminal)
        texts += self.groups
        texts.append(self.program)
        if self.path is not None:
            flags |= _SEARCH
            texts.append(self.path)
        body = b"".join(_LIMIT.pack(*limit) for limit in self.limits)
        sandbox = 0, 0, 0
        if self.cage is not None:
            flags |= _sandbox_flags(self.cage)
            if self.cage.wrapper is not None:
                texts.append(self.cage.wrapper)
            texts += self.cage.masks
            texts += self.cage.rules
            body += self.cage.filter
            sandbox = len(self.cage.filter), len(self.cage.masks), len(self.cage.rules)
        texts += self.argv
        texts += self.env
        texts.append(b"")
        body += b"\0".join(texts)
        if len(body) > INLINE:
            flags |= _IN_FILE
        counts = len(self.argv), len(self.env), len(self.limits), len(self.groups)
        return _ORDER.pack(_START, flags, *counts, len(body), *sandbox), body


def _sandbox_flags(cage: Cage) -> int:
    return (
        _CONFINED
        | (_RULESET if cage.ruleset is not None else 0)
        | (_WRAPPED if cage.wrapper is not None else 0)
        | (_WITNESS if cage.witness else 0)
        | (_GUARD if cage.guard else 0)
        | (_POWERLESS if cage.powerless else 0)
    )


def release(*, quietly: bool) -> bytes:
    """The command's number is no longer needed."""
    return _ORDER.pack(_RELEASE, _QUIETLY if quietly else 0, *[0] * 8)


KILL = _ORDER.pack(_KILL, *[0] * 9)
"""End the tree."""
