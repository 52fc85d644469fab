"""Keeps tests that send random paths inside their own directory.

Two walls, because a mistake here removes somebody's files.  ``leaving`` finds every
text in a message that a server could take for a path outside of the directory, so
that a test refuses to send it.  ``bench/soaking/fence.py`` starts a server that can
write to that directory only.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

_BLANKS = "".join(map(chr, range(0x21)))
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


# What a test is about to send.


def leaving(message: Any, root: str) -> Iterator[str]:
    """The texts in a message that may name something outside of ``root``.

    Any text counts, whatever its place in the message: one that begins with a
    slash, and one that could be a URI.  Only those that lead into ``root``, by any
    way of reading them, are left out.
    """
    match message:
        case str() if not _is_inside(message, root):
            yield message
        case list():
            for each in message:
                yield from leaving(each, root)
        case dict():
            for name, each in message.items():
                yield from leaving(name, root)
                yield from leaving(each, root)


def _is_inside(text: str, root: str) -> bool:
    if not text.startswith("/"):
        # Readers of URIs pass over blanks around them, and over line ends inside.
        uri = re.sub(r"[\t\r\n]", "", text.strip(_BLANKS))
        if not _URI.match(uri):
            return True
        if not uri.startswith("file:///"):
            return False
        text = uri.removeprefix("file://")
    # With and without escapes, and with back slashes as a URI has them.
    readings = {text, unquote(text), unquote(text).replace("\\", "/")}
    return all(_leads_into(reading, root) for reading in readings)


def _leads_into(path: str, root: str) -> bool:
    # Dots that lead up are refused even if they come back: there may be links in between.
    normal = posixpath.normpath(path)
    return ".." not in path.split("/") and (normal == root or normal.startswith(f"{root}/"))
