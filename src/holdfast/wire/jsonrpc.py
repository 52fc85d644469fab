"""The envelope of messages, and the framing of those that come one per line (pure).

JSON-RPC 2.0 without the ``jsonrpc`` member.  What a message must look like, down
to the words that name a fault, is the exec dialect's; others use the same shapes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
import pybase64

from holdfast.value import value

from .serde import Misfit, fit
from .serde_json import MOST_NESTED, MOST_VALUES, is_deep, is_too_much, is_whole, scan, strings, trailing
from .serde_json import Malformed as Malformed  # Whoever decodes has it from here.

Id = int | str

_LEAST_ID, _MOST_ID = -(2**63), 2**63 - 1

UNPARSED: Id = -1
"""The identifier in the answer to a message that could not be parsed."""

_BAD_ID = "data did not match any variant of untagged enum RequestId"
_decode = msgspec.json.Decoder().decode
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
encode = msgspec.json.Encoder().encode
"""A value as JSON."""


class TraceContext(msgspec.Struct):
    """The caller's trace (W3C)."""

    wire_name: ClassVar[str] = "W3cTraceContext"

    traceparent: str | None = None
    tracestate: str | None = None


class ErrorBody(msgspec.Struct):
    """An error, as an answer carries it."""

    wire_name: ClassVar[str] = "JSONRPCErrorError"

    code: Annotated[int, msgspec.Meta(title="i64")]
    message: str
    data: Any = None

    def __post_init__(self) -> None:
        if not _LEAST_ID <= self.code <= _MOST_ID:
            raise ValueError("invalid number")


class Request(msgspec.Struct, omit_defaults=True):
    """A message that has to be answered."""

    id: Id
    method: str
    params: Any = None
    trace: TraceContext | None = None


class Notification(msgspec.Struct):
    """A message that is not answered."""

    method: str
    params: Any


class Response(msgspec.Struct):
    """An answer to a request of ours."""

    id: Id
    result: Any = None
    error: ErrorBody | None = None


Message = Request | Notification | Response

_decode_request = msgspec.json.Decoder(Request).decode
_NO_PARAMS = b',"params":null}'
"""The end of a request that says that it has none."""


# In.


def decode(text: bytes) -> Message:
    """The message that ``text`` is.

    Raises:
        Malformed: It is none; the words say why.
    """
    if len(text) <= _SHORT:
        # Most messages are short requests, and exactly what encoding them again gives.
        try:
            request = _decode_request(text)
            key, again = request.id, encode(request)
            is_same = again == text or (request.params is None and again[:-1] + _NO_PARAMS == text)
            if is_same and (isinstance(key, str) or _LEAST_ID <= key <= _MOST_ID):
                return request
        except _REFUSED:
            pass  # It is something else, or wrong: both are found out below.
    elif (tree := _decode_around(text)) is not None:
        return _classify(tree)
    elif is_too_much(text):
        return _decode_slowly(text)
    try:
        tree = _decode(text)
    except _REFUSED:
        return _decode_slowly(text)
    is_plain = (len(text) <= _SHORT and encode(tree) == text) or is_whole(text, tree)
    return _classify(tree) if is_plain else _decode_slowly(text)


def decode_loosely(text: bytes) -> Message:
    """The message that ``text`` is, for dialects that let the last of two equal keys win in params.

    Raises:
        Malformed: It is none.
    """
    if len(text) > _SHORT and (tree := _decode_around(text)) is not None:
        return _classify(tree)
    if is_too_much(text):
        raise Malformed(f"more than {MOST_VALUES} values")
    try:
        tree = _decode(text)
    except _REFUSED as error:
        raise Malformed(str(error)) from None
    if text.count(b"{") + text.count(b"[") > MOST_NESTED and is_deep(tree):
        raise Malformed(f"nested more than {MOST_NESTED} levels deep")
    if type(tree) is dict and text.count(b'"') != 2 * strings(tree):
        _check_keys(text)
    return _classify(tree)


