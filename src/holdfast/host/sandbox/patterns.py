"""Patterns of paths, and what they match."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from holdfast.errors import BadRequest

MOST_MATCHES = 8192
_MOST_SEEN = 262_144
"""Names that are looked at for one pattern; a pattern that needs more is refused, not cut short."""

_MOST_DEEP = 4
"""Parts ``**`` of a pattern: each multiplies the ways to match."""

_SPECIAL = re.compile(r"[*?\[{}]")
_UNKNOWN = re.compile(r"[{}]")


def expand(pattern: str, cwd: str, depth: int | None) -> list[str]:
    """The paths that match, without following symbolic links.

    Args:
        depth: How many directories deep to look below the part without special characters.

    Raises:
        BadRequest: It would have to be looked for everywhere, or too much matches.
    """
    if "\0" in pattern:
        raise BadRequest(f"glob {pattern!r} contains a NUL byte")
    if pattern.count("**") > _MOST_DEEP:
        raise BadRequest(f"glob `{pattern}` has more than {_MOST_DEEP} parts that go deeper")
    if not pattern.startswith("/"):
        pattern = os.path.join(cwd, pattern)
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    fixed = next((index for index, part in enumerate(parts) if _SPECIAL.search(part)), len(parts))
    if fixed == len(parts):
        return ["/" + "/".join(parts)]
    if fixed == 0 or _UNKNOWN.search(pattern):
        raise BadRequest(
            f"unreadable glob `{pattern}` cannot be safely expanded;"
            " use a pattern with a non-root directory prefix"
        )
    top = "/" + "/".join(parts[:fixed])
    wanted = parts[fixed:]
    levels = None if "**" in parts else len(parts) - fixed
    if depth is not None:
        levels = depth if levels is None else min(depth, levels)
    found = []
    for path in _below(top, pattern, levels):
        if _matches(path[len(top) + 1 :].split("/"), wanted):
            found.append(path)
            if len(found) > MOST_MATCHES:
                raise BadRequest(f"glob `{pattern}` matches more than {MOST_MATCHES} paths")
    return found


def _below(top: str, pattern: str, levels: int | None) -> Iterator[str]:
    seen, level = 0, [top]
    while level and (levels is None or levels > 0):
        deeper: list[str] = []
        for directory in level:
            try:
                names = os.scandir(directory)
            except OSError:
                continue  # What cannot be listed cannot be read by the command, either.
            with names:
                for entry in names:
                    seen += 1
                    if seen > _MOST_SEEN:
                        raise BadRequest(f"glob `{pattern}` has to look at more than {_MOST_SEEN} paths")
                    yield entry.path
                    if entry.is_dir(follow_symlinks=False):
                        deeper.append(entry.path)
        level = deeper
        levels = None if levels is None else levels - 1


def _matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the names of a path are what the parts of a pattern say."""
    if not parts:
        return not names
    if parts[0] == "**":
        rest = parts[1:]
        if not rest:
            return bool(names)
        return any(_matches(names[skipped:], rest) for skipped in range(len(names)))
    return bool(names) and fnmatchcase(names[0], parts[0]) and _matches(names[1:], parts[1:])
