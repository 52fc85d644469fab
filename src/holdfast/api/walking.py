"""Goes through a directory of a host and all below it, as ``os.walk`` does on one's own."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from holdfast.errors import FileFailed, TooManyEntries

if TYPE_CHECKING:
    from holdfast.sandbox import Sandbox

    from .files import HostFiles

Level = tuple[str, list[str], list[str]]
"""A directory, the names of directories in it, and all other names in it."""


async def walk_levels(
    files: HostFiles,
    top: str,
    *,
    follow: bool,
    on_error: Callable[[OSError], object] | None,
    sandbox: Sandbox | None,
) -> AsyncIterator[Level]:
    """Yield each directory, those above before those below; see ``HostFiles.walk``."""
    waiting, seen = [top], set[str]()
    while waiting:
        path = waiting.pop()
        try:
            if follow:
                real = await files.canonical(path, sandbox=sandbox)
                if real in seen:
                    continue
                seen.add(real)
            entries = sorted(await files.list(path, sandbox=sandbox), key=lambda entry: entry.name)
        except (FileFailed, TooManyEntries) as error:
            if on_error is not None:
                on_error(error)
            elif path == top or error.errno != errno.ENOENT:
                raise
            continue
        links = {entry.name: entry.link for entry in entries}
        directories = [entry.name for entry in entries if entry.directory]
        yield path, directories, [entry.name for entry in entries if not entry.directory]
        for name in reversed(directories):
            below = os.path.join(path, name)
            if follow or not await _is_link(files, below, sandbox, told=links.get(name)):
                waiting.append(below)


async def _is_link(files: HostFiles, path: str, sandbox: Sandbox | None, *, told: bool | None) -> bool:
    """Whether a path is a link, which a list of a server need not have told."""
    if told is not None:
        return told
    try:
        return (await files.metadata(path, sandbox=sandbox)).link
    except FileNotFoundError:
        return True  # It has gone: there is nothing to enter.
