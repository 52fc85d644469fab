"""Ended processes of a session, each in one block of memory, for as long as they can still be read."""

from __future__ import annotations

import marshal

from holdfast.backend import Backend

from .feed import Feed, Record, Request
from .sessions import Session

_LEAST = 520
"""Bytes: the interpreter takes smaller blocks from a store of its own, which gives little memory back."""


class Archived(bytes):
    """A feed whose process has closed and left nobody behind."""

    __slots__ = ()

    @staticmethod
    def of(feed: Feed) -> Archived | None:
        """``feed`` in one block; None if something of it can still change, or it is large."""
        process = feed.process.pack()
        if process is None:
            return None
        request = feed.request
        data = marshal.dumps(
            (
                feed.session.key,
                feed.name,
                feed.terminated,
                request.about,
                request.fingerprint,
                request.sandboxed,
                process,
            )
        )
        return Archived(data.ljust(_LEAST, b"\0"))  # What follows the value is not read.

    @property
    def key(self) -> str:
        """The session's."""
        key: str = marshal.loads(self)[0]  # noqa: S302
        return key

    @property
    def name(self) -> str:
        name: str = marshal.loads(self)[1]  # noqa: S302
        return name

    def restore(self, session: Session, backend: Backend, record: Record) -> Feed:
        """The feed as it was."""
        _, name, terminated, about, fingerprint, sandboxed, process = marshal.loads(self)  # noqa: S302
        request = Request(about, fingerprint, None, sandboxed)
        feed = Feed(session, name, backend.unpack(process), record, request, now=0.0)
        feed.terminated = terminated
        return feed
