"""The envelope under arbitrary bytes, against a slow model of its limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.wire import jsonrpc
from holdfast.wire import serde_json as scanning
from holdfast.wire.jsonrpc import Malformed
from holdfast.wire.serde_json import MOST_NESTED, MOST_VALUES, scan
from tests.fakes.backends import LONG
from tests.fakes.effort import effort

pytestmark = pytest.mark.slow

keys = st.sampled_from(["id", "method", "params", "result", "error", "trace", "a", "é", "", 'q"', "\n"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
valid = st.fixed_dictionaries(
    {"id": st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5), "method": st.text(max_size=8)},
    optional={"params": values, "trace": st.none() | st.just({"traceparent": "x"}), "extra": values},
)


def verdict(text: bytes) -> str:
    """``message``, or the words of the refusal.  Anything else that is raised fails the test."""
    try:
        jsonrpc.decode(text)
    except Malformed as malformed:
        return str(malformed)
    return "message"


@given(text=st.binary(max_size=120))
@effort(200)
@example(b'"\xff"')
@example(b'{"id":1,"method":"\xff"}')
@example(b"-.5")
@example(b"1" * 5000)
@example(b'{"id":' + b"9" * 5000 + b',"method":"x"}')
def test_arbitrary_bytes_are_a_message_or_malformed(text: bytes) -> None:
    """A client must not be able to reach an internal error with what is not even a message."""
    verdict(text)


json_like = st.lists(
    st.sampled_from(
        [
            *(
                b"{",
                b"}",
                b"[",
                b"]",
                b",",
                b":",
                b'"',
                b'"a"',
                b'"id"',
                b'"method"',
                b'"error"',
                b'"result"',
            ),
            *(b"\\", b"\\u00", b"\\ud800", b"\xc3", b"\xa9", b" ", b"\n"),
            *(b"1", b"0", b"-", b".", b"e", b"null", b"true"),
        ]
    ),
    max_size=40,
).map(b"".join)


@given(text=json_like)
@effort(250)
def test_pieces_of_json_are_a_message_or_malformed(text: bytes) -> None:
    verdict(text)


@given(message=valid)
@effort(200)
def test_a_valid_message_is_read_whatever_it_carries(message: dict[str, Any]) -> None:
    """Written in two ways, of which one is not what our own encoder would write."""
    compact = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
    spaced = json.dumps(message, indent=1).encode()

    assert verdict(compact) == "message"
    assert jsonrpc.decode(compact) == jsonrpc.decode(spaced)


@given(message=valid, at=st.integers(0, 10_000), change=st.binary(max_size=3), cut=st.integers(0, 3))
@effort(250)
def test_a_damaged_message_is_a_message_or_malformed(
    message: dict[str, Any], at: int, change: bytes, cut: int
) -> None:
    text = json.dumps(message).encode()
    at %= len(text) + 1

    verdict(text[:at] + change + text[at + cut :])


# Duplicates, nesting and numbers of values, against a slow model.


class Repeated(Exception):
    """An object has the same key twice."""


def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Repeated
    return found


def model(text: bytes, most: int = MOST_VALUES) -> str:
    """What the limits say about a text that is JSON."""
    try:
        tree = json.loads(text, object_pairs_hook=no_repeats)
    except Repeated:
        return "duplicate"
    if depth(tree) > MOST_NESTED:
        return "nesting"
    return "values" if count(tree) > most else "fine"


def members(tree: Any) -> list[Any]:
    return list(tree.values()) if isinstance(tree, dict) else tree if isinstance(tree, list) else []


def depth(tree: Any) -> int:
    return 1 + max(map(depth, members(tree)), default=0) if isinstance(tree, dict | list) else 0


def count(tree: Any) -> int:
    return 1 + sum(map(count, members(tree)))


WORDS = {"duplicate JSON": "duplicate", "recursion limit": "nesting", "JSON-RPC message exceeds": "values"}


def judged(words: str) -> str:
    return next((name for start, name in WORDS.items() if words.startswith(start)), "fine")


def write(tree: Any, draw: st.DrawFn) -> str:
    """JSON text of ``tree`` in which a key of an object may come twice, perhaps escaped."""
    if isinstance(tree, list):
        return "[" + ",".join(write(member, draw) for member in tree) + "]"
    if not isinstance(tree, dict):
        return json.dumps(tree)
    pairs = [(json.dumps(name), write(member, draw)) for name, member in tree.items()]
    if pairs and draw(st.integers(0, 5)) == 0:
        name = draw(st.sampled_from(list(tree)))
        escaped = '"' + "".join(f"\\u{ord(char):04x}" for char in name) + '"'
        pairs.append((draw(st.sampled_from([json.dumps(name), escaped])), '"again"'))
    return "{" + ",".join(f"{name}:{member}" for name, member in pairs) + "}"


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    text = write(draw(valid), draw)
    deep = draw(st.sampled_from([0, 0, 100, 122, 125, 126, 127, 128, 300]))
    filler = ',"filler":"' + "x" * draw(st.sampled_from([0, 300])) + '"'
    return f'{text[:-1]}{filler},"deep":{"[" * deep}1{"]" * deep}}}'.encode()


@given(text=documents())
@effort(200)
def test_repeats_and_nesting_are_found_as_by_the_model(text: bytes) -> None:
    """The fast way must not let through what the slow one would refuse, nor refuse anything else."""
    words = verdict(text)

    assert judged(words) == model(text)
    if judged(words) == "fine":
        assert words == "message"
        assert scan(text) == len(text)


@pytest.mark.timeout(60)  # Measuring coverage makes it ten times slower.
@pytest.mark.parametrize("most", [3000, *([MOST_VALUES] if LONG else [])])
@pytest.mark.parametrize("element", [b'{"a":1}', b'"\\n"'])
@pytest.mark.parametrize("over", [0, 1])
def test_numbers_of_values_are_found_as_by_the_model(
    element: bytes, over: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (jsonrpc, scanning):
        monkeypatch.setattr(module, "MOST_VALUES", most)
    each = count(json.loads(element))
    room = most - 3
    elements = [element] * (room // each) + [b"1"] * (room % each + over)
    text = b'{"method":"x","params":[' + b",".join(elements) + b"]}"

    assert judged(verdict(text)) == model(text, most) == ("values" if over else "fine")
