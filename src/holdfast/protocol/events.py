"""What processes do, on the wire: each form is written and read here, side by side (pure).

Whatever is sent for every chunk or every process in a list is put together from bytes, because that is
several times faster than encoding a shape.  ``protocol.processes`` has the shapes of the same messages;
tests compare the two.
"""

from __future__ import annotations

import re
import signal as signals
from binascii import b2a_base64
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.backend import HostedProcess
from holdfast.model import (
    Chunk,
    Denied,
    Exit,
    Gap,
    Kind,
    Listing,
    Outcome,
    Page,
    ProcessState,
    Stream,
    Usage,
)
from holdfast.sandbox import Denial
from holdfast.wire.jsonrpc import JsonParts

from . import base64, paths
from .paths import printable
from .processes import (
    ListedProcess,
    OutputChunk,
    ProcessExited,
    ProcessOutput,
    ReadResult,
    WaitResult,
    WireDenial,
    WireOutcome,
    WireOutputGap,
    WireUsage,
)

_encode = msgspec.json.Encoder().encode

# Output.

_LINE = 100
"""Bytes of a chunk below which the standard library encodes faster."""

_SMALL = 3072
"""Chunks below this are put into the message at once; larger ones are not copied again."""

_OUTPUT = re.compile(
    rb'\{"method":"process/output","params":\{"processId":"([^"\\]*)",'
    rb'"seq":(\d{1,19}),"stream":"(stdout|stderr|pty)","chunk":"'
)
_TAIL = b'"}}'
_HEAD_MOST = 1024
"""Bytes in which the base64 has begun; of a process with a longer name it is read more slowly."""
_STDOUT: Final = Stream.STDOUT
_STDERR: Final = Stream.STDERR
_STREAMS = {b"stdout": _STDOUT, b"stderr": _STDERR, b"pty": Stream.PTY}
_EXIT: Final = Kind.EXIT


def output(name: bytes, chunk: Chunk) -> tuple[bytes, ...]:
    """The notification of a chunk, in parts; ``name`` is the process's, as JSON.

    The hot path of a server: one call for each chunk.
    """
    # Comparing is faster than any look-up by an enum's member, or of one.
    stream, data = chunk.stream, chunk.data
    word = b"stdout" if stream is _STDOUT else b"stderr" if stream is _STDERR else b"pty"
    if len(data) < _SMALL:
        data = b2a_base64(data, newline=False) if len(data) < _LINE else base64.encode(data)
        return (
            b'{"method":"process/output","params":{"processId":%b,"seq":%d,"stream":"%b","chunk":"%b"}}'
            % (name, chunk.seq, word, data),
        )
    return (
        b'{"method":"process/output","params":{"processId":%b,"seq":%d,"stream":"%b","chunk":"'
        % (name, chunk.seq, word),
        base64.encode(data),
        _TAIL,
    )


def read_output(message: bytes | memoryview) -> tuple[bytes, Chunk] | None:
    """The name as JSON without its quotes, and the chunk; None if the message has not the form of ``output``.

    The hot path of a client: most messages are these, and most of each is base64, which is not looked at
    twice.  A notification in another form is read like any other.
    """
    found = _OUTPUT.match(bytes(message[:_HEAD_MOST]))
    if found is None or bytes(message[-3:]) != _TAIL:
        return None
    name, seq, stream = found.groups()
    try:
        data = base64.decode_bytes(message[found.end() : -3])
    except ValueError:
        return None
    return name, Chunk(int(seq), _STREAMS[stream], data)


def key_of(name: str) -> bytes:
    """A process's name as ``read_output`` gives it."""
    return _encode(name)[1:-1]


def read_chunk(found: OutputChunk | ProcessOutput) -> Chunk:
    """A chunk that came in any other form.

    Raises:
        BadRequest: Its bytes are no base64.
    """
    return Chunk(found.seq, found.stream, base64.decode(found.chunk))


# The end.


