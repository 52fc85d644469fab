"""Texts that mean more than their characters: base64, and paths as URIs."""

from __future__ import annotations

import base64 as stdlib
import binascii

from holdfast.errors import BadRequest
from holdfast.protocol import base64, paths
from holdfast.protocol.paths import path_of, uri_of

from .draw import is_tellable

BASE64_SEEDS = (
    b"",
    b"YQ==",
    b"YWI=",
    b"YWJj",
    b"YR==",
    b"YQ",
    b"=",
    b"A===",
    b"YQ==YQ==",
    b"Y\nQ==",
    b"YWJj" * 40,
)
URI_SEEDS = (
    *(
        b"file:///tmp/a%20b",
        b"file://localhost/x/../y",
        b"FILE:\\c:\\x",
        b"file:///%FF%2e%2E/",
        b"file://h%41/x",
    ),
    *(b" file:a/./b\t", b"file:///x?y#z", b"http://x", b"file:///C|/x", b"file://[::1]/x", b"file:////..//a"),
)


def check_base64(data: bytes) -> None:
    """Taken is what everybody reads in the same way, and writes in this way."""
    text = data.decode(errors="replace")
    try:
        found = base64.decode(text)
    except BadRequest as bad:
        assert len(str(bad)) < 100
        assert is_tellable(str(bad))
        found = None
    assert found == _model(text)
    if found is not None:
        assert base64.decode_bytes(text.encode()) == found
        assert base64.decode_bytes(memoryview(text.encode())) == found
    try:
        loosely = base64.decode_bytes(data)
    except ValueError:
        return
    # Bits behind the last byte are passed over, nothing else is.
    assert len(base64.encode(loosely)) == len(data)


def _model(text: str) -> bytes | None:
    try:
        found = stdlib.b64decode(text.encode(), validate=True)
    except binascii.Error:
        return None
    return found if stdlib.b64encode(found) == text.encode() else None


def check_uri(data: bytes) -> None:
    """A path has one normal form, and whoever reads that finds the same path."""
    text = data.decode(errors="replace")
    try:
        found = paths.parse(text)
    except BadRequest as bad:
        assert is_tellable(str(bad))
    else:
        assert is_tellable(found.uri)
        assert len(found.uri) <= 9 * len(data) + 20
        assert paths.parse(found.uri) == found
        if found.path is not None:
            assert found.path.startswith("/")
            assert "\0" not in found.path
            assert path_of(paths.to_uri(found.path)) == found.path
    _check_path("/" + data.decode(errors="surrogateescape"))
    _check_server(text)


def _check_path(path: str) -> None:
    try:
        uri = uri_of(path)
    except BadRequest:
        return
    assert path_of(uri) == path
    assert paths.parse(uri).path == path


def _check_server(uri: str) -> None:
    try:
        path = path_of(uri)
    except BadRequest:
        return
    assert path.startswith("/")
