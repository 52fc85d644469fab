"""What the shapes of all dialects have in common."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.errors import BadRequest
from holdfast.protocol import base64
from holdfast.protocol.shapes import (
    I64,
    U16,
    U64,
    Base64Text,
    Nothing,
    Shape,
    Undecodable,
    Usize,
    camel,
    decoded,
)
from holdfast.wire.jsonrpc import Uploaded
from holdfast.wire.serde import Words


class Sample(Shape):
    wire_name = "WireSample"

    some_name: str
    port: U16 = 0
    small: I64 = 0
    large: U64 = 0
    size: Usize = 0


def test_a_shape_is_in_camel_case_on_the_wire() -> None:
    sample = decoded({"someName": "x", "port": 65_535, "small": -5}, Sample)

    assert sample == Sample("x", 65_535, -5)
    assert msgspec.json.encode(sample) == b'{"someName":"x","port":65535,"small":-5,"large":0,"size":0}'


def test_nothing_is_an_empty_object() -> None:
    assert msgspec.json.encode(Nothing()) == b"{}"


@pytest.mark.parametrize(
    ("value", "terse", "full"),
    [
        (1, "invalid type: number, expected struct WireSample", "integer `1`, expected struct WireSample"),
        ({}, "missing field `someName`", "missing field `someName`"),
        ({"port": 65_536}, "invalid number", "invalid value: integer `65536`, expected u16"),
        ({"size": -1}, "invalid number", "invalid value: integer `-1`, expected usize"),
        ({"large": 1.5}, "invalid number", "invalid type: floating point `1.5`, expected u64"),
        ({"small": "x"}, 'string "x", expected i64', 'invalid type: string "x", expected i64'),
    ],
)
def test_what_does_not_fit_is_told_as_fully_as_the_dialect_wants(
    value: object, terse: str, full: str
) -> None:
    """An error of its own kind, because the dialects give it different codes."""
    with pytest.raises(Undecodable) as first:
        decoded(value, Sample)
    with pytest.raises(Undecodable) as second:
        decoded(value, Sample, Words.FULL)

    assert str(first.value).endswith(terse)
    assert str(second.value).endswith(full)
    assert isinstance(first.value, BadRequest)


@pytest.mark.parametrize(
    ("name", "wire"), [("cwd", "cwd"), ("process_handle", "processHandle"), ("a_b_c", "aBC"), ("", "")]
)
def test_a_name_is_written_as_the_wire_has_it(name: str, wire: str) -> None:
    assert camel(name) == wire


class Bytes(Shape):
    wire_name = "WireBytes"

    some_name: str
    first_part: Base64Text = ""
    second_part: Base64Text | None = None


@pytest.mark.parametrize("member", ["firstPart", "secondPart"])
def test_what_was_decoded_with_its_message_is_not_decoded_again(member: str) -> None:
    """Most of the time for an upload went into doing it twice."""
    found = decoded(Uploaded({"someName": "x", member: "-"}, member, b"abc"), Bytes)

    given = {"firstPart": found.first_part, "secondPart": found.second_part}[member]
    data: object = given
    assert data == b"abc"
    assert base64.decode(given or "") == b"abc"
    assert found.some_name == "x"


def test_a_text_that_only_looks_like_base64_is_the_text_that_was_sent() -> None:
    found = decoded(Uploaded({"someName": "-"}, "someName", b"abc"), Bytes)

    assert found == Bytes("YWJj")


def test_of_an_upload_too_the_first_misfit_is_named() -> None:
    with pytest.raises(Undecodable, match="missing field `someName`"):
        decoded(Uploaded({}, "firstPart", b"abc"), Bytes)