def _check_keys(text: bytes) -> None:
    """Complain about a member of the message itself that is there twice."""
    names: list[str] = []

    def see(members: list[tuple[str, Any]]) -> None:
        names[:] = [name for name, _ in members]  # The outermost object comes last.

    json.loads(text, object_pairs_hook=see, parse_int=float)
    if len(set(names)) < len(names):
        raise Malformed("a member is there twice")


_SHORT = 2 * MOST_NESTED
"""Bytes in which nothing can be nested too deeply, nor be too many values."""

_BEFORE, _AROUND = 1024, 4096
"""Bytes before a long text that is read apart from the rest, and bytes around it."""

_STAND_IN = "-=-"


class Uploaded(dict[str, Any]):
    """Params with one long base64 text, which was decoded while the message was read.

    In its place they have an empty text.
    """

    __slots__ = ("data", "member")

    def __init__(self, params: dict[str, Any], member: str, data: bytes) -> None:
        super().__init__(params)
        self[member] = ""
        self.member = member
        self.data = data

    def as_sent(self) -> dict[str, Any]:
        """The params with the text: for whoever does not expect base64 there."""
        return {**self, self.member: pybase64.b64encode(self.data).decode("ascii")}


def _decode_around(text: bytes) -> Any:
    """The value of a message with one long base64 text among its params, as uploads have it; else None.

    To find its end is fast, and so is decoding it, which needs no escapes and no text: both are many times
    faster than what reads any JSON.  The rest is read with a short text in its place.
    """
    start = text.rfind(b'":"', 0, _BEFORE) + 3
    end = text.find(b'"', start)
    if start < 3 or end - start < _SHORT or len(text) - (end - start) > _AROUND:
        return None
    head, tail, stand_in = text[:start], text[end:], _STAND_IN.encode()
    # Nothing else in it can be taken for the text that stands in, or becomes it when it is read.
    if b"\\" in head or b"\\" in tail or stand_in in head or stand_in in tail:
        return None
    try:
        data = pybase64.b64decode(memoryview(text)[start:end], None, True)
        # It must be what encoding the bytes gives: the decoder passes over bits behind the last byte.
        if pybase64.b64encode(data[-(len(data) % 3 or 3) :]) != text[end - 4 : end] or (end - start) % 4:
            return None
        tree = _decode(rest := head + stand_in + tail)
        params, name = tree["params"], head[head.rindex(b'"', 0, start - 3) + 1 : -3].decode()
        if params[name] != _STAND_IN or not is_whole(rest, tree):
            return None
    except (ValueError, TypeError, LookupError, msgspec.DecodeError, RecursionError):
        return None
    tree["params"] = Uploaded(params, name, data)
    return tree


def _decode_slowly(text: bytes) -> Message:
    end = scan(text)
    message = _classify(json.loads(text[:end], parse_int=_integer))
    trailing(text, end)
    return message


def _integer(digits: str) -> int | float:
    """Python refuses to convert very long integers; no field takes them anyway."""
    return int(digits) if len(digits) < 1000 else float(digits)


def _classify(tree: Any) -> Message:
    if type(tree) is not dict:
        raise Malformed("expected a JSON-RPC object")
    method: Any = tree.get("method")
    key: Any = tree.get("id")
    kind = type(key)
    if type(method) is str and ((kind is int and _LEAST_ID <= key <= _MOST_ID) or kind is str):
        trace = tree.get("trace")
        if trace is not None:
            _check_members(tree)
            trace = fit(trace, TraceContext) if isinstance(trace, dict) else None
        return Request(key, method, tree.get("params"), trace)
    _check_members(tree)
    if "method" in tree:
        return Notification(tree["method"], tree.get("params"))
    if "id" not in tree:
        raise Malformed("missing field `id`")
    if "result" in tree:
        return Response(tree["id"], tree["result"])
    return Response(tree["id"], error=fit(tree["error"], ErrorBody))