def exited(name: bytes, seq: int, end: Exit, *, extended: bool) -> bytes:
    """The notification of an exit.  ``extended`` if the client knows our extensions."""
    return b'{"method":"process/exited","params":{"processId":%b,"seq":%d,"exitCode":%d,%b%b}}' % (
        name,
        seq,
        end.code,
        _denied(end, extended=extended),
        _exit(end, extended=extended),
    )


def closed(name: bytes, seq: int) -> bytes:
    """The notification of the end of a process's output."""
    return b'{"method":"process/closed","params":{"processId":%b,"seq":%d}}' % (name, seq)


def _exit(end: Exit, *, extended: bool) -> bytes:
    """Further members of an exit; a client that does not know them gets only what says more than the code."""
    text = _outcome(end, extended=extended)
    if extended and end.usage is not None:
        text += b',"usage":' + _encode(usage(end.usage))
    if end.held_by:
        text += b',"heldBy":' + _encode(list(end.held_by))
    if end.dropped:
        text += b',"droppedBytes":%d' % end.dropped
    return text


def _outcome(end: Exit, *, extended: bool) -> bytes:
    """The outcome, if the exit code does not say it or the client knows the extensions."""
    if extended or end.outcome.kind is not _EXIT:
        return b',"outcome":' + _outcome_text(end.outcome)
    return b""


@lru_cache(maxsize=512)
def _outcome_text(found: Outcome) -> bytes:
    return _encode(outcome(found))


def _denied(end: Exit, *, extended: bool) -> bytes:
    """Whether the sandbox refused something, and the process then failed; and what, if that is known."""
    if end.denied is None:
        return b'"sandboxDenied":false'
    failed, denials, how = denied(end.denied)
    text = b'"sandboxDenied":true' if failed else b'"sandboxDenied":false'
    if denials:
        text += b',"denials":' + _encode(denials)
    if extended:
        text += b',"denial":"%b"' % how.encode()
    return text


def outcome(found: Outcome) -> WireOutcome:
    """How a process ended, as a shape."""
    return WireOutcome(
        kind=found.kind.value,
        exit_code=found.exit_code,
        signal=None if found.signal is None else _signal_name(found.signal),
        by=found.by,
        detail=found.detail,
    )


def _read_outcome(found: WireOutcome) -> Outcome:
    try:
        kind = Kind(found.kind)
    except ValueError:
        kind = Kind.EXIT  # A newer server has more words.
    number = None if found.signal is None else _signal_number(found.signal)
    return Outcome(kind, found.exit_code, number, found.by, found.detail)


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signals.SIGRTMIN}" if number > signals.SIGRTMIN else f"SIG{number}"


def _signal_number(name: str) -> int | None:
    try:
        return signals.Signals[name].value
    except KeyError:
        found = re.fullmatch(r"SIG(RTMIN\+)?([0-9]{1,3})", name)
        if found is None:
            return None
        return int(found[2]) + (signals.SIGRTMIN if found[1] else 0)


