"""Patterns of paths, and what they match."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence

from holdfast.errors import BadRequest, SandboxUnavailable
from holdfast.wildcards import STAR_ONE_AND_SETS, Wildcards

from .search import Search

_SPECIAL = re.compile(r"[*?\[{}]")
_UNKNOWN = re.compile(r"[{}]")

_CLOSED = frozenset({errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What the system says of a directory that the command cannot list, either, or that is gone by now."""


def expand(pattern: str, cwd: str, depth: int | None, search: Search | None = None) -> Iterator[str]:
    """The paths that match, without following symbolic links, each once.

    Args:
        depth: How many directories deep to look below the part without special characters.
        search: How long, and how far.

    Raises:
        BadRequest: It would have to be looked for everywhere.
        LimitReached: It would have to be looked for too long, or too much matches.
        SandboxUnavailable: A directory cannot be listed, and who knows what is in it.
    """
    search = search or Search()
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


def _below(top: str, wanted: Parts, levels: int | None, search: Search) -> Iterator[str]:
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
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except OSError as error:
        if error.errno not in _CLOSED:
            raise SandboxUnavailable(f"{directory!r} cannot be listed: {error.strerror}") from error


class Parts:
    """The parts of a pattern, each for one name of a path; ``**`` is for any number of names.

    How far a path has come is a set of bits, as in ``Wildcards``: one for each
    number of parts that its names may have used up.  So each name is looked at
    once, however many ways there are to divide a path among the parts.
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
                part = "*"  # At the end it stands for one name at least.
                self._loops |= bit << 1
            bit <<= 1
            bits = special if _SPECIAL.search(part) else self._plain
            bits[part] = bits.get(part, 0) | bit
        self.end = bit
        self._special = Wildcards(special, special=STAR_ONE_AND_SETS)
        self._special_bits = list(special.values())

    def after(self, bits: int, name: str) -> int:
        """How far a path may have come with one name more; 0 if nothing below can match."""
        mask = self._plain.get(name, 0)
        for place in self._special.which(name):
            mask |= self._special_bits[place]
        return ((bits << 1) & mask) | (bits & self._loops)
