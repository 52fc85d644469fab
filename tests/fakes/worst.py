"""The worst legal messages of a method, made from the shape of its params.

Every member that can grow is grown in turn, as far as a message of so many bytes
lets it, by each way of being costly that its type allows: texts as long as
possible, lists and maps with as many members as possible, paths with as many
segments, patterns with as many wildcards.  What a member must make sense of
beyond being a text is found out by asking its own check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

from holdfast.dialects.dialect import ListedMethod

_UUID = "01234567-89ab-cdef-0123-456789abcdef"

_VALUES = 262_144
"""Values that a message may have; one with more is refused before anybody looks at it."""


@dataclass(frozen=True)
class Growth:
    """How far things grow, and where paths lead."""

    size: int
    """Bytes of a message, about."""
    root: str
    """The directory that no path leaves."""


@dataclass(frozen=True)
class Case:
    """One message: which member has grown, and how, and the params."""

    name: str
    params: Any


def cases(call: ListedMethod, ordinary: dict[str, Any] | None, growth: Growth) -> Iterator[Case]:
    """The worst messages of a method whose params are otherwise ``ordinary``."""
    yield Case("ordinary", ordinary)
    if call.params is None:
        return
    shape = inspect.type_info(call.params)
    assert isinstance(shape, inspect.StructType)
    for name, value in _grown(shape, ordinary, growth):
        yield Case(name, value)
    for name, value in _strange(growth):
        yield Case(f"unknown member {name}", {**(ordinary or {}), "strange": value})


def _strange(growth: Growth) -> Iterator[tuple[str, Any]]:
    """Members that nobody asked for are passed over, but they are read."""
    deep: Any = []
    for _ in range(120):
        deep = [deep]
    yield "deep", deep
    yield "many", [0] * min(growth.size // 2, _VALUES - 100)
    yield "long", "\u00e9\n" * (growth.size // 4)


def _grown(shape: inspect.Type, ordinary: Any, growth: Growth) -> Iterator[tuple[str, Any]]:
    """Names and values: one thing inside has grown, the rest is ordinary."""
    match shape:
        case inspect.Metadata(type=inner, extra=extra):
            check = (extra or {}).get("complain")
            if check is not None:
                yield from _texts_that_pass(check, growth)
            else:
                yield from _grown(inner, ordinary, growth)
        case inspect.UnionType(types=types):
            for each in types:
                yield from _grown(each, ordinary, growth)
        case inspect.StrType(pattern=pattern):
            yield from _paths(growth) if pattern == "^/" else _texts(growth.size)
        case inspect.IntType(ge=least, le=most):
            yield "most", most if most is not None else 2**64 - 1 if least == 0 else 2**63 - 1
            yield "digits", msgspec.Raw(b"9" * growth.size)
        case inspect.BoolType() | inspect.EnumType():
            # No longer legal, but read to its end: somebody has to say what is wrong with it.
            yield "wrong", "\x7f" * growth.size
        case inspect.ListType(item_type=item):
            yield from _lists(item, growth)
        case inspect.DictType(value_type=item):
            yield from _maps(item, growth)
        case inspect.StructType():
            yield from _structs(shape, ordinary, growth)


def _structs(shape: inspect.StructType, ordinary: Any, growth: Growth) -> Iterator[tuple[str, Any]]:
    plain = ordinary if isinstance(ordinary, dict) else _least(shape, growth)
    if shape.tag_field is not None and plain.get(shape.tag_field) != shape.tag:
        plain = _least(shape, growth)
    for field in shape.fields:
        given = plain.get(field.encode_name)
        for name, value in _grown(field.type, given, growth):
            yield f"{field.encode_name} {name}", {**plain, field.encode_name: value}


def _texts(size: int) -> Iterator[tuple[str, str]]:
    yield "long", "x" * size
    yield "escaped", "\\\n" * (size // 4)
    yield "wide", "\U0001f600" * (size // 4)
    yield "invisible", "\x7f" * size
    yield "stars", "*a" * (size // 2)
    yield "segments", "a/" * (size // 2)
    yield "up", "../" * (size // 3)


def _texts_that_pass(check: Callable[[str], str | None], growth: Growth) -> Iterator[tuple[str, str]]:
    if check(growth.root) is None:
        yield from _paths(growth)
    elif check("AAAA") is None:
        yield "base64", "AAA" + "A" * (growth.size // 4 * 4 + 1)
        yield "base64 that is none at its end", "A" * growth.size + "*"
    else:
        assert check(_UUID) is None, "a check that this knows nothing of"
        yield "uuid", "0" * growth.size


def _paths(growth: Growth) -> Iterator[tuple[str, str]]:
    root, size = growth.root, growth.size
    yield "long", root + "/" + "x" * size
    yield "segments", root + "/a" * (size // 2)
    yield "dots", root + "/." * (size // 2)
    yield "wide", root + "/" + "\U0001f600" * (size // 4)
    yield "uri long", "file://" + root + "/" + "x" * size
    yield "uri escaped", "file://" + root + "/" + "%FF" * (size // 3)
    yield "uri wide", "file://" + root + "/" + "\u00e9" * (size // 2)
    yield "uri dots", "file://" + root + "/%2e" * (size // 4)
    yield "uri blank", " " * size + "file://" + root


def _lists(item: inspect.Type, growth: Growth) -> Iterator[tuple[str, Any]]:
    least = _least(item, growth)
    count = _count(least, growth)
    yield "most", [least] * count
    yield "most, the last wrong", [*[least] * count, []]
    if isinstance(least, str) and not least.startswith("/"):
        yield "most different", [f"*{number}*" for number in range(_count("*12345*", growth))]
    if isinstance(least, str) and least.startswith("/"):
        yield "most different", [f"{growth.root}/{number}" for number in range(count)]
    for name, value in _grown(item, least, growth):
        yield f"one {name}", [value]
    for name, value in _grown(item, least, Growth(growth.size // 64, growth.root)):
        yield f"some {name}", [value] * 60


def _maps(item: inspect.Type, growth: Growth) -> Iterator[tuple[str, Any]]:
    least = _least(item, growth)
    count = _count(["A12345", least], growth)
    yield "most", {f"A{number}": least for number in range(count)}
    yield "most, the last wrong", {f"A{number}": least for number in range(count)} | {"B": []}
    yield "longest name", {"A" * growth.size: least}
    for name, value in _grown(item, least, growth):
        yield f"one {name}", {"A": value}


def _count(member: Any, growth: Growth) -> int:
    """How many fit into a message."""
    size = len(msgspec.json.encode(member)) + 1
    return min(growth.size // size, (_VALUES - 1000) // max(1, _values(member)))


def _values(member: Any) -> int:
    match member:
        case dict():
            return 1 + sum(map(_values, member.values()))
        case list():
            return 1 + sum(map(_values, member))
    return 1


def _least(shape: inspect.Type, growth: Growth) -> Any:
    """The smallest value that fits."""
    match shape:
        case inspect.Metadata(type=inner, extra=extra):
            check = (extra or {}).get("complain")
            if check is None:
                return _least(inner, growth)
            return next(text for text in (growth.root, "AAAA", _UUID) if check(text) is None)
        case inspect.UnionType(types=types):
            # Not null, if there is a choice: that would be the end of it.
            return _least(next(each for each in types if not isinstance(each, inspect.NoneType)), growth)
        case inspect.StrType(pattern=pattern):
            return growth.root if pattern == "^/" else "a"
        case inspect.BoolType():
            return False
        case inspect.IntType(ge=least):
            return least or 0
        case inspect.EnumType(cls=cls):
            return next(iter(cls)).value
        case inspect.ListType():
            return []
        case inspect.DictType():
            return {}
        case inspect.StructType():
            tag = {} if shape.tag_field is None else {shape.tag_field: shape.tag}
            return tag | {
                each.encode_name: _least(each.type, growth) for each in shape.fields if each.required
            }
    raise AssertionError(f"a type that this knows nothing of: {shape}")


# Ordinary params of every method: what is grown is grown in these.


def _exec_ordinary(root: str) -> dict[str, Any]:
    name = {"processId": "p"}
    path = {"path": f"{root}/f"}
    size = {"rows": 24, "cols": 80}
    options = {"maxDepth": 2, "maxDirectories": 9, "maxEntries": 9, "followDirectorySymlinks": False}
    return {
        "initialize": {"clientName": "x"},
        "session/takeOver": {"sessionId": "x"},
        "session/close": None,
        "environment/info": None,
        "environment/status": None,
        "process/start": {**name, "argv": ["echo"], "cwd": root, "env": {}, "tty": False},
        "process/restart": {**name, "newProcessId": "q"},
        "process/list": None,
        "process/find": {"name": "nobody"},
        "process/remove": name,
        "process/usage": {"names": ["p"]},
        "process/read": name,
        "process/ack": name,
        "process/wait": name,
        "process/inspect": name,
        "process/snapshot": name,
        "process/readRange": name,
        "process/waitFor": {**name, "output": "x"},
        "process/write": {**name, "chunk": "AAAA", "writeId": "w"},
        "process/closeStdin": name,
        "process/resize": {**name, "size": size},
        "process/signal": {**name, "signal": "interrupt"},
        "process/terminate": name,
        "events/subscribe": {},
        "events/unsubscribe": {},
        "fs/readFile": path,
        "fs/writeFile": {**path, "dataBase64": "AAAA"},
        "fs/createDirectory": {"path": f"{root}/d"},
        "fs/getMetadata": path,
        "fs/canonicalize": path,
        "fs/readDirectory": {"path": root},
        "fs/walk": {"path": root, "options": options},
        "fs/remove": {"path": f"{root}/gone"},
        "fs/copy": {"sourcePath": f"{root}/f", "destinationPath": f"{root}/g", "recursive": True},
        "fs/rename": {"sourcePath": f"{root}/f", "destinationPath": f"{root}/g"},
        "fs/archive": {"path": root, "handleId": "a"},
        "fs/extract": {"path": f"{root}/d", "handleId": "e"},
        "fs/open": {**path, "handleId": "h"},
        "fs/readBlock": {"handleId": "h", "offset": 0, "len": 9},
        "fs/writeBlock": {"handleId": "h", "offset": 0, "chunk": "AAAA"},
        "fs/close": {"handleId": "h"},
        "fs/watchMissing": {"watchId": 1, "missing": [f"{root}/none"]},
        "capabilityRoots/discoverV1": {"roots": [{"id": "r", "path": root}]},
        "capabilities/discoverV2": {"cwd": root},
        "environmentConfig/read": {"cwd": root, "configPaths": [["x"]], "requirementsPaths": []},
        # Nobody listens at this port, and nothing is sent anywhere else.
        "http/request": {"method": "GET", "url": "http://127.0.0.1:9/", "requestId": "r"},
    }


def _app_ordinary(root: str) -> dict[str, Any]:
    size = {"rows": 24, "cols": 80}
    return {
        "initialize": {"clientInfo": {"name": "x", "version": "1"}},
        "process/spawn": {"command": ["echo"], "processHandle": "p", "cwd": root},
        "process/writeStdin": {"processHandle": "p", "deltaBase64": "AAAA"},
        "process/resizePty": {"processHandle": "p", "size": size},
        "process/kill": {"processHandle": "p"},
        "command/exec": {"command": ["echo"], "processId": "p", "cwd": root},
        "command/exec/write": {"processId": "p", "deltaBase64": "AAAA"},
        "command/exec/resize": {"processId": "p", "size": size},
        "command/exec/terminate": {"processId": "p"},
    }


ORDINARY: dict[str, Callable[[str], dict[str, Any]]] = {"exec": _exec_ordinary, "app": _app_ordinary}
"""By endpoint: the params of its methods, given the directory that no path leaves."""


def has_digits(value: Any) -> bool:
    """Whether a number is in it that no decoder takes."""
    match value:
        case msgspec.Raw():
            return True
        case dict():
            return any(map(has_digits, value.values()))
        case list():
            return any(map(has_digits, value[:1]))
    return False
