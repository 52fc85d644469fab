"""Finding out on the disk what a policy means: the bounds of a search, and what patterns of paths match."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator, Sequence

from holdfast.config import SandboxLimits
from holdfast.errors import BadRequest, LimitReached, SandboxUnavailable
from holdfast.sandbox import Named, Pattern, Sandbox, Where
from holdfast.wildcards import STAR_ONE_AND_SETS, Wildcards

_SPECIAL = re.compile(r"[*?\[{}]")
_UNKNOWN = re.compile(r"[{}]")

_CLOSED = frozenset({errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors about a directory that the command cannot list, either, or that is gone by now."""


class GivenUp(Exception):
    """The search was given up, because nobody waits for its result any more."""


class PolicySearch:
    """How long and how far the disk may be searched.  Another thread may call ``give_up``."""

    __slots__ = ("_deadline", "_given_up", "_limits", "_matches", "_names")

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self._limits = limits or SandboxLimits()
        self._deadline: float | None = None
        self._given_up = False
        self._matches = self._names = 0

    def give_up(self) -> None:
        """Make the search end soon, with ``GivenUp``.  May be called twice, and after its end."""
        self._given_up = True

    def begin(self, sandbox: Sandbox) -> None:
        """Check the size of a policy.  The time of the search begins now.

        Raises:
            LimitReached: The policy is too large.
        """
        # The time does not begin with the request, because that may have waited for a thread.
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
        """Check that the search may go on.

        Raises:
            GivenUp: Somebody has called ``give_up``.
            LimitReached: The search takes too long.
        """
        if self._given_up:
            raise GivenUp
        if self._deadline is not None and time.monotonic() >= self._deadline:
            seconds = self._limits.lookup_seconds
            raise LimitReached(
                "seconds to look for a sandbox's paths", seconds, name="sandbox.lookup_seconds"
            )

    def look(self) -> None:
        """Count a name that is looked at, and check that the search may go on.

        Raises:
            GivenUp: Somebody has called ``give_up``.
            LimitReached: The search takes too long, or there are too many names.
        """
        self.check()
        self._names += 1
        if self._names > self._limits.names:
            raise LimitReached("names looked at for a sandbox", self._limits.names, name="sandbox.names")

    def match(self) -> None:
        """Count a path that matches a pattern.

        Raises:
            LimitReached: Too many paths match.
        """
        self._matches += 1
        if self._matches > self._limits.matches:
            raise LimitReached(
                "paths that match a sandbox's patterns", self._limits.matches, name="sandbox.matches"
            )


# Patterns.


def expand(pattern: str, cwd: str, depth: int | None, search: PolicySearch | None = None) -> Iterator[str]:
    """Yield the paths that match a pattern, each once.  Symbolic links are not followed.

    Args:
        cwd: What a relative pattern is relative to.
        depth: How many directories deep to look below the part without special characters.
        search: How long and how far the disk may be searched.

    Raises:
        BadRequest: The pattern begins at the root, so that the whole disk would have to be searched.
        LimitReached: The search takes too long, or too many paths match.
        SandboxUnavailable: A directory cannot be listed, so that nobody knows what matches in it.
    """
    search = search or PolicySearch()
    if "\0" in pattern:
        raise BadRequest(f"glob {pattern!r} contains a NUL byte")
    if not pattern.startswith("/"):
        pattern = os.path.join(cwd, pattern)
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    fixed = next((index for index, part in enumerate(parts) if _SPECIAL.search(part)), len(parts))
    if fixed == len(parts):
        yield "/" + "/".join(parts)
        return
    if fixed == 0 or _UNKNOWN.search(pattern):
        raise BadRequest(
            f"unreadable glob `{pattern}` cannot be safely expanded;"
            " use a pattern with a non-root directory prefix"
        )
    wanted = Parts(parts[fixed:])
    levels = None if "**" in parts else len(parts) - fixed
    if depth is not None:
        levels = depth if levels is None else min(depth, levels)
    yield from _below("/" + "/".join(parts[:fixed]), wanted, levels, search)


def _below(top: str, wanted: Parts, levels: int | None, search: PolicySearch) -> Iterator[str]:
    """Yield the paths below a directory that match, level by level; ``levels`` None is for no bound."""
    level = [(top, wanted.start)]
    while level and (levels is None or levels > 0):
        deeper: list[tuple[str, int]] = []
        for directory, above in level:
            for entry in _listed(directory):
                search.look()
                bits = wanted.after(above, entry.name)
                if bits & wanted.end:
                    search.match()
                    yield entry.path
                if bits and entry.is_dir(follow_symlinks=False):
                    deeper.append((entry.path, bits))
        level = deeper
        levels = None if levels is None else levels - 1


def _listed(directory: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a directory; none if the command cannot list it, either."""
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except OSError as error:
        if error.errno not in _CLOSED:
            raise SandboxUnavailable(f"{directory!r} cannot be listed: {error.strerror}") from error


class Parts:
    """The parts of a pattern.  Each matches one name of a path; ``**`` matches any number of names.

    How far a path has come is a set of bits, as in ``Wildcards``: one for each number of parts that its
    names may have used up.  So each name is looked at once, however many ways there are to divide a path
    among the parts.
    """

    __slots__ = ("_loops", "_plain", "_special", "_special_bits", "end", "start")

    def __init__(self, parts: Sequence[str]) -> None:
        self.start = bit = 1
        self._loops = 0
        self._plain: dict[str, int] = {}
        special: dict[str, int] = {}
        for place, part in enumerate(parts):
            if part == "**":
                self._loops |= bit
                if place < len(parts) - 1:
                    continue
                part = "*"  # At the end of a pattern it matches one name at least.
                self._loops |= bit << 1
            bit <<= 1
            bits = special if _SPECIAL.search(part) else self._plain
            bits[part] = bits.get(part, 0) | bit
        self.end = bit
        self._special = Wildcards(special, special=STAR_ONE_AND_SETS)
        self._special_bits = list(special.values())

    def after(self, bits: int, name: str) -> int:
        """Return how far a path has come with one name more; 0 if nothing below it can match."""
        mask = self._plain.get(name, 0)
        for place in self._special.which(name):
            mask |= self._special_bits[place]
        return ((bits << 1) & mask) | (bits & self._loops)
