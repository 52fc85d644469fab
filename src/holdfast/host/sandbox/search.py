"""How long, and how far, may be looked on the disk for what a policy means."""

from __future__ import annotations

import time

from holdfast.config import SandboxLimits
from holdfast.errors import LimitReached
from holdfast.sandbox import Named, Pattern, Sandbox, Where


class GivenUp(Exception):
    """Nobody waits for the result any more."""


class Search:
    """The bounds of one look at the disk.  One thread looks, and another may call ``give_up``."""

    __slots__ = ("_deadline", "_given_up", "_limits", "_matches", "_names")

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self._limits = limits or SandboxLimits()
        self._deadline: float | None = None
        self._given_up = False
        self._matches = self._names = 0

    def give_up(self) -> None:
        """Have it end soon, with ``GivenUp``.  May be called twice, also after its end."""
        self._given_up = True

    def begin(self, sandbox: Sandbox) -> None:
        """Look at the size of a policy; its time begins now.

        Raises:
            LimitReached: It is too large.
        """
        # Now, and not when it was asked for: until here it may have waited for a thread.
        self._deadline = time.monotonic() + self._limits.lookup_seconds
        limits, entries = self._limits, sandbox.entries or ()
        places = [entry.place for entry in entries]
        for_each_root = sum(
            isinstance(place, Named) and place.where is Where.PROJECT_ROOTS for place in places
        )
        if len(entries) + for_each_root * max(0, len(sandbox.roots) - 1) > limits.entries:
            raise LimitReached("entries of a sandbox", limits.entries, name="sandbox.entries")
        patterns = [place.text for place in places if isinstance(place, Pattern)]
        if len(patterns) > limits.patterns:
            raise LimitReached("patterns of a sandbox", limits.patterns, name="sandbox.patterns")
        paths = [
            place.below if isinstance(place, Named) else place
            for place in places
            if not isinstance(place, Pattern)
        ]
        for text in (sandbox.cwd, *sandbox.roots, *patterns, *paths):
            if len(text.encode("utf-8", "surrogatepass")) > limits.path_bytes:
                raise LimitReached(
                    "bytes of a path in a sandbox", limits.path_bytes, name="sandbox.path_bytes"
                )

    def check(self) -> None:
        """
        Raises:
            GivenUp: Somebody has called ``give_up``.
            LimitReached: It takes too long.
        """
        if self._given_up:
            raise GivenUp
        if self._deadline is not None and time.monotonic() >= self._deadline:
            seconds = self._limits.lookup_seconds
            raise LimitReached(
                "seconds to look for a sandbox's paths", seconds, name="sandbox.lookup_seconds"
            )

    def look(self) -> None:
        """Count a name that is looked at.

        Raises:
            GivenUp: As ``check`` does.
            LimitReached: The same, and for too many names.
        """
        self.check()
        self._names += 1
        if self._names > self._limits.names:
            raise LimitReached("names looked at for a sandbox", self._limits.names, name="sandbox.names")

    def match(self) -> None:
        """Count a path that matches a pattern.

        Raises:
            LimitReached: There are too many.
        """
        self._matches += 1
        if self._matches > self._limits.matches:
            raise LimitReached(
                "paths that match a sandbox's patterns", self._limits.matches, name="sandbox.matches"
            )
