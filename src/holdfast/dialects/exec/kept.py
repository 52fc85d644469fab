"""Processes that belong to no client: names, and how long ended ones are kept (pure, clock passed in).

What must hold:

1. For whoever asks, a name means one process: its own, or one of its principal's commons.
2. An ended process is kept for its time, or until too many others have ended after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.config import SessionLimits
from holdfast.dialects.scope import Starting
from holdfast.errors import NameTaken

from .sessions import Session

if TYPE_CHECKING:
    from .archive import Archived
    from .feed import Feed
    from .realm import Realm

_KEY = ""
"""Of the session that nobody can resume: it is not among those that clients have."""


class Commons:
    """What every client of one principal sees beside its own."""

    def __init__(self, realm: Realm, limits: SessionLimits) -> None:
        self.session = Session(
            _KEY,
            realm,
            names=limits.kept_names,
            most_bytes=limits.name_bytes,
            what="kept processes",
            limit="session.kept_names",
        )
        """It never has a client, so nothing of its processes is told to anybody who does not ask."""
        self._seconds = limits.kept_seconds
        self._most_ended = limits.kept_ended
        self._ended: OrderedDict[str, float] = OrderedDict()

    # Names.

    def find(self, session: Session, name: str) -> tuple[Session, Feed | Archived | Starting | None]:
        """What a client of ``session`` means by ``name``, and whose it is."""
        entry = session.scope.find(name)
        if entry is not None:
            return session, entry
        return self.session, self.session.scope.find(name)

    def reserve(self, session: Session, name: str, request: Any, *, keep: bool) -> tuple[Session, Starting]:
        """Take a name for a client of ``session``; give whose process it will be, and the name.

        Raises:
            NameTaken: The client means another by it.
            LimitReached: There are too many.
        """
        home, other = (self.session, session) if keep else (session, self.session)
        if other.scope.find(name) is not None:
            raise NameTaken(name)
        return home, home.scope.reserve(name, request)

    # Ends.

    def ended(self, name: str, now: float) -> Iterator[str]:
        """A process has closed; give those for which there is no room any more."""
        self._ended[name] = now + self._seconds
        while len(self._ended) > self._most_ended:
            yield self._ended.popitem(last=False)[0]

    def due(self, now: float) -> Iterator[str]:
        """Give those whose time is over."""
        while self._ended and next(iter(self._ended.values())) <= now:
            yield self._ended.popitem(last=False)[0]

    @property
    def next_deadline(self) -> float | None:
        return next(iter(self._ended.values()), None)
