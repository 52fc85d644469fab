"""The messages between the server and a shim: their table, and how they are read and written (pure).

The table is the one source of these numbers and layouts: ``docs/generate.py`` writes ``native/messages.h``
from it, and a test fails where the two differ.  The text behind a name becomes its comment there.  Flags are
plain numbers and not enums, because every start combines some.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from holdfast.model import Usage
from holdfast.reports import NEWS_DENIAL, NEWS_STATE, News, Report
from holdfast.sandbox import Denial
from holdfast.value import value

if TYPE_CHECKING:
    from .sandbox.confinement import Confinement


VERSION = 5
"""Of these messages; the first byte that a fork server sends.

A program that was compiled from another version would take one path for another, and write to it.
"""

INLINE_MOST = 65_536
"""Bytes behind the head of an order; what is longer comes in a file of its own."""

SURVIVORS_MOST = 256
"""Pids in one report."""

DENIALS_MOST = 64
"""Different denials of one command; further ones are only counted."""

OP_MOST = 16
"""Bytes of what was denied, with the NUL at its end."""

SUBJECT_MOST = 1024
"""Bytes of what it was denied on."""

PLACES_MOST = 5
"""Places for descriptors that a shim holds."""

BOUNDS = ("INLINE_MOST", "SURVIVORS_MOST", "DENIALS_MOST", "OP_MOST", "SUBJECT_MOST", "PLACES_MOST")
"""The bounds above that the program in C keeps to as well: the header has them."""


class OrderKind:
    """What a shim can be told."""

    START = 1
    """Start a command."""
    RELEASE = 2
    """The command's pid is no longer needed: reap it once it has exited."""
    KILL = 3
    """Kill the whole tree."""
    SIGNAL = 4
    """Send the signal whose number is in ``flags`` to the command's group."""
    ASK = 5
    """Report STATE, with ``flags`` in its ``asked``, and then again all that was reported of the command."""
    HOLD = 6
    """Hold the descriptor that comes too; ``flags`` is its place."""
    DROP = 7
    """Close what is held in the places whose bits are set in ``flags``."""
    GONE = 8
    """The server has died: kill the whole tree of a command that has no key."""


class HeldPlace:
    """What a descriptor is to the server that a shim holds for it.

    All but CURSOR belong to the command, and are closed when the shim is free again.
    """

    STDIN = 0
    """The pipe to the command's standard input."""
    STDOUT = 1
    """The pipe from its standard output, or its terminal."""
    STDERR = 2
    """The pipe from its standard error."""
    CURSOR = 3
    """How far the output was taken; it belongs to the shim."""
    STDIN_CURSOR = 4
    """How far the input was written."""


class StartFlag:
    """How a command is to be started."""

    TERMINAL = 1
    """One descriptor comes in place of standard files: a terminal, which becomes all three of them."""
    SEARCH = 2
    """The program is searched for, in directories that follow its name."""
    IN_FILE = 4
    """What belongs behind the head is in a file, the last descriptor."""
    HAS_STDIN = 8
    """Standard input comes too; without it the command reads nothing."""
    CONFINED = 16
    """The command runs in a sandbox: there is a filter of its system calls."""
    RULESET = 32
    """A Landlock ruleset comes as a descriptor, after the standard files."""
    WRAPPED = 64
    """Bubblewrap makes the sandbox: the arguments for it come as a descriptor, after the standard files."""
    WITNESS = 128
    """The filter hands calls over: denials are reported."""
    GUARD = 256
    """Calls that change files are made by the shim, which refuses what the kernel cannot refuse."""
    POWERLESS = 512
    """Drop all capabilities; bubblewrap does that itself."""
    DOMAIN = 1024
    """Inside of bubblewrap's mounts Landlock keeps special files from being written, too."""
    NETWORK = 2048
    """The network may be used."""


class ReleaseFlag:
    """What a shim does after it has let go of the command's pid."""

    QUIETLY = 1
    """Do not report that the tree is empty."""


ORDER_FIELDS = (
    ("kind", "I", "OrderKind"),
    ("flags", "I", "of the kind, or the number of a signal"),
    ("arguments", "I", "how many texts are arguments"),
    ("variables", "I", "how many are variables"),
    ("limits", "I", "how many limits come first"),
    ("groups", "I", "directories of control groups to enter"),
    ("size", "I", "bytes behind the head, or in the file"),
    ("filter", "I", "bytes of the filter of system calls"),
    ("masks", "I", "directories that exist only for the sandbox to mount on"),
    ("rules", "I", "rules of the sandbox, for the witness"),
    ("hold", "I", "places of the descriptors to hold, a bit each"),
    ("user", "I", "how many numbers name the user; 0: the shim's own"),
    ("key", "Q", "a number never used twice; 0: the command ends with the server"),
)
"""The head of an order.

With START there follow the limits, the numbers of the user, the filter, and texts that
each end with a NUL: the directory of the command, its control groups, its program,
where to search for that, bubblewrap, masks, rules, arguments, variables.  A user is a
uid, a gid and those of the supplementary groups, of 32 bits each.  The descriptors are the standard files,
what the sandbox needs, what is to be held in the sequence of the places, the file.
"""

