"""Paths as clients send them, native or as ``file:`` URIs; what we send are URIs (pure).

Clients of the reference up to 0.140 send native absolute paths, later ones send
URIs.  A text that begins with a slash is a native path.  Every other text is read
as the WHATWG rules for URLs have it, as far as a local path needs them: blanks
around it, one to three slashes, back slashes, dot segments, any case.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from holdfast.errors import BadRequest, LimitReached
from holdfast.model import utf8_size
from holdfast.value import value

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_DOT_SEGMENT = re.compile(r"/\.\.?(/|$)")
_DRIVE = re.compile(r"[A-Za-z]:")
_BAD_HOST = re.compile(r"[\x00-\x20#%/:<>?@\\^|\x7f]")
_NATIVE_DOTS = {".": 1, "..": 2}
_DOTS = _NATIVE_DOTS | {"%2e": 1, ".%2e": 2, "%2e.": 2, "%2e%2e": 2}
_READY = re.compile(r"[A-Za-z0-9/._~!$&'()*+,;=:@|^\[\]-]*")
_PLAIN = frozenset(range(0x21, 0x7F)) - frozenset(b'"#<>?`{}%\\')
_ENCODED = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256)]
_ENCODED_BEFORE = [*_ENCODED[:0x25], "%", *_ENCODED[0x26:]]
"""Encodes what may be encoded in part already: a ``%`` stays as it is."""

LONGEST = 16 << 10
"""Bytes of a path, as it is sent.

The kernel takes no path above 4 KiB, which is three times as long with every byte
encoded.  Paths are read on the loop, where a message full of them would hold up all.
"""


@value
class PathUri:
    """A path that a client sent."""

    uri: str
    """The URI in its normal form, for error texts and for answers."""
    path: str | None
    """The path on this host; None if it names one on another host or system."""


def parse(text: str) -> PathUri:
    """Read a native absolute path, or a URI.

    Raises:
        BadRequest: It is neither, or it has a NUL in it.
        LimitReached: It is longer than any path can be.
    """
    if len(text) > LONGEST // 4 and utf8_size(text) > LONGEST:  # A character has four bytes at the most.
        raise LimitReached("bytes of a path", LONGEST)
    return _native(text) if text.startswith("/") else _from_uri(text)


def _native(text: str) -> PathUri:
    """Every character stands for itself, ``%`` and ``\\`` too; only dot segments are removed."""
    path = "/" + "/".join(_without_dots(text, _NATIVE_DOTS))
    uri = to_uri(path)
    if "\0" in path:
        raise BadRequest(f"'{uri}' is invalid on 'linux'")
    return PathUri(uri, path)


def _from_uri(uri: str) -> PathUri:
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
    plain = "/" + "/".join(_without_dots(path, _DOTS))
    drive = _DRIVE.match(plain, 1)
    if drive is not None:
        plain = "/" + plain[1].upper() + plain[2:]
    normal = f"file://{host}{_encode(plain, _ENCODED_BEFORE)}"
    decoded = unquote_to_bytes(plain.encode("utf-8", "surrogateescape"))
    if b"\0" in decoded:
        raise BadRequest(f"'{normal}' is invalid on 'linux'")
    if host or (drive is not None and plain[3:4] in ("", "/")):
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


def _without_dots(path: str, dots: dict[str, int]) -> list[str]:
    """The segments of a path; one that ends in dots names a directory, as if a slash followed."""
    segments: list[str] = []
    parts = path.removeprefix("/").split("/")
    if "." not in path and "%" not in path:
        return parts
    for index, part in enumerate(parts):
        count = dots.get(part.lower(), 0)
        if count == 2 and segments:
            segments.pop()
        if not count:
            segments.append(part)
        elif index == len(parts) - 1:
            segments.append("")
    return segments


def to_uri(path: str) -> str:
    """The URI of an absolute path."""
    # Most paths need no encoding, and a walk has thousands of them.
    encoded = path if _READY.fullmatch(path) else _encode(path)
    if path[2:3] == ":" and _DRIVE.match(path, 1):
        # As it is, it would be read as a drive of another system, here too.
        encoded = f"{encoded[:2]}%3A{encoded[3:]}"
    return "file://" + encoded


def uri_of(path: str) -> str:
    """The URI of an absolute path without dots; whoever reads it finds this path and no other.

    Raises:
        BadRequest: There is none.
    """
    if not path.startswith("/") or "\0" in path or _DOT_SEGMENT.search(path):
        raise BadRequest(f"{path!r} is no absolute path without dots", field="path")
    try:
        return to_uri(path)
    except UnicodeEncodeError:
        raise BadRequest(f"{path!r} has characters that stand for no bytes", field="path") from None


def path_of(uri: str) -> str:
    """The path that a URI of a server means on its host.

    Raises:
        BadRequest: None.
    """
    if not uri.startswith("file:///"):
        raise BadRequest(f"{uri!r} is no path of the server's host", field="path")
    # Not ``parse``, which forgives what people write: a server writes what it means.
    return unquote_to_bytes(uri.removeprefix("file://")).decode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """``text`` with U+FFFD for bytes that are not UTF-8: JSON has no words for those."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _encode(text: str, encoded: list[str] = _ENCODED) -> str:
    return "".join(map(encoded.__getitem__, text.encode("utf-8", "surrogateescape")))
