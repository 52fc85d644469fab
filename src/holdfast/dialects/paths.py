"""Paths as ``file:`` URIs (pure).

Reads what the WHATWG rules for URLs accept, as far as a local path needs them:
blanks around it, one to three slashes, back slashes, dot segments, any case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from holdfast.errors import BadRequest

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:")
_BAD_HOST = re.compile(r"[\x00-\x20#%/:<>?@\\^|\x7f]")
_DOTS = {".": 1, "%2e": 1, "..": 2, ".%2e": 2, "%2e.": 2, "%2e%2e": 2}
_READY = re.compile(r"[A-Za-z0-9/._~!$&'()*+,;=:@|^\[\]-]*")
_PLAIN = frozenset(range(0x21, 0x7F)) - frozenset(b'"#<>?`{}%\\')


@dataclass(frozen=True, slots=True)
class PathUri:
    """A path as a client sent it."""

    uri: str
    """The URI in its normal form, for error texts."""
    path: str | None
    """The path on this host; None if it names one on another host or system."""


def parse(uri: str) -> PathUri:
    """Read a URI.

    Raises:
        BadRequest: It is no ``file:`` URI.
    """
    uri = uri.strip("".join(map(chr, range(0x21)))).translate({9: None, 10: None, 13: None})
    match = _SCHEME.fullmatch(uri)
    if match is None:
        raise BadRequest("invalid URI: relative URL without a base")
    scheme, rest = match[1].lower(), match[2]
    if scheme != "file":
        raise BadRequest(f"unsupported path URI scheme `{scheme}`")
    before_fragment, fragment, _ = rest.partition("#")
    if "?" in before_fragment:
        raise BadRequest("query parameters are not allowed in path URIs")
    if fragment:
        raise BadRequest("fragments are not allowed in path URIs")
    host, path = _split(rest.replace("\\", "/"))
    path = _normal(path)
    drive = _DRIVE.match(path, 1)
    if drive is not None:
        path = "/" + path[1].upper() + path[2:]
    normal = f"file://{host}{path}"
    decoded = unquote_to_bytes(path)
    if b"\0" in decoded:
        raise BadRequest(f"'{normal}' is invalid on 'linux'")
    if host or (drive is not None and path[3:4] in ("", "/")):
        return PathUri(normal, None)
    return PathUri(normal, decoded.decode("utf-8", "surrogateescape"))


def _split(rest: str) -> tuple[str, str]:
    """Host and path of what follows ``file:``."""
    if not rest.startswith("//"):
        return "", rest
    host, slash, path = rest[2:].partition("/")
    if not (host.startswith("[") and host.endswith("]")) and _BAD_HOST.search(host):
        raise BadRequest("invalid URI: invalid international domain name")
    host = host.lower()
    return ("" if host == "localhost" else host), slash + path


def _normal(path: str) -> str:
    """Without dot segments, and with everything encoded that must be."""
    segments: list[str] = []
    parts = path.removeprefix("/").split("/")
    for index, part in enumerate(parts):
        dots = _DOTS.get(part.lower(), 0)
        if dots == 2 and segments:
            segments.pop()
        if not dots:
            segments.append(part)
        elif index == len(parts) - 1:
            segments.append("")
    return "/" + _encode("/".join(segments), keep=b"%")


def to_uri(path: str) -> str:
    """The URI of an absolute path."""
    # Most paths need no encoding, and a walk has thousands of them.
    return "file://" + (path if _READY.fullmatch(path) else _encode(path))


def _encode(text: str, keep: bytes = b"") -> str:
    data = text.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _PLAIN or byte in keep else f"%{byte:02X}" for byte in data)