LIMIT_FIELDS = (
    ("resource", "Q", "RLIMIT_..."),
    ("soft", "Q", ""),
    ("hard", "Q", ""),
)
"""A limit of the command."""


class StateFlag:
    """What a shim was told about its command."""

    RELEASED = 1
    """That its pid is no longer needed."""
    KILLED = 2
    """To kill its tree."""
    STARTED = 4
    """Not told but known: it runs, or ran."""


class StartStage(Enum):
    """Where a start failed."""

    FORK = 1
    TERMINAL = 2
    DIRECTORY = 3
    SEARCH = 4
    PROGRAM = 5
    LIMIT = 6
    GROUP = 7
    """A control group cannot be entered."""
    SANDBOX = 8
    """The sandbox cannot be made."""
    HIDDEN = 9
    """The program is there, but cannot be seen from within the sandbox."""
    NO_GROUP = 10
    """What the order names as a control group is none."""
    USER = 11
    """The user cannot be changed."""


REPORT_FIELDS = (
    ("kind", "I", "News"),
    ("value", "i", ""),
    ("detail", "I", ""),
    ("shim", "I", ""),
    ("user_us", "Q", "processor time of the tree"),
    ("system_us", "Q", ""),
    ("peak_kib", "Q", "memory of the largest process"),
)
"""The head of a report."""

STATE_FIELDS = (
    ("key", "Q", "that of the command; 0 if it has none"),
    ("asked", "I", "the number that came with ASK"),
    ("flags", "I", "StateFlag"),
)
"""What follows the head of STATE."""


def _layout(fields: Sequence[tuple[str, str, str]]) -> struct.Struct:
    return struct.Struct("".join(code for _, code, _ in fields))


_ORDER, _LIMIT, _REPORT = _layout(ORDER_FIELDS), _layout(LIMIT_FIELDS), _layout(REPORT_FIELDS)
_STATE = _layout(STATE_FIELDS)
_PID = struct.Struct("i")

REPORT_MOST = _REPORT.size + max(OP_MOST + SUBJECT_MOST, SURVIVORS_MOST * _PID.size)
"""Bytes of the longest report."""


_NEWS = tuple(News)
"""By their numbers, which have no gaps."""


def read_report(data: bytes) -> Report:
    """Return the report in a message of a shim.

    Raises:
        ValueError: Shims have no such news.
    """
    what, value, detail, shim, user, system, peak = _REPORT.unpack_from(data)
    if what >= len(_NEWS):
        raise ValueError(f"shims have no news {what}")
    news = _NEWS[what]
    if news is NEWS_DENIAL:
        op, _, subject = data[_REPORT.size :].partition(b"\0")
        return Report(NEWS_DENIAL, denial=Denial(os.fsdecode(op), os.fsdecode(subject), value))
    if news is NEWS_STATE:
        return Report(NEWS_STATE, value, detail, shim)
    pids = [pid for (pid,) in _PID.iter_unpack(data[_REPORT.size :])]
    return Report(news, value, detail, shim, Usage(user, system, peak * 1024), pids)


def stage_of(report: Report) -> StartStage:
    """Return where the start failed, given the report of that."""
    return StartStage(report.detail)


@value
class StateReport:
    """What a shim reports of itself when it is asked."""

    pid: int
    """The pid of the command, or of what is starting it in a sandbox; 0 if the shim has no command."""
    shim: int
    """The pid of the shim."""
    key: int
    """The key of the command; 0 if it has none, and ends with the server that started it."""
    places: tuple[int, ...]
    """The places in which the shim holds a descriptor, in the sequence in which the descriptors come."""
    asked: int
    """The number that came with the question."""
    released: bool
    """Whether the shim was told that the pid is no longer needed."""
    killed: bool
    """Whether the shim was told to kill the tree.  It takes no other command then."""
    started: bool
    """Whether the command runs, or ran; False while its sandbox is being made."""

    @staticmethod
    def read(data: bytes) -> StateReport | None:
        """Return the report in a message of a shim; None if it is another report."""
        what, pid, detail, shim, *_ = _REPORT.unpack_from(data)
        if what != NEWS_STATE.value:
            return None
        key, asked, flags = _STATE.unpack_from(data, _REPORT.size)
        return StateReport(
            pid,
            shim,
            key,
            tuple(place for place in range(PLACES_MOST) if detail >> place & 1),
            asked,
            released=bool(flags & StateFlag.RELEASED),
            killed=bool(flags & StateFlag.KILLED),
            started=bool(flags & StateFlag.STARTED),
        )


