"""What a client is told of a process that is over: with its output, as text.

Long output is decoded, encoded and sent piece by piece: all at once it would
hold up everybody for as long as a second.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

import msgspec
from msgspec import UNSET

from holdfast.dialects.dialect import LongResult, Pause
from holdfast.protocol.app import AppProcessExited, ExecResult
from holdfast.protocol.shapes import Shape

from .conversation import Run
from .output import Capped, decode, pieces

_encode = msgspec.json.Encoder().encode

_AT_ONCE = 262_144
"""Bytes of output that are told without a pause."""

_TOGETHER = 2_097_152
"""Bytes of text that are sent together: some clients copy what they have with each piece."""


def is_long(run: Run) -> bool:
    """Whether the output is so long that the result is sent piece by piece."""
    return len(run.stdout.data) + len(run.stderr.data) > _AT_ONCE


def exited(name: str, run: Run) -> AppProcessExited:
    """Return the notification that a process of ``process/spawn`` has exited."""
    return _exited(name, run, _text(run, run.stdout), _text(run, run.stderr))


def exited_long(
    name: str, run: Run, prefix: bytes, suffix: bytes, on_begin: Callable[[], None]
) -> LongResult:
    """The end of a process with long output, sent piece by piece, between what comes before and behind it.

    ``on_begin`` is called when the first piece is made.
    """
    return _long(run, _exited(name, run, "", ""), prefix, suffix, on_begin)


def _exited(name: str, run: Run, stdout: str, stderr: str) -> AppProcessExited:
    assert run.exit_code is not None
    return AppProcessExited(
        process_handle=name,
        exit_code=run.exit_code,
        output_drain_timed_out=run.drain_timed_out,
        stdout=stdout,
        stdout_cap_reached=run.stdout.full,
        stderr=stderr,
        stderr_cap_reached=run.stderr.full,
    )


def of_command(run: Run, *, whole: bool) -> ExecResult:
    """``whole`` if the client wanted everything: then it must be told if that is not what it gets."""
    return _of_command(run, _text(run, run.stdout), _text(run, run.stderr), whole=whole)


def of_command_long(run: Run, *, whole: bool) -> LongResult:
    return _long(run, _of_command(run, "", "", whole=whole))


def _of_command(run: Run, stdout: str, stderr: str, *, whole: bool) -> ExecResult:
    assert run.exit_code is not None
    return ExecResult(
        exit_code=run.exit_code,
        stdout=stdout,
        stderr=stderr,
        stdout_cap_reached=True if run.stdout.crowded or (whole and run.stdout.full) else UNSET,
        stderr_cap_reached=True if run.stderr.crowded or (whole and run.stderr.full) else UNSET,
    )


def _text(run: Run, capped: Capped) -> str:
    return decode(capped.data, cut=capped.full or run.torn)


# Long ones.


def _long(
    run: Run,
    shape: Shape,
    prefix: bytes = b"",
    suffix: bytes = b"",
    on_begin: Callable[[], None] = lambda: None,
) -> LongResult:
    """A shape whose two outputs are empty, with the output of ``run`` in their places."""
    # Inside of a text a quotation mark has a backslash before it: neither is found in another member.
    head, stdout, rest = _encode(shape).partition(b'"stdout":"')
    middle, stderr, tail = rest.partition(b'"stderr":"')
    return LongResult(
        prefix + head + stdout, _pieces(run, middle + stderr, on_begin), tail + suffix, run.give_back
    )


async def _pieces(run: Run, middle: bytes, on_begin: Callable[[], None]) -> AsyncGenerator[bytes, None]:
    on_begin()
    made = bytearray()
    for capped, then in ((run.stdout, middle), (run.stderr, b"")):
        for text in pieces(capped.data, cut=capped.full or run.torn):
            made += memoryview(_encode(text))[1:-1]
            if len(made) >= _TOGETHER:
                yield bytes(made)
                made.clear()
            await Pause()
        made += then
    yield bytes(made)