def usage(found: Usage) -> WireUsage:
    """What a process used, as a shape."""
    return WireUsage(found.user_us // 1000, found.system_us // 1000, found.peak_bytes)


def denied(found: Denied) -> tuple[bool, list[WireDenial] | UnsetType, str]:
    """What a sandbox has to do with an end, as members of an answer to a client that knows the extensions."""
    denials = [WireDenial(one.op, printable(one.subject), one.count) for one in found.denials]
    return found.failed, denials or UNSET, "exact" if found.exact else "guess"


def read_exit(found: ReadResult | ProcessExited | WaitResult) -> Exit:
    """The end of a process that has one."""
    refused = None
    if found.sandbox_denied or found.denial:
        denials = tuple(Denial(one.op, one.path, one.count) for one in found.denials or ())
        refused = Denied(bool(found.sandbox_denied), found.denial == "exact", denials)
    code = -1 if found.exit_code is None else found.exit_code
    if found.outcome:
        end = _read_outcome(found.outcome)
    elif refused is not None and refused.failed:
        end = Outcome(Kind.SANDBOX_DENIED, code)
    else:
        end = Outcome(Kind.EXIT, code)
    used = found.usage
    spent = Usage(used.user_ms * 1000, used.system_ms * 1000, used.max_rss_bytes) if used else None
    return Exit(code, end, spent, tuple(found.held_by or ()), refused, found.dropped_bytes or 0)


# Pages.


def page(found: Page, *, extended: bool) -> JsonParts:
    """The answer to ``process/read``; a client without the extensions is told the outcome alone of an end."""
    parts = JsonParts() if not found.chunks else JsonParts((b'{"chunks":[',))
    for chunk in found.chunks:
        parts.append(
            b'%b{"seq":%d,"stream":"%b","chunk":"'
            % (b"," if len(parts) > 1 else b"", chunk.seq, chunk.stream.value.encode())
        )
        parts.append(base64.encode(chunk.data))
        parts.append(b'"}')
    end = found.exit
    more = b""
    if end is not None:
        more = _exit(end, extended=True) if extended else _outcome(end, extended=False)
    parts.append(
        b'%b],"nextSeq":%d,"exited":%b,"exitCode":%b,"closed":%b,"failure":null,%b%b%b}'
        % (
            b"" if parts else b'{"chunks":[',
            found.next_seq,
            b"false" if end is None else b"true",
            b"null" if end is None else b"%d" % end.code,
            b"true" if found.closed else b"false",
            b'"sandboxDenied":false' if end is None else _denied(end, extended=extended),
            b"" if found.gap is None else _gap(found.gap),
            more,
        )
    )
    return parts


def nothing(next_seq: int) -> JsonParts:
    """The page of a process that runs and has said nothing new."""
    return JsonParts((_NOTHING % next_seq,))


_NOTHING = (
    b'{"chunks":[],"nextSeq":%d,"exited":false,"exitCode":null,"closed":false,"failure":null,'
    b'"sandboxDenied":false}'
)


def _gap(found: Gap) -> bytes:
    """The member about output that was dropped."""
    return b',"gap":' + _encode(WireOutputGap(found.first, found.last, found.size))


def read_page(found: ReadResult) -> Page:
    """What a server answered to ``process/read``.

    Raises:
        BadRequest: The bytes of a chunk are no base64.
    """
    lost = found.gap or None
    return Page(
        [read_chunk(one) for one in found.chunks],
        found.next_seq,
        read_exit(found) if found.exited else None,
        found.closed,
        None if lost is None else Gap(lost.from_seq, lost.to_seq, lost.bytes),
    )


# Lists.

LISTED_STARTING = (
    b'"state":"starting","pid":null,"exitCode":null,"outcome":null,"nextSeq":1,"retainedBytes":0}'
)
"""How a list ends what it says of a process that does not run yet."""


def listed_head(name: str, about: bytes) -> bytes:
    """How a list begins what it says of a process: its name, and what is remembered of the request for it."""
    return b'"processId":%b,%b,' % (_encode(name), about)


def listed_state(process: HostedProcess) -> bytes:
    """How a list ends what it says of a process."""
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


def _read_state(word: str) -> ProcessState | str:
    try:
        return ProcessState(word)
    except ValueError:
        return word  # Of a newer server.


def read_listing(found: ListedProcess) -> Listing:
    """One process of a server's list."""
    waiting = found.waiting_for_input
    return Listing(
        identifier=found.process_id,
        name=found.name or found.process_id,
        pid=found.pid,
        argv=found.argv,
        cwd=paths.parse(found.cwd).path or found.cwd,
        terminal=found.tty,
        started=found.started_at_ms / 1000,
        state=_read_state(found.state),
        exit_code=found.exit_code,
        outcome=None if found.outcome is None else _read_outcome(found.outcome),
        next_seq=found.next_seq,
        retained=found.retained_bytes,
        kept=found.kept is True,
        waiting_for_input=waiting if isinstance(waiting, bool) else None,
    )
