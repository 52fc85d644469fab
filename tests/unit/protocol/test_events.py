"""Ends of processes, and gaps in their output, as members of a JSON object."""

from __future__ import annotations

import json
import signal as signals
from typing import Any

import pytest

from holdfast.model import Denied, Exit, Gap, Kind, Outcome, Page, Usage
from holdfast.protocol import events
from holdfast.protocol.processes import WireOutcome, WireUsage
from holdfast.sandbox import Denial
from holdfast.value import replace
from tests.fakes.dialects import exited

KILLED = Exit(
    137,
    Outcome(Kind.TIMEOUT, signal=9, by="limit", detail="more than 5 seconds"),
    usage=Usage(user_us=1_999, system_us=3_000, peak_bytes=4096),
    held_by=(7, 8),
)
WHY = {
    "kind": "timeout",
    "exitCode": None,
    "signal": "SIGKILL",
    "by": "limit",
    "detail": "more than 5 seconds",
}
BY_ITSELF = {"kind": "exit", "exitCode": 3, "signal": None, "by": None, "detail": None}


def members(text: bytes) -> dict[str, Any]:
    """What follows the first member of an object."""
    found: dict[str, Any] = json.loads(b'{"first":0' + text + b"}")
    del found["first"]
    return found


def test_a_client_that_knows_the_extensions_is_told_everything() -> None:
    assert members(events._exit(KILLED, extended=True)) == {
        "outcome": WHY,
        "usage": {"userMs": 1, "systemMs": 3, "maxRssBytes": 4096},
        "heldBy": [7, 8],
    }
    assert members(events._outcome(KILLED, extended=True)) == {"outcome": WHY}


def test_another_client_is_told_what_its_own_members_cannot_say() -> None:
    """That 137 was a timeout, and who holds the output open; what it cost is for those who ask."""
    assert members(events._exit(KILLED, extended=False)) == {"outcome": WHY, "heldBy": [7, 8]}
    assert members(events._outcome(KILLED, extended=False)) == {"outcome": WHY}


def test_an_end_by_itself_says_no_more_than_its_code() -> None:
    """To a client of the reference nothing at all is added."""
    plain = exited(3)

    assert events._exit(plain, extended=False) == events._outcome(plain, extended=False) == b""
    assert members(events._exit(plain, extended=True)) == {"outcome": BY_ITSELF}
    assert members(events._outcome(plain, extended=True)) == {"outcome": BY_ITSELF}


@pytest.mark.parametrize("kind", Kind)
def test_any_other_end_is_told_to_everybody(kind: Kind) -> None:
    found = members(events._outcome(Exit(1, Outcome(kind)), extended=False))

    assert found == (
        {}
        if kind is Kind.EXIT
        else {"outcome": {"kind": kind.value, "exitCode": None, "signal": None, "by": None, "detail": None}}
    )


def test_what_an_unknown_cost_is_is_left_out() -> None:
    lost = Exit(-1, Outcome(Kind.LOST, detail="its shim was killed"))

    assert members(events._exit(lost, extended=True)).keys() == {"outcome"}


@pytest.mark.parametrize("extended", [False, True])
def test_who_holds_the_output_of_one_that_ended_by_itself_is_told(*, extended: bool) -> None:
    """A client that waits for the close learns why it does not come."""
    held = Exit(0, Outcome(Kind.EXIT, 0), held_by=[5])

    assert members(events._exit(held, extended=extended))["heldBy"] == [5]


def test_output_that_was_dropped_is_told_if_there_was_any() -> None:
    ended = Exit(0, Outcome(Kind.EXIT, 0))

    assert members(events._exit(replace(ended, dropped=7), extended=True))["droppedBytes"] == 7
    assert "droppedBytes" not in members(events._exit(ended, extended=True))


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (None, None),
        (2, "SIGINT"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (24, "SIGXCPU"),
        (int(signals.SIGRTMIN), "SIGRTMIN"),
        (int(signals.SIGRTMIN) + 1, "SIGRTMIN+1"),
        (int(signals.SIGRTMAX) - 1, f"SIGRTMIN+{signals.SIGRTMAX - signals.SIGRTMIN - 1}"),
        (int(signals.SIGRTMAX), "SIGRTMAX"),
        (32, "SIG32"),
    ],
)
def test_a_signal_has_the_name_that_people_know(number: int | None, name: str | None) -> None:
    """Those that the C library keeps for itself have none."""
    assert events.outcome(Outcome(Kind.SIGNAL, signal=number)).signal == name


def test_an_outcome_keeps_all_its_facts() -> None:
    found = Outcome(Kind.TERMINATED, exit_code=0, signal=None, by="client", detail='a "quoted" é')

    assert events.outcome(found) == WireOutcome("terminated", 0, None, "client", 'a "quoted" é')
    assert members(events._outcome(Exit(0, found), extended=False))["outcome"]["detail"] == found.detail


@pytest.mark.parametrize(("micro", "milli"), [(0, 0), (999, 0), (1000, 1), (2**40, 2**40 // 1000)])
def test_time_used_is_told_in_whole_milliseconds(micro: int, milli: int) -> None:
    assert events.usage(Usage(micro, micro, 5)) == WireUsage(milli, milli, 5)


DENIALS = (Denial("open", "/a\udcff", 3), Denial("", "", 7))
LISTED = [{"op": "open", "path": "/a\ufffd", "count": 3}, {"op": "", "path": "", "count": 7}]


@pytest.mark.parametrize(
    ("denied", "plain", "more"),
    [
        (None, {"sandboxDenied": False}, {}),
        (Denied(failed=False, exact=True), {"sandboxDenied": False}, {"denial": "exact"}),
        (Denied(failed=True, exact=False), {"sandboxDenied": True}, {"denial": "guess"}),
        (
            Denied(failed=True, exact=True, denials=DENIALS),
            {"sandboxDenied": True, "denials": LISTED},
            {"denial": "exact"},
        ),
        (
            Denied(failed=False, exact=True, denials=DENIALS),
            {"sandboxDenied": False, "denials": LISTED},
            {"denial": "exact"},
        ),
    ],
)
def test_what_a_sandbox_has_to_do_with_an_end(
    denied: Denied | None, plain: dict[str, Any], more: dict[str, str]
) -> None:
    """Without one, and to a client of the reference, nothing is added."""
    end = Exit(1, Outcome(Kind.EXIT, 1), denied=denied)

    assert json.loads(b"{" + events._denied(end, extended=False) + b"}") == plain
    assert json.loads(b"{" + events._denied(end, extended=True) + b"}") == plain | more


@pytest.mark.parametrize("extended", [False, True])
def test_a_page_of_nothing_is_one_part_and_says_no_more_than_it_has_to(extended: bool) -> None:  # noqa: FBT001
    """Who has not ended was denied nothing yet; no gap is not told."""
    (text,) = events.page(Page([], 4, None, closed=False), extended=extended)

    assert [text] == events.nothing(4)
    assert json.loads(text) == {
        "chunks": [],
        "nextSeq": 4,
        "exited": False,
        "exitCode": None,
        "closed": False,
        "failure": None,
        "sandboxDenied": False,
    }


@pytest.mark.parametrize("size", [0, 70, 2**64 - 1, None])
def test_a_gap_is_told_with_its_bounds_and_its_size(size: int | None) -> None:
    assert members(events._gap(Gap(2, 9, size))) == {"gap": {"fromSeq": 2, "toSeq": 9, "bytes": size}}
