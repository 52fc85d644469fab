"""Processes in a list, their ends, and what is missing of their output, as JSON (pure)."""

from __future__ import annotations

import signal as signals
from functools import lru_cache

import msgspec

from holdfast.backend import KeptProcess
from holdfast.dialects.shapes import printable
from holdfast.model import Exit, Gap, Kind, Outcome, Usage

from . import answers as a

_encode = msgspec.json.Encoder().encode


STARTING = b'"state":"starting","pid":null,"exitCode":null,"outcome":null,"nextSeq":1,"retainedBytes":0}'
"""How a process is in a list before it runs."""


def head(name: str, about: bytes) -> bytes:
    """What a list says first of a process: its name, and what is remembered of the request for it."""
    return b'"processId":%b,%b,' % (_encode(name), about)


def state(process: KeptProcess) -> bytes:
    """How a process is, as the end of what a list says of it."""
    end = process.exit
    word = b"running" if end is None else b"closed" if process.closed else b"exited"
    return b'"state":"%b","pid":%d,"exitCode":%b,"outcome":%b,"nextSeq":%d,"retainedBytes":%d}' % (
        word,
        process.pid,
        b"null" if end is None else b"%d" % end.code,
        b"null" if end is None else _outcome_text(end.outcome),
        process.next_seq,
        process.retained(),
    )


def outcome(found: Outcome) -> a.Outcome:
    return a.Outcome(
        kind=found.kind,
        exit_code=found.exit_code,
        signal=None if found.signal is None else _signal_name(found.signal),
        by=found.by,
        detail=found.detail,
    )


@lru_cache(maxsize=512)
def _outcome_text(found: Outcome) -> bytes:
    return _encode(outcome(found))


def usage(found: Usage) -> a.Usage:
    return a.Usage(found.user_us // 1000, found.system_us // 1000, found.peak_bytes)


def of_exit(found: Exit, *, extended: bool) -> bytes:
    """Further members of an exit; a client that does not know them gets only what says more than the code."""
    text = of_outcome(found, extended=extended)
    if extended and found.usage is not None:
        text += b',"usage":' + _encode(usage(found.usage))
    if found.held_by:
        text += b',"heldBy":' + _encode(list(found.held_by))
    return text


def of_end(found: Exit, *, extended: bool) -> bytes:
    """An end for those who ask later; a client without the extensions is told the outcome alone."""
    return of_exit(found, extended=True) if extended else of_outcome(found, extended=False)


def of_outcome(found: Exit, *, extended: bool) -> bytes:
    """The outcome of an end, if the exit code does not say it or the client knows the extensions."""
    if extended or found.outcome.kind is not Kind.EXIT:
        return b',"outcome":' + _outcome_text(found.outcome)
    return b""


def of_denied(found: Exit | None, *, extended: bool) -> bytes:
    """Whether a sandbox has refused something that the process then failed of; and what, if that is known."""
    denied = None if found is None else found.denied
    if denied is None:
        return b'"sandboxDenied":false'
    text = b'"sandboxDenied":true' if denied.failed else b'"sandboxDenied":false'
    if denied.denials:
        text += b',"denials":' + _encode(
            [a.Denial(one.op, printable(one.subject), one.count) for one in denied.denials]
        )
    if extended:
        text += b',"denial":"exact"' if denied.exact else b',"denial":"guess"'
    return text


def of_gap(found: Gap | None) -> bytes:
    """The member that tells of output that is no longer kept."""
    if found is None:
        return b""
    return b',"gap":' + _encode(a.OutputGap(found.first, found.last, found.size))


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signals.SIGRTMIN}" if number > signals.SIGRTMIN else f"SIG{number}"
