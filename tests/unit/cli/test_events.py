"""What happens to processes, as ``events`` prints it; ``tests/system/test_cli_events.py`` has the rest."""

from __future__ import annotations

import time

import pytest

from holdfast.cli.events import _end_of, event_document, event_line
from holdfast.cli.report import Failure
from holdfast.model import Kind, Listing, Outcome, ProcessState, Usage
from holdfast.process_events import EventKind, ProcessEvent
from tests.fakes.terminal import Call

AT = time.mktime((2026, 11, 20, 10, 41, 2, 0, 0, -1))
TIMEOUT = Outcome(Kind.TIMEOUT, None, 9, "limit")


def event(kind: EventKind, **more: object) -> ProcessEvent:
    return ProcessEvent(7, kind, AT, "1dent", "web", 33, **more)  # type: ignore[arg-type]


def listing(state: ProcessState, outcome: Outcome | None = None, code: int | None = None) -> Listing:
    return Listing(
        name="web",
        identifier="1dent",
        pid=33,
        argv=["x"],
        cwd="/",
        terminal=False,
        started=AT,
        state=state,
        exit_code=code,
        outcome=outcome,
        next_seq=1,
        retained=0,
    )


RUNS = listing(ProcessState.RUNNING)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (event(EventKind.STARTED, argv=["sh", "-c", "a b"]), "started    web  pid 33  sh -c 'a b'"),
        (event(EventKind.WAITING), "waiting    web"),
        (event(EventKind.RESUMED), "resumed    web"),
        (event(EventKind.EXITED, exit_code=3, outcome=Outcome(Kind.EXIT, 3)), "exited     web  exit 3"),
        (event(EventKind.EXITED, exit_code=137, outcome=TIMEOUT), "exited     web  timeout"),
        (event(EventKind.FORGOTTEN), "forgotten  web"),
        (ProcessEvent(7, EventKind.GAP, AT), "gap        events are missing"),
        (
            ProcessEvent(7, EventKind.GAP, AT, lost=2, processes=[RUNS]),
            "gap        2 events missing; processes that run now: 1",
        ),
    ],
)
def test_an_event_is_a_line(told: ProcessEvent, line: str) -> None:
    assert event_line(told) == f"10:41:02  {line}"


def test_a_name_cannot_control_the_terminal() -> None:
    told = ProcessEvent(7, EventKind.STARTED, AT, "p", "we\x1b[2Jb", 33, argv=["\n"])

    assert event_line(told).endswith(r"we\x1b[2Jb  pid 33  '\n'")


def test_a_document_has_what_the_kind_of_event_tells() -> None:
    usage = Usage(1000, 2000, 3)
    both = {"seq": 7, "atMs": round(AT * 1000)}
    process = {"id": "1dent", "name": "web", "pid": 33}

    assert event_document(event(EventKind.STARTED, argv=["a\udc80"], terminal=True, kept=False)) == {
        **both,
        "kind": "started",
        **process,
        "argv": ["a\N{REPLACEMENT CHARACTER}"],
        "tty": True,
        "kept": False,
    }
    assert event_document(event(EventKind.WAITING)) == {**both, "kind": "waiting", **process}
    ended = event_document(event(EventKind.EXITED, exit_code=137, outcome=TIMEOUT, usage=usage))
    assert ended["outcome"]["kind"] == "timeout"
    assert (ended["exitCode"], ended["usage"]["userMs"]) == (137, 1)
    gap = event_document(ProcessEvent(7, EventKind.GAP, AT, lost=2, processes=[RUNS]))
    assert (gap["lost"], gap["processes"][0]["id"]) == (2, "1dent")
    assert event_document(ProcessEvent(7, EventKind.GAP, AT))["processes"] is None


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (event(EventKind.WAITING), None),
        (event(EventKind.EXITED, exit_code=3, outcome=Outcome(Kind.EXIT, 3)), 3),
        (event(EventKind.EXITED, exit_code=3), 3),
        (ProcessEvent(7, EventKind.EXITED, AT, "other", "web", 33, exit_code=3), None),
        (ProcessEvent(7, EventKind.GAP, AT, processes=[RUNS]), None),
        (
            ProcessEvent(
                7, EventKind.GAP, AT, processes=[listing(ProcessState.CLOSED, Outcome(Kind.EXIT, 4), 4)]
            ),
            4,
        ),
        (ProcessEvent(7, EventKind.GAP, AT, processes=[listing(ProcessState.CLOSED)]), 125),
    ],
)
def test_the_end_of_a_process_is_seen_also_when_its_event_was_missed(
    told: ProcessEvent, code: int | None
) -> None:
    assert _end_of("1dent", told, "web") == code


@pytest.mark.parametrize(
    "told", [event(EventKind.FORGOTTEN), ProcessEvent(7, EventKind.GAP, AT, processes=[])]
)
def test_a_process_of_whose_end_nobody_knows_is_a_failure(told: ProcessEvent) -> None:
    with pytest.raises(Failure, match="how it ended is no longer known"):
        _end_of("1dent", told, "web")


def test_a_process_that_has_ended_before_ends_the_command_at_once(far: Call) -> None:
    far("run", "-d", "--name", "events-ended", "--", "sh", "-c", "exit 6")
    far("wait", "-q", "events-ended")

    assert far("events", "--until-exit", "events-ended") == (6, "", "")


def test_the_end_of_a_process_that_is_not_there_is_not_waited_for(far: Call) -> None:
    """A wrong name would never end."""
    said = far("events", "--until-exit", "events-nobody")

    assert said.code == 125
    assert "no process named 'events-nobody'" in said.err
