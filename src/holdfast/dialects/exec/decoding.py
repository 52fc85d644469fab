"""From the params of a request to what its handler gets: paths are parsed, base64 is decoded (pure)."""

from __future__ import annotations

import os.path
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.errors import FileRefused
from holdfast.files import MOST_MISSING, MOST_MISSING_BYTES
from holdfast.model import utf8_size
from holdfast.protocol import base64, paths
from holdfast.protocol.files import WatchMissingParams, WriteBlockParams
from holdfast.protocol.http import HttpRequestParams
from holdfast.protocol.inspecting import ListParams
from holdfast.protocol.processes import WriteParams
from holdfast.protocol.shapes import Shape, decoded
from holdfast.protocol.start import StartParams

P = TypeVar("P", bound=Shape)


def decode_unit(value: Any) -> None:
    """Params of a method that takes none: absent, null or ``{}``."""
    if value is not None and value != {}:
        decoded(value, type(None))


# Processes.


def decode_list(value: Any) -> ListParams:
    """Params of a list, which may be absent, or null."""
    return ListParams() if value is None else decoded(value, ListParams)


class DecodedStart(msgspec.Struct):
    """``process/start`` with its directory parsed."""

    params: StartParams
    cwd: paths.PathUri


def decode_start(value: Any) -> DecodedStart:
    params = decoded(value, StartParams)
    return DecodedStart(params, paths.parse(params.cwd))


class DecodedWrite(msgspec.Struct):
    """``process/write`` with its bytes decoded."""

    process_id: str
    data: bytes
    write_id: str | None


def decode_write(value: Any) -> DecodedWrite:
    if type(value) is dict:
        # By hand: the hot path of whoever types, or uploads.
        name, chunk, key = value.get("processId"), value.get("chunk"), value.get("writeId")
        if type(name) is str and type(chunk) is str and (key is None or type(key) is str):
            return DecodedWrite(name, base64.decode(chunk), key)
    params = decoded(value, WriteParams)
    return DecodedWrite(params.process_id, base64.decode(params.chunk), params.write_id)


# Files.


class Located(msgspec.Struct, Generic[P]):
    """A request about files with its paths parsed."""

    params: P
    uris: list[paths.PathUri]

    @property
    def path(self) -> str:
        return local(self.uris[0])


def _decode_located(value: Any, kind: type[P], names: tuple[str, ...]) -> Located[P]:
    params = decoded(value, kind)
    return Located(params, [paths.parse(getattr(params, name)) for name in names])


def located(kind: type[P], *names: str) -> Callable[[Any], Located[P]]:
    """A decoder of params in which these members are paths; without any it is ``path``."""
    return partial(_decode_located, kind=kind, names=names or ("path",))


def local(uri: paths.PathUri) -> str:
    """The path that was meant on this host, without dots and without a slash at its end.

    Raises:
        FileRefused: It means one on another host.
    """
    if uri.path is None:
        raise FileRefused(f"'{uri.uri}' is invalid on 'linux'")
    return "/" + os.path.normpath(uri.path).lstrip("/")


class DecodedWriteBlock(msgspec.Struct):
    """``fs/writeBlock`` with its bytes decoded."""

    handle_id: str
    offset: int
    data: bytes


def decode_write_block(value: Any) -> DecodedWriteBlock:
    params = decoded(value, WriteBlockParams)
    return DecodedWriteBlock(params.handle_id, params.offset, base64.decode(params.chunk))


class DecodedWatch(msgspec.Struct):
    """``fs/watchMissing`` with its paths parsed."""

    watch_id: int
    missing: list[str] | None
    """None if there are too many, or one is not of this host."""
    present: str | None


def decode_watch_missing(value: Any) -> DecodedWatch:
    params = decoded(value, WatchMissingParams)
    # Before each is parsed, which takes its time: so many are not watched anyway.
    if len(params.missing) > MOST_MISSING or sum(map(utf8_size, params.missing)) > MOST_MISSING_BYTES:
        return DecodedWatch(params.watch_id, None, None)
    uris = [paths.parse(uri) for uri in params.missing]
    present = None if params.present is None else paths.parse(params.present)
    if any(uri.path is None for uri in uris) or (present is not None and present.path is None):
        return DecodedWatch(params.watch_id, None, None)
    return DecodedWatch(
        params.watch_id, [local(uri) for uri in uris], None if present is None else local(present)
    )


# HTTP.


class DecodedHttpRequest(msgspec.Struct):
    """``http/request`` with its body decoded."""

    params: HttpRequestParams
    body: bytes


def decode_http_request(value: Any) -> DecodedHttpRequest:
    params = decoded(value, HttpRequestParams)
    body = b"" if params.body_base64 is None else base64.decode(params.body_base64)
    params.body_base64 = None  # Nobody needs it twice, and it may be large.
    return DecodedHttpRequest(params, body)
