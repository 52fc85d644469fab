"""What processes use, on the wire."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.model import CurrentUsage
from holdfast.protocol.usage import MeasuredUsage, UsageParams, UsageResult, read_usage, told
from holdfast.value import replace


def test_what_is_told_is_read_again() -> None:
    """In milliseconds, which is finer than the kernel counts processor time."""
    found = CurrentUsage("web", "p", 1_234_000, resident_bytes=4096, processes=2, output_bytes=7, age=0.25)
    unnamed = replace(found, name="p")

    assert told(found) == MeasuredUsage("p", 1234, 4096, 2, 7, 250, "web")
    assert told(unnamed) == MeasuredUsage("p", 1234, 4096, 2, 7, 250)
    assert [read_usage(told(each)) for each in (found, unnamed)] == [found, unnamed]


def test_nothing_has_to_be_asked_for_by_name() -> None:
    assert msgspec.json.decode(b"{}", type=UsageParams).names is None
    assert msgspec.json.decode(b'{"names":["a"]}', type=UsageParams).names == ["a"]


@pytest.mark.parametrize(
    "member", ["cpuMs", "residentBytes", "processes", "outputBytes", "ageMs"], ids=lambda member: member
)
def test_a_figure_that_no_machine_has_is_refused(member: str) -> None:
    """A client that computes with it would fail where nobody expects it."""
    members = dict.fromkeys(("cpuMs", "residentBytes", "processes", "outputBytes", "ageMs"), 1)
    sent = msgspec.json.encode({"processes": [{"processId": "p", **members, member: 2**64}]})

    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(sent, type=UsageResult)
