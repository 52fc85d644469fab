"""The shapes of the exec dialect: what is taken, and the words for what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.dialects.exec.decoding import DecodedWrite, decode_unit, decode_write
from holdfast.errors import BadRequest
from tests.fakes.exec_params import (
    FOUND,
    READ,
    RESIZE,
    SHAPES,
    SIGNAL,
    START,
    TAKE_OVER,
    WRITE,
    complaint,
)

THREAD = '{"threadId":"5f0c0000-0000-4000-8000-000000000000"}'

# Shape, a good value, field, what it expects, and which JSON values it takes.
FIELDS = [
    ("initialize", {"clientName": "o"}, "clientName", "a string", ['"x"']),
    ("initialize", {"clientName": "o"}, "resumeSessionId", "a string", ['"x"', "null"]),
    ("start", START, "processId", "a string", ['"x"']),
    ("start", START, "argv", "a sequence", ["[]"]),
    ("start", START, "env", "a map", ["{}"]),
    ("start", START, "tty", "a boolean", ["true", "false"]),
    ("start", START, "pipeStdin", "a boolean", ["true", "false"]),
    ("start", START, "arg0", "a string", ['"x"', "null"]),
    ("start", START, "enforceManagedNetwork", "a boolean", ["true", "false"]),
    ("start", START, "metadata", "struct ExecMetadata", ["null", "{}", THREAD]),
    ("start", START, "managedNetwork", "struct ManagedNetworkSandboxContext", ["null", "{}"]),
    ("read", READ, "processId", "a string", ['"x"']),
    ("write", WRITE, "processId", "a string", ['"x"']),
    ("write", WRITE, "writeId", "a string", ['"x"', "null"]),
    ("signal", SIGNAL, "processId", "a string", ['"x"']),
    ("terminate", READ, "processId", "a string", ['"x"']),
    ("start", START, "idempotent", "a boolean", ["true", "false"]),
    ("start", START, "keep", "a boolean", ["true", "false"]),
    ("start", START, "limits", "struct ResourceLimits", ["null", "{}"]),
    ("signal", SIGNAL, "tree", "a boolean", ["true", "false", "null"]),
    ("wait", READ, "processId", "a string", ['"x"']),
    ("readRange", READ, "processId", "a string", ['"x"']),
    ("snapshot", READ, "processId", "a string", ['"x"']),
    ("closeStdin", READ, "processId", "a string", ['"x"']),
    ("closeStdin", READ, "writeId", "a string", ['"x"', "null"]),
    ("resize", RESIZE, "processId", "a string", ['"x"']),
    ("takeOver", TAKE_OVER, "sessionId", "a string", ['"x"']),
    ("takeOver", TAKE_OVER, "clientName", "a string", ['"x"']),
]


@pytest.mark.parametrize(
    ("shape", "good", "field", "expected", "value"),
    [
        (shape, good, field, expected, value)
        for shape, good, field, expected, taken in FIELDS
        for value in FOUND
        if value not in taken
    ],
)
def test_a_value_of_a_wrong_type_is_named_with_what_was_expected(
    shape: str, good: dict[str, Any], field: str, expected: str, value: str
) -> None:
    given = {**good, field: json.loads(value)}

    assert complaint(shape, given) == f"invalid type: {FOUND[value]}, expected {expected}"


@pytest.mark.parametrize(
    ("shape", "good", "field", "value"),
    [(shape, good, field, value) for shape, good, field, _, taken in FIELDS for value in taken],
)
def test_a_value_of_the_right_type_is_taken(shape: str, good: dict[str, Any], field: str, value: str) -> None:
    SHAPES[shape][1]({**good, field: json.loads(value), "unknown": {"x": [1]}})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("value", ["null", "1", "true", '"x"', "[]"])
def test_params_are_a_struct_by_name(shape: str, value: str) -> None:
    """Absent params count as null.  The order of members in an array is nothing to rely on."""
    words = f"invalid type: {FOUND[value]}, expected struct {SHAPES[shape][0]}"

    assert complaint(shape, json.loads(value)) == words


@pytest.mark.parametrize(
    ("shape", "value", "field"),
    [
        ("initialize", {}, "clientName"),
        ("initialize", {"client_name": "o"}, "clientName"),
        ("start", {}, "processId"),
        ("start", {"process_id": "q"}, "processId"),
        ("start", {"processId": "a"}, "argv"),
        ("start", {"tty": False}, "processId"),
        ("start", {"processId": "a", "argv": ["x"]}, "cwd"),
        ("start", {"processId": "a", "argv": ["x"], "tty": False}, "cwd"),
        ("start", {"argv": ["x"], "env": {}}, "processId"),
        ("start", {"cwd": "file://h/x"}, "processId"),
        ("start", {k: v for k, v in START.items() if k != "env"}, "env"),
        ("start", {k: v for k, v in START.items() if k != "tty"}, "tty"),
        ("start", {**START, "envPolicy": {}}, "inherit"),
        ("read", {}, "processId"),
        ("write", {}, "processId"),
        ("write", {"processId": "p"}, "chunk"),
        ("signal", {}, "processId"),
        ("signal", {"processId": "p"}, "signal"),
        ("terminate", {}, "processId"),
        ("start", {**START, "size": {}}, "rows"),
        ("start", {**START, "size": {"rows": 1}}, "cols"),
        ("wait", {}, "processId"),
        ("closeStdin", {}, "processId"),
        ("resize", {}, "processId"),
        ("resize", {"processId": "p"}, "size"),
        ("resize", {"processId": "p", "size": {"cols": 1}}, "rows"),
        ("takeOver", {}, "sessionId"),
        ("takeOver", {"session_id": "s"}, "sessionId"),
    ],
)
def test_the_first_missing_field_is_named(shape: str, value: dict[str, Any], field: str) -> None:
    assert complaint(shape, value) == f"missing field `{field}`"


@pytest.mark.parametrize(
    ("shape", "text", "words"),
    [
        ("start", '{"tty":1,"processId":1}', "invalid type: number, expected a boolean"),
        ("start", '{"processId":1,"tty":1}', "invalid type: number, expected a string"),
        ("start", '{"env":1,"argv":1}', "invalid type: number, expected a map"),
        ("start", '{"argv":1,"env":1}', "invalid type: number, expected a sequence"),
        ("start", '{"zz":1,"tty":1}', "invalid type: number, expected a boolean"),
        ("start", '{"cwd":"x"}', "invalid URI: relative URL without a base"),
        ("start", '{"tty":1,"cwd":"x"}', "invalid type: number, expected a boolean"),
        ("start", '{"env":{"A":1},"tty":1}', "invalid type: number, expected a string"),
        ("write", '{"writeId":1,"chunk":"!!"}', "invalid type: number, expected a string"),
        ("write", '{"chunk":"!!","writeId":1}', "Invalid symbol 33, offset 0."),
        ("write", '{"processId":"zz","chunk":"!!","writeId":""}', "Invalid symbol 33, offset 0."),
    ],
)
def test_the_first_misfit_of_the_text_wins_over_what_is_missing(shape: str, text: str, words: str) -> None:
    """A path that is none and a base64 that is none count as misfits of their members."""
    assert complaint(shape, json.loads(text)) == words


@pytest.mark.parametrize("value", ["1", "true", "false", '"x"', "[]", "[1]"])
def test_a_method_without_params_takes_none(value: str) -> None:
    found = "sequence" if value == "[1]" else FOUND[value]

    with pytest.raises(BadRequest) as caught:
        decode_unit(json.loads(value))

    assert str(caught.value) == f"invalid type: {found}, expected unit"


def test_no_params_may_be_written_in_three_ways() -> None:
    decode_unit(None)
    decode_unit({})
    with pytest.raises(BadRequest, match=r"^invalid type: map, expected unit$"):
        decode_unit({"a": 1})


# What comes out.


def test_a_write_is_read_with_its_bytes() -> None:
    assert decode_write(WRITE) == DecodedWrite("p", b"a", "w")