@value
class StartOrder:
    """An order to start a command, in the form that a shim needs."""

    cwd: bytes
    program: bytes
    argv: Sequence[bytes]
    env: Sequence[bytes]
    path: bytes | None = None
    """The directories in which the shim searches for ``program``; None if that is a path."""
    terminal: bool = False
    """Whether the shim gets one terminal for all three standard files."""
    stdin: bool = False
    """Whether the shim gets a pipe for standard input."""
    limits: Sequence[tuple[int, int, int]] = ()
    """A resource, its soft limit and its hard limit each."""
    groups: Sequence[bytes] = ()
    """Directories of control groups that the command enters."""
    confinement: Confinement | None = None
    """What keeps the command in its sandbox, if it runs in one."""
    user: Sequence[int] = ()
    """The uid, the gid and the supplementary groups that the command gets; empty for the server's own."""
    key: int = 0
    """A number that no other command has; with 0 the command ends when the server dies."""

    def encode(self, hold: int = 0) -> tuple[bytes, bytes]:
        """Return the head of the message, and the body.

        A body that is too long for a message goes into a file, and the head has ``StartFlag.IN_FILE``.

        Args:
            hold: A bit for the place of each descriptor that the shim is to hold.
        """
        texts = [self.cwd]
        flags = StartFlag.HAS_STDIN if self.stdin else 0
        if self.terminal:
            flags |= StartFlag.TERMINAL
        texts += self.groups
        texts.append(self.program)
        if self.path is not None:
            flags |= StartFlag.SEARCH
            texts.append(self.path)
        body = b"".join(_LIMIT.pack(*limit) for limit in self.limits)
        if self.user:
            body += struct.pack(f"{len(self.user)}I", *self.user)
        sandbox = 0, 0, 0
        if self.confinement is not None:
            flags |= _sandbox_flags(self.confinement)
            if self.confinement.wrapper is not None:
                texts.append(self.confinement.wrapper)
            texts += self.confinement.masks
            texts += self.confinement.rules
            body += self.confinement.filter
            sandbox = len(self.confinement.filter), len(self.confinement.masks), len(self.confinement.rules)
        texts += self.argv
        texts += self.env
        texts.append(b"")
        body += b"\0".join(texts)
        if len(body) > INLINE_MOST:
            flags |= StartFlag.IN_FILE
        counts = len(self.argv), len(self.env), len(self.limits), len(self.groups)
        users = len(self.user)
        return _ORDER.pack(OrderKind.START, flags, *counts, len(body), *sandbox, hold, users, self.key), body


def _sandbox_flags(confinement: Confinement) -> int:
    """Return the bits of ``StartFlag`` that describe a confinement."""
    return (
        StartFlag.CONFINED
        | (StartFlag.RULESET if confinement.ruleset is not None else 0)
        | (StartFlag.WRAPPED if confinement.wrapper is not None else 0)
        | (StartFlag.WITNESS if confinement.witness else 0)
        | (StartFlag.GUARD if confinement.guard else 0)
        | (StartFlag.POWERLESS if confinement.powerless else 0)
        | (StartFlag.DOMAIN if confinement.domain else 0)
        | (StartFlag.NETWORK if confinement.network else 0)
    )


def _plain(kind: int, flags: int = 0) -> bytes:
    """Return an order that is a head alone."""
    return _ORDER.pack(kind, flags, *[0] * (len(ORDER_FIELDS) - 2))


def release(*, quietly: bool) -> bytes:
    """Return the order to reap the command; if ``quietly``, the shim does not report an empty tree."""
    return _plain(OrderKind.RELEASE, ReleaseFlag.QUIETLY if quietly else 0)


def signal(number: int) -> bytes:
    """Return the order to send a signal to the command's group."""
    return _plain(OrderKind.SIGNAL, number)


def ask(number: int) -> bytes:
    """Return the order to report everything again; the answer has this number of 32 bits."""
    return _plain(OrderKind.ASK, number)


def hold(place: int) -> bytes:
    """Return the order to hold the descriptor that goes with it."""
    return _plain(OrderKind.HOLD, place)


def drop(places: Iterable[int]) -> bytes:
    """Return the order to close what is held in some places."""
    return _plain(OrderKind.DROP, place_bits(places))


def place_bits(places: Iterable[int]) -> int:
    """Return a number that has a bit for each of these places."""
    return sum(1 << place for place in frozenset(places))


KILL = _plain(OrderKind.KILL)
"""The order to kill the whole tree."""
