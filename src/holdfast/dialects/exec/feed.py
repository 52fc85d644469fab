"""What a process does, as notifications of the exec dialect.

The end of the hot path: a chunk becomes one message, put together from parts
that were made when the process started.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from holdfast.backend import Process, Watch
from holdfast.dialects import base64
from holdfast.model import Chunk, Stream

from .sessions import Session


class Record(Protocol):
    """Whoever keeps account of the processes of all sessions."""

    def exited(self, feed: Feed, code: int) -> None: ...

    def closed(self, session: Session, feed: Feed) -> None: ...


class Feed:
    """One process of a session, and the way its events reach the client.

    Lives as long as the session knows the process.  The client may change or be
    away; then nothing is told, and what was missed can be read.
    """

    __slots__ = ("_name", "_record", "_session", "name", "process", "roomy", "started", "terminated", "watch")

    def __init__(self, session: Session, name: str, process: Process, record: Record, *, now: float) -> None:
        self._session = session
        self._record = record
        self._name = _encode(name)
        self.name = name
        self.process = process
        self.started = now
        self.terminated = False
        """Whether anybody asked for its end; only for the record."""
        self.roomy = False
        """Whether it keeps more output than an attached client needs."""
        self.watch: Watch = process.watch(self)

    # Implements ``backend.Watcher``.

    def ready(self) -> bool:
        client = self._session.client
        return client is None or client.ready(self.watch.resume)

    def output(self, chunk: Chunk) -> None:
        client = self._session.client
        if client is not None:
            client.send(
                b'{"method":"process/output","params":{"processId":%b,"seq":%d,"stream":"%b","chunk":"'
                % (self._name, chunk.seq, _stream(chunk.stream)),
                base64.encode(chunk.data),
                b'"}}',
            )

    def exited(self, seq: int, code: int) -> None:
        client = self._session.client
        if client is not None:
            client.send(
                b'{"method":"process/exited","params":{"processId":%b,"seq":%d,"exitCode":%d,"sandboxDenied":false}}'
                % (self._name, seq, code)
            )
        self._record.exited(self, code)

    def closed(self, seq: int) -> None:
        client = self._session.client
        if client is not None:
            client.send(
                b'{"method":"process/closed","params":{"processId":%b,"seq":%d}}' % (self._name, seq)
            )
        self._record.closed(self._session, self)


def _stream(stream: Stream) -> bytes:
    # Comparing is faster than any look-up by an enum's member.
    return b"stdout" if stream is Stream.STDOUT else b"stderr" if stream is Stream.STDERR else b"pty"


_encode = msgspec.json.Encoder().encode
