"""Numbers, sizes and signals in params of the exec dialect: the least, the greatest, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.errors import BadRequest
from holdfast.protocol import processes as m
from holdfast.protocol.shapes import decoded
from tests.fakes.exec_params import FOUND, READ, RESIZE, SHAPES, START, TAKE_OVER, complaint

NUMBERS = [
    "-1",
    "-0.0",
    "1.0",
    "1.5",
    "1e1",
    "1E0",
    "0e0",
    "18446744073709551616",
    "100000000000000000000000",
]


LARGE = {"18446744073709551616", "100000000000000000000000"}


def placed(path: str, value: Any) -> Any:
    """The value at ``a.b`` of an otherwise empty object."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


COUNTS = [
    ("initialize", {"clientName": "o"}, "holdfast", "u64"),
    ("takeOver", TAKE_OVER, "holdfast", "u64"),
    *[
        ("start", START, field, "u64")
        for field in (
            *("timeoutMs", "idleTimeoutMs", "graceMs", "drainMs", "retainBytes", "outputBytesLimit"),
            "window",
            *("limits.memoryBytes", "limits.cpuSeconds", "limits.processes", "limits.openFiles"),
        )
    ],
    ("read", READ, "afterSeq", "u64"),
    ("read", READ, "maxBytes", "usize"),
    ("read", READ, "waitMs", "u64"),
    ("terminate", READ, "graceMs", "u64"),
    ("wait", READ, "waitMs", "u64"),
]
"""Shape, a good value, and what may be null or an unsigned integer of 64 bits."""


@pytest.mark.parametrize(("shape", "good", "field", "kind"), COUNTS)
def test_a_count_is_an_unsigned_integer_or_null(
    shape: str, good: dict[str, Any], field: str, kind: str
) -> None:
    for number in NUMBERS:
        if number not in LARGE:
            given = {**good, **placed(field, json.loads(number))}
            assert complaint(shape, given) == "invalid number"
    for value in ('"x"', "true", "[]", "{}"):
        words = f"invalid type: {FOUND[value]}, expected {kind}"
        assert complaint(shape, {**good, **placed(field, json.loads(value))}) == words
    for right in (0, 1, 2**63, 2**64 - 1, None):
        SHAPES[shape][1]({**good, **placed(field, right)})


@pytest.mark.parametrize(("shape", "good", "field", "kind"), COUNTS)
def test_a_count_of_more_than_64_bits_is_refused(
    shape: str, good: dict[str, Any], field: str, kind: str
) -> None:
    """The schema says so, and clients in other languages cannot hold one."""
    for number in LARGE:
        assert complaint(shape, {**good, **placed(field, json.loads(number))}) == "invalid number"


@pytest.mark.parametrize("value", [-1, 1.5, 2**64, "1", True, [], {}])
def test_an_acknowledged_number_is_an_unsigned_integer_or_null(value: Any) -> None:
    with pytest.raises(BadRequest):
        decoded({"processId": "p", "seq": value}, m.AckParams)


def test_an_acknowledgement_needs_a_process_and_nothing_else() -> None:
    least = decoded({"processId": "p"}, m.AckParams)
    most = decoded({"processId": "p", "seq": 2**64 - 1, "release": True, "else": 1}, m.AckParams)

    assert least == decoded({"processId": "p", "seq": None, "release": False}, m.AckParams)
    assert (most.seq, most.release) == (2**64 - 1, True)


@pytest.mark.parametrize(
    ("shape", "good"),
    [("start", {**START, "tty": True}), ("resize", RESIZE)],
)
@pytest.mark.parametrize("member", ["rows", "cols"])
def test_a_side_of_a_terminal_is_an_unsigned_integer_of_16_bits(
    shape: str, good: dict[str, Any], member: str
) -> None:
    """As wide as the kernel's own; whether 0 makes sense is not a matter of form."""
    size = {"rows": 1, "cols": 1}
    for number in (*NUMBERS, "65536"):
        given = {**good, "size": {**size, member: json.loads(number)}}
        assert complaint(shape, given) == "invalid number"
    for value in ('"x"', "true", "[]", "{}", "null"):
        words = f"invalid type: {FOUND[value]}, expected u16"
        assert complaint(shape, {**good, "size": {**size, member: json.loads(value)}}) == words
    for right in (0, 1, 65_535):
        SHAPES[shape][1]({**good, "size": {**size, member: right}})


@pytest.mark.parametrize(
    ("shape", "good", "taken"), [("start", {**START, "tty": True}, ["null"]), ("resize", RESIZE, [])]
)
def test_a_size_has_two_sides(shape: str, good: dict[str, Any], taken: list[str]) -> None:
    for value in ("1", "true", '"x"', "[]", "null"):
        if value not in taken:
            words = f"invalid type: {FOUND[value]}, expected struct TerminalSize"
            assert complaint(shape, {**good, "size": json.loads(value)}) == words


SIGNALS = ["interrupt", "terminate", "kill", "hangup", "quit", "user1", "user2", "stop", "continue"]
ONE_SIGNAL = "expected one of " + ", ".join(f"`{name}`" for name in SIGNALS)


@pytest.mark.parametrize(
    ("signal", "words"),
    [
        *[(name, f"unknown variant `{name}`, {ONE_SIGNAL}") for name in ("INTERRUPT", "SIGINT", "2", "")],
        (2, "invalid type: number, expected string or map"),
        (None, "invalid type: null, expected string or map"),
        (True, "invalid type: boolean `true`, expected string or map"),
        (["interrupt"], "invalid type: sequence, expected string or map"),
    ],
)
def test_a_signal_has_one_of_a_few_names(signal: Any, words: str) -> None:
    assert complaint("signal", {"processId": "p", "signal": signal}) == words


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_can_be_named(name: str) -> None:
    """Who may use which is decided where the client is known."""
    params = decoded({"processId": "p", "signal": name}, m.SignalParams)

    assert params == m.SignalParams("p", m.SignalName(name), None)