def _check_members(tree: dict[str, Any]) -> None:
    """Complain about the first member that does not fit, in the order they were written."""
    is_request = "method" in tree and "id" in tree
    try:
        for name, value in tree.items():
            if name == "method":
                fit(value, str)
            elif name == "id" and ("method" not in tree or is_request):
                _check_id(value)
            elif name == "trace" and is_request and value is not None:
                fit(value, TraceContext)
            elif name == "error" and "method" not in tree and "result" not in tree:
                fit(value, ErrorBody)
    except Misfit as misfit:
        raise Malformed(str(misfit)) from None
    if not {"method", "result", "error"} & tree.keys():
        raise Malformed("missing field `error`")


def _check_id(value: Any) -> None:
    if type(value) is str or (type(value) is int and _LEAST_ID <= value <= _MOST_ID):
        return
    for number in _integers(value):
        if 2**64 <= number < 2**128:
            raise Malformed(f"invalid type: integer `{number}` as u128, expected any value")
        if -(2**127) <= number < _LEAST_ID:
            raise Malformed(f"invalid type: integer `{number}` as i128, expected any value")
    raise Malformed(_BAD_ID)


def _integers(value: Any) -> Iterator[int]:
    """The integers in a value, whatever it is."""
    if type(value) is int:
        yield value
    elif isinstance(value, list | dict):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _integers(member)


# Out.


class JsonParts(list[bytes]):
    """A result that is JSON already: one short part, or several that are large enough not to be joined."""


def result(key: Id, value: Any) -> Sequence[bytes]:
    """The answer to a request that worked, in parts."""
    if type(value) is not JsonParts:
        text = encode(value)
    elif len(value) == 1:
        text = value[0]
    else:
        return (b'{"id":%b,"result":' % encode(key), *value, b"}")
    if type(key) is int:
        return (b'{"id":%d,"result":%b}' % (key, text),)
    return (b'{"id":%b,"result":%b}' % (encode(key), text),)


def around(key: Id) -> tuple[bytes, bytes]:
    """What comes before and behind a result that is sent piece by piece."""
    return b'{"id":%b,"result":' % encode(key), b"}"


def error(key: Id, code: int, message: str, data: Any = None) -> bytes:
    """The answer to a request that did not."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return b'{"error":%b,"id":%b}' % (encode(body), encode(key))


# Both.


class Incoming(msgspec.Struct, gc=False):
    """A message as a client reads it: an answer has an identifier, a notification a method."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorBody | None = None


@value
class Envelope:
    """How a dialect writes requests, answers and errors as JSON texts.

    Another envelope is another value of this class.
    """

    decode: Callable[[bytes], Message]
    """From the text of a message; raises ``Malformed``."""
    result: Callable[[Id, Any], Sequence[bytes]] = result
    """The answer to a request that succeeded, in parts."""
    around: Callable[[Id], tuple[bytes, bytes]] = around
    """The bytes before and after a result that is sent piece by piece."""
    error: Callable[[Id, int, str, Any], bytes] = error
    """The answer to a request that failed: identifier, code, message and data."""


STRICT = Envelope(decode)
"""Refuses a message in which any object has a key twice."""

LOOSE = Envelope(decode_loosely)
"""Lets the last of two equal keys win, except in the message itself."""


class LineTooLong(Exception):
    """A line goes over the limit; the stream cannot be read any further."""


class Lines:
    """Collects bytes, gives whole lines without their ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partial = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that ``data`` completes.

        Raises:
            LineTooLong: A line is longer than the limit, complete or not.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield self._line(data[start:end])
            start = end + 1
        self._partial += data[start:]
        if len(self._partial) > self._limit:
            self._partial.clear()
            raise LineTooLong

    def rest(self) -> bytes:
        """What came after the last line end, when the stream is at its end."""
        return self._line(b"")

    def _line(self, tail: bytes) -> bytes:
        line = bytes(self._partial) + tail if self._partial else tail
        self._partial.clear()
        if len(line) > self._limit:
            raise LineTooLong
        return line.removesuffix(b"\r")
