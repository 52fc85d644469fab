"""The part of YAML in which people describe skills."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.yaml import read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("# nothing\n\n", None),
        ("name: x", {"name": "x"}),
        ("a: one: two", {"a": "one: two"}),
        ("a: x # comment\nb: y#z", {"a": "x", "b": "y#z"}),
        ("a: first\n  second # c\n  third\nb: 5", {"a": "first second third", "b": "5"}),
        ("a: 'it''s'\nb: \"x\\n\\u00e9\\\"\" # c", {"a": "it's", "b": 'x\n\u00e9"'}),
        ("a: \"quoted\" and more\nb: 'open", {"a": '"quoted" and more', "b": "'open"}),
        ("a: >\n  one\n  two\n\n  three\nb: |\n  x\n    y\nc: |-\n  z", {
            "a": "one two\n\nthree\n", "b": "x\n  y\n", "c": "z"}),
        ("a:\nb: ~\nc: null # c\nd: # c\n  e: f", {"a": None, "b": None, "c": None, "d": {"e": "f"}}),
        ("a:\n- x\n- y: 1\n  z: 2\n-\n  - q", {"a": ["x", {"y": "1", "z": "2"}, ["q"]]}),
        ("a: [x, 'y', {z: 1, \"q\": []}] # c\nb: {}", {"a": ["x", "y", {"z": "1", "q": []}], "b": {}}),
        ("a: [x,\n  y]", {"a": ["x", "y"]}),
        ("a: [open\nb: [x] y\nc: {x}", {"a": "[open", "b": "[x] y", "c": "{x}"}),
        ("'a b': 1\n\"c\": 2\nurl: http://x/y", {"a b": "1", "c": "2", "url": "http://x/y"}),
        ("a: b\r\nc: d\r\n", {"a": "b", "c": "d"}),
        ("- a\n- b", ["a", "b"]),
    ],
)  # fmt: skip
def test_what_people_write_is_read(text: str, expected: Any) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: &x y",
        'a: "\\ud800"',
        "a: *x",
        "a: !!str 5",
        "a: 1\n  b",
        "a: 1\nb",
        "\ta: 1",
        "- a\nb: c",
        "a: b\n - c: d",
        "- " * 100 + "x",
        "".join(f"{' ' * depth}a:\n" for depth in range(50)),
    ],
)
def test_what_is_not_read_is_an_error_or_a_text(text: str) -> None:
    """Nothing is made up: a value that is not understood is none, or stands there as it was written."""
    try:
        found = read(text)
    except ValueError:
        return
    assert found in ({"a": "1 b"}, {"a": "b - c: d"})


@given(st.text(alphabet="ab:- \n\"'[]{},#|>&\\\t~", max_size=60))
def test_every_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        read(text)


@pytest.mark.parametrize("piece", [" ", "a ", '"', "'", "\\", "#", "[", "{a: ", "x,", ": ", "- ", "\n", "\t"])
@pytest.mark.parametrize("before", ["a", "a: b", "a: [", 'a: "', "a: {"])
def test_no_text_takes_long(before: str, piece: str) -> None:
    """The time is bounded by that of the whole test: a slow expression would take hours."""
    with contextlib.suppress(ValueError):
        read(before + piece * 200_000 + "!")
