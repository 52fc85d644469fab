"""The envelope of messages, against Python's own reader of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Malformed, Message, Request, Response
from holdfast.wire.serde_json import MOST_NESTED, scan

from .draw import Draw, is_tellable

SEEDS = (
    b'{"id":1,"method":"x","params":{"a":[1,2.5,null,true,"\xc3\xa9"]}}',
    b'{"id":"a","method":"x","trace":{"traceparent":"t"},"params":{"a":1,"a":2}}',
    b'{"method":"x","params":[]} x',
    b'{"id":1,"result":{"x":"\\u00e9\\ud83d\\ude00\\n"}}',
    b'{"id":-1,"error":{"code":-32600,"message":"m","data":[{}]}}',
    b'{"id":18446744073709551616,"method":"x"}',
    b'{"id":1,"method":"x","params":1e400,"p":-0,"q":-0.0,"r":1E+2}',
    b'{"id":1,"id":2,"method":"x"}',
    b'{"i\\u0064":1,"id":2,"method":"x"}',
    b'{"id":1,"method":"\\ud800"}',
    b"true40",
    b"[" * 130 + b"]" * 130,
    b'{"id":1,"method":"x","params":' + b'[{"a":' * 63 + b"1" + b"}]" * 63 + b"}",
)
DICTIONARY = (
    *(
        '"id"',
        '"method"',
        '"params"',
        '"result"',
        '"error"',
        '"trace"',
        '"code"',
        '"message"',
        '"traceparent"',
    ),
    *(
        "null",
        "true",
        "false",
        "\\ud83d",
        "\\ude00",
        "\\u0000",
        "1e5",
        "-0",
        "[[[[",
        "]]]]",
        '{"a":',
        '":"',
        '","',
    ),
)


class Refused(Exception):
    """Python would not read it either, or not as strictly as we do."""


class Repeated(Refused):
    """An object has the same key twice."""


def _pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise Repeated
    return found


def _refuse(constant: str) -> Any:
    raise Refused(constant)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 1000 else float(digits)


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_pairs if strict else None, parse_constant=_refuse, parse_int=_integer
    )


STRICT, LOOSE = _decoder(strict=True), _decoder(strict=False)
BLANK = " \t\n\r"


def model(text: bytes, decoder: json.JSONDecoder) -> tuple[Any, int]:
    """The first value of ``text``, and where it ends.

    Raises:
        Refused: There is none.
    """
    try:
        words = text.decode()
    except UnicodeDecodeError as error:
        words = text[: error.start].decode()  # A fault behind the value is not the value's.
    start = len(words) - len(words.lstrip(BLANK))
    try:
        tree, end = decoder.raw_decode(words, start)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(str(error)) from None
    if type(tree) in (int, float) and _goes_on(words[start:end], words[end : end + 1]):
        raise Refused("half a number")
    if depth(tree) > MOST_NESTED:
        raise Refused("nested too deeply")
    try:
        repr(tree).encode()
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused("half a character") from None
    return tree, len(words[:end].encode())


def _goes_on(number: str, behind: str) -> bool:
    """Whether Python has stopped in front of what would make it no number."""
    marks = set(number) & set(".eE")
    return (
        behind.isdigit() or (behind == "." and not marks) or (behind in ("e", "E") and not marks & set("eE"))
    )


def depth(tree: Any) -> int:
    members = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else None
    return 0 if members is None else 1 + max(map(depth, members), default=0)


def _verdict(decode: Callable[[bytes], Message], text: bytes) -> Message | str:
    try:
        return decode(text)
    except Malformed as malformed:
        words = str(malformed)
        assert len(words) <= 8 * len(text) + 200
        assert is_tellable(words)
        told = jsonrpc.decode(jsonrpc.error(jsonrpc.UNPARSED, -32600, words))
        assert isinstance(told, Response)
        assert told.error is not None
        assert told.error.message == words
        return words


def _same(message: Message, tree: Any) -> bool:
    """Whether a message is what the tree says, to the last digit."""
    match message:
        case Request(id=key, method=method, params=params):
            told = {"id": key, "method": method, "params": params}
        case Response(id=key, result=result, error=None):
            told = {"id": key, "result": result}
        case Response(id=key, error=body):
            assert body is not None
            return repr((key, body.code, body.message)) == repr(
                (tree["id"], tree["error"]["code"], tree["error"]["message"])
            )
        case _:
            told = {"method": message.method, "params": message.params}
    return repr(told) == repr({name: tree.get(name) for name in told})


def check(data: bytes) -> None:
    """A message is what Python reads, or refused for a reason that Python sees too."""
    found = _verdict(jsonrpc.decode, data)
    try:
        tree, end = model(data, STRICT)
    except Refused:
        assert isinstance(found, str)
        assert " at line " in found
        return
    behind = bool(data[end:].strip(BLANK.encode()))
    if isinstance(found, str):
        # A misfit is named before what follows the value.
        assert (" at line " in found) <= behind
        assert "recursion limit" not in found
        assert "duplicate" not in found
    else:
        assert not behind
        assert _is_long(data) or _same(found, tree)


def check_loosely(data: bytes) -> None:
    """The same for dialects that let the last of two equal keys win, except in the message itself."""
    found = _verdict(jsonrpc.decode_loosely, data)
    try:
        tree, end = model(data, LOOSE)
    except Refused:
        assert isinstance(found, str)
        return
    if isinstance(found, str):
        return
    assert not data[end:].strip(BLANK.encode())
    assert _is_long(data) or _same(found, tree)
    strictly = _verdict(jsonrpc.decode, data)
    if not isinstance(strictly, str):
        assert _is_long(data) or repr(strictly) == repr(found)


def check_scan(data: bytes) -> None:
    """The slow reader finds a value exactly where Python finds one."""
    try:
        end = scan(data)
    except Malformed as malformed:
        line, column = map(int, re.findall(r"\d+", str(malformed).rpartition(" at line ")[2]))
        assert 1 <= line <= data.count(b"\n") + 1
        assert 0 <= column <= len(data) + 1
        end = -1
    try:
        _, expected = model(data, STRICT)
    except Refused:
        expected = -1
    assert end == expected


def _is_long(data: bytes) -> bool:
    """Whether there are numbers of so many digits that nobody promises to keep them all."""
    return re.search(rb"[0-9]{600}", data) is not None


def check_tree(data: bytes) -> None:
    """Whatever JSON a message carries, written in any way, it is read."""
    draw = Draw(data)
    ways: tuple[dict[str, Any], ...] = ({"separators": (",", ":"), "ensure_ascii": False}, {}, {"indent": 1})
    way = draw.pick(ways)
    message = {"id": draw.number(), "method": draw.text(), "params": draw.value(), draw.text(): draw.value()}
    text = json.dumps(message, **way).encode()
    check(text)
    check_loosely(text)
    check_scan(text)
    cut = draw.below(len(text) + 1)
    damaged = text[:cut] + draw.some(3) + text[cut + draw.below(3) :]
    check(damaged)
    check_loosely(damaged)
