"""What a process does, as notifications of the exec dialect.

The end of the hot path: a chunk becomes one message, put together from what was
made when the process started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import msgspec

from holdfast.backend import KeptProcess
from holdfast.dialects import base64
from holdfast.model import Chunk, Exit, Leftovers, Stream
from holdfast.tracing import Span

from . import describe
from .sessions import Session
from .window import Window

_encode = msgspec.json.Encoder().encode

_SMALL = 4096
"""Chunks below this are put into the message at once; larger ones are not copied again."""


class Record(Protocol):
    """Whoever keeps account of the processes of all sessions."""

    def exited(self, feed: Feed, exit: Exit) -> None: ...  # noqa: A002  (what it is called everywhere)

    def closed(self, feed: Feed) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """What is remembered of the request for a process."""

    about: bytes
    """What a list says of it: members of a JSON object."""
    fingerprint: bytes
    """The same for equal requests; empty if nobody will ask."""
    retain: int | None
    """Bytes of output to keep, if the client said how many."""
    sandboxed: bool = False
    window: int | None = None
    """Bytes of output that the client may leave unacknowledged, if it acknowledges any."""


class Feed:
    """One process of a session, and the way its events reach the client.

    Lives as long as the session knows the process.  The client may change or be
    away; then nothing is told, and what was missed can be read.
    """

    __slots__ = (
        "_name",
        "_record",
        "least",
        "name",
        "process",
        "request",
        "roomy",
        "session",
        "span",
        "started",
        "terminated",
        "window",
    )

    def __init__(
        self,
        session: Session,
        name: str,
        process: KeptProcess,
        record: Record,
        request: Request,
        *,
        now: float,
    ) -> None:
        self.session = session
        self._record = record
        self._name = _encode(name)
        self.name = name
        self.process = process
        self.request = request
        self.started = now
        self.span: Span | None = None
        """Lasts until the exit; None if nobody traces."""
        self.terminated = False
        """Whether anybody asked for its end; only for the record."""
        self.roomy = False
        """Whether it keeps more output than an attached client needs."""
        self.window: Window | None = None
        """Holds the process up while its client has not acknowledged enough; None if it need not."""
        self.least = 0
        """Bytes of output that are kept in any case: what the window may have let through."""
        process.watch(self, session.valve)

    # Implements ``backend.Watcher``.

    def output(self, chunk: Chunk) -> None:
        client = self.session.client
        if client is None:
            return
        # Comparing is faster than any look-up by an enum's member.
        stream = chunk.stream
        word = b"stdout" if stream is Stream.STDOUT else b"stderr" if stream is Stream.STDERR else b"pty"
        data = base64.encode(chunk.data)
        if len(data) < _SMALL:
            client.send(
                b'{"method":"process/output","params":{"processId":%b,"seq":%d,"stream":"%b","chunk":"%b"}}'
                % (self._name, chunk.seq, word, data)
            )
        else:
            client.send(
                b'{"method":"process/output","params":{"processId":%b,"seq":%d,"stream":"%b","chunk":"'
                % (self._name, chunk.seq, word),
                data,
                b'"}}',
            )

    def ended(self, stream: Stream) -> None:
        pass  # Not told to clients of this dialect.

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        client = self.session.client
        if client is not None:
            client.send(
                b'{"method":"process/exited","params":{"processId":%b,"seq":%d,"exitCode":%d,%b%b}}'
                % (
                    self._name,
                    seq,
                    exit.code,
                    describe.of_denied(exit, extended=self.session.extended),
                    describe.of_exit(exit, extended=self.session.extended),
                )
            )
        self._record.exited(self, exit)
        self.started = 0.0  # What is kept of an ended process should be small: this is told by now.

    def closed(self, seq: int) -> None:
        client = self.session.client
        if client is not None:
            client.send(b'{"method":"process/closed","params":{"processId":%b,"seq":%d}}' % (self._name, seq))
        self._name = b""  # Nothing follows, so it is not needed any more, either.
        self.window = None
        self._record.closed(self)

    # The end.

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        """Give up the process: see ``KeptProcess.forget``."""
        window, self.window = self.window, None
        self.process.forget(leftovers)
        if window is not None:
            window.release()
