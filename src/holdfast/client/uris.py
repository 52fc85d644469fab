"""Paths of the server's host as URIs, and back, byte for byte (pure)."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from holdfast.dialects import paths
from holdfast.errors import BadRequest

_DOTS = re.compile(r"/\.\.?(/|$)")
_PREFIX = "file://"


def uri_of(path: str) -> str:
    """The URI of an absolute path without dots; whoever reads it finds this path and no other.

    Raises:
        BadRequest: There is none.
    """
    if not path.startswith("/") or "\0" in path or _DOTS.search(path):
        raise BadRequest(f"{path!r} is no absolute path without dots", field="path")
    try:
        return paths.to_uri(path)
    except UnicodeEncodeError:
        raise BadRequest(f"{path!r} has characters that stand for no bytes", field="path") from None


def path_of(uri: str) -> str:
    """The path that a URI of the server means on its host.

    Raises:
        BadRequest: None.
    """
    if not uri.startswith(f"{_PREFIX}/"):
        raise BadRequest(f"{uri!r} is no path of the server's host", field="path")
    # Not ``paths.parse``, which forgives what people write: a server writes what it means.
    return unquote_to_bytes(uri.removeprefix(_PREFIX)).decode("utf-8", "surrogateescape")
