"""Params of every method of every dialect: decoded, or refused in words that can be told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from holdfast.config import AppLimits, SandboxLimits
from holdfast.dialects.app import explain as app_explain
from holdfast.dialects.app import methods as app_methods
from holdfast.dialects.app import order
from holdfast.dialects.dialect import Catalog, Method, WireError
from holdfast.dialects.exec import explain as exec_explain
from holdfast.dialects.exec import methods as exec_methods
from holdfast.dialects.exec import starting
from holdfast.dialects.exec.decoding import (
    DecodedHttpRequest,
    DecodedStart,
    DecodedWatch,
    DecodedWrite,
    DecodedWriteBlock,
    Located,
)
from holdfast.errors import BadRequest, HoldfastError, Refused
from holdfast.model import HostInfo
from holdfast.protocol import base64
from holdfast.protocol.app import ExecParams, SpawnParams
from holdfast.protocol.http import HttpRequestParams
from holdfast.protocol.sandbox import sandbox_of
from holdfast.protocol.shapes import Shape, Undecodable
from holdfast.protocol.start import StartParams
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Malformed, Request, Response
from holdfast.wire.serde import Misfit, Words, complain, fit

from .draw import Draw, is_tellable

SEEDS = tuple(bytes((index, 0)) + filler * 40 for index in range(45) for filler in (b"\x05", b"\xa5\x01"))

Explain = Callable[[HoldfastError], WireError]
INFO = HostInfo("/bin/sh", "/srv", "/root", "/tmp", (), "", "")


def _kinds(catalog: Catalog, methods: Mapping[str, Method]) -> list[tuple[str, type[Shape] | None]]:
    known = {call.name: call.params for call in catalog.calls}
    return [(name, known.get(name)) for name in methods]


EXEC = _kinds(exec_methods.CATALOG, exec_methods.METHODS)
APP = _kinds(app_methods.CATALOG, app_methods.METHODS)


def check_exec(data: bytes) -> None:
    draw = Draw(data)
    name, kind = draw.pick(EXEC)
    params = _carried(draw, kind, jsonrpc.decode)
    if params is None:
        return
    value = params[0]
    found = _decoded(exec_methods.METHODS[name], value, exec_explain.explain)
    if kind is not None:
        _check_words(value, kind, Words.TERSE)
    if found is not None:
        _check_exec(found, value)


def check_app(data: bytes) -> None:
    draw = Draw(data)
    name, kind = draw.pick(APP)
    params = _carried(draw, kind, jsonrpc.decode_loosely)
    if params is None:
        return
    value = params[0]
    explain = partial(app_explain.explain, methods=tuple(app_methods.METHODS))
    found = _decoded(app_methods.METHODS[name], value, explain)
    if kind is not None and value is not None:
        _check_words(value, kind, Words.FULL)
    if found is None:
        return
    _check_again(found, app_methods.METHODS[name].decode)
    if isinstance(found, SpawnParams):
        _check_refusal(lambda: order.process(found, AppLimits()), explain)
    elif isinstance(found, ExecParams):
        _check_refusal(lambda: order.command(found, INFO, AppLimits()), explain)


def _carried(draw: Draw, kind: type[Shape] | None, decode: Callable[[bytes], Any]) -> tuple[Any] | None:
    """Params as a client would send them, through the envelope; None if that refuses them."""
    escaped = bool(draw.below(2))
    value = draw.value() if kind is None else draw.like(kind)
    text = json.dumps({"id": 1, "method": "m", "params": value}, ensure_ascii=escaped).encode()
    try:
        message = decode(text)
    except Malformed:
        return None
    assert isinstance(message, Request)
    return (message.params,)


def _decoded(method: Method, value: Any, explain: Explain) -> Any:
    """The params as their method has them; None if they were refused."""
    try:
        return method.decode(value)
    except BadRequest as bad:
        _check_told(bad, value, explain)
        return None


def _check_told(error: HoldfastError, value: Any, explain: Explain) -> None:
    """What is wrong can be told, and is not much longer than what was sent."""
    told = explain(error)
    assert told.code in (-32602, -32600)
    assert is_tellable(told.message)
    assert len(told.message) <= 10 * len(json.dumps(value)) + 500
    text = jsonrpc.error(1, told.code, told.message, told.data)
    again = jsonrpc.decode(text)
    assert isinstance(again, Response)
    assert again.error is not None
    assert again.error.message == told.message


def _check_words(value: Any, kind: type[Shape], words: Words) -> None:
    """Whoever explains a misfit sees one exactly where the decoder does."""
    try:
        found = fit(value, kind, words)
    except Misfit:
        return
    assert found is not None
    # What is left are texts that must make sense, too, which the decoders look at themselves.
    complaint = complain(value, kind, words)
    assert complaint is None or not complaint.startswith(("invalid type", "missing field", "unknown variant"))


def _check_again(found: Any, decode: Callable[[Any], Any]) -> None:
    """Written down and read again it is the same."""
    assert decode(msgspec.to_builtins(found)) == found


def _check_exec(found: Any, value: Any) -> None:
    match found:
        case DecodedStart(params=start, cwd=cwd):
            _check_again(start, partial(msgspec.convert, type=StartParams))
            _check_refusal(lambda: starting._spec(start, cwd, SandboxLimits()), exec_explain.explain)
            _check_refusal(lambda: starting._request(start, cwd, sandboxed=False), exec_explain.explain)
        case DecodedWrite(data=data) | DecodedWriteBlock(data=data):
            assert base64.encode(data).decode() == value["chunk"]
        case DecodedHttpRequest(params=params, body=body):
            _check_again(params, partial(msgspec.convert, type=HttpRequestParams))
            assert base64.encode(body).decode() == (value.get("bodyBase64") or "")
        case Located(params=params):
            _check_again(params, partial(msgspec.convert, type=type(params)))
            _check_refusal(lambda: found.path, exec_explain.explain)
            sandbox = getattr(params, "sandbox", None)
            _check_refusal(lambda: sandbox_of(sandbox, None), exec_explain.explain)
        case DecodedWatch(missing=missing):
            assert missing is None or all(path.startswith("/") for path in missing)
        case Shape():
            _check_again(found, partial(msgspec.convert, type=type(found)))


def _check_refusal(work: Callable[[], object], explain: Explain) -> None:
    """Params that were decoded may still be refused, and for nothing but a reason."""
    try:
        work()
    except (BadRequest, Refused) as refusal:
        assert not isinstance(refusal, Undecodable)
        assert is_tellable(explain(refusal).message)
