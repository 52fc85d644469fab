"""What a server says of processes, as the values that every layer shares."""

from __future__ import annotations

import signal as signals
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import Chunk, Denied, Exit, Gap, Kind, Listing, Outcome, Page, ProcessState, Stream, Usage
from holdfast.protocol import base64, events
from holdfast.protocol.processes import READ, ListedProcess, ProcessOutput, ReadResult, WireOutcome
from holdfast.sandbox import Denial

PAGE = {"exited": True, "closed": True, "chunks": [], "nextSeq": 3}


def pushed(name: str, seq: int, stream: str, data: bytes) -> bytes:
    """Output in the form in which servers write it."""
    return b'{"method":"process/output","params":{"processId":%b,"seq":%d,"stream":"%b","chunk":"%b"}}' % (
        msgspec.json.encode(name),
        seq,
        stream.encode(),
        base64.encode(data),
    )


# The hot path.


@given(seq=st.integers(1, 10**12), stream=st.sampled_from(Stream), data=st.binary(max_size=300))
def test_output_is_read_without_a_parser(seq: int, stream: Stream, data: bytes) -> None:
    message = pushed("p", seq, stream.value, data)

    assert events.read_output(message) == (b"p", Chunk(seq, stream, data))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{}",
        b'{"method":"process/exited","params":{"processId":"p","seq":1}}',
        pushed('quo"te', 1, "stdout", b"x"),
        pushed("p", 1, "stdout", b"x").replace(b"stdout", b"other"),
        pushed("p", 1, "stdout", b"x").replace(b"eA==", b"e===="),
        pushed("p", 1, "stdout", b"x").replace(b"eA==", b"YWJj="),
        pushed("p", 1, "stdout", b"x").replace(b"eA==", b"YWJj===="),
        pushed("p", 1, "stdout", b"x") + b" ",
        pushed("p", 1, "stdout", b"x").replace(b'"seq":1', b'"seq":-1'),
        pushed("p", 1, "stdout", b"x").replace(b'"seq":1', b'"seq":%d' % 2**64),
        b" " + pushed("p", 1, "stdout", b"x"),
        pushed("p", 1, "stdout", b"x").replace(b'eA=="', b'eA==","more":"'),
    ],
)
def test_anything_else_is_left_to_the_parser(message: bytes) -> None:
    """Being fast must not mean being forgiving."""
    assert events.read_output(message) is None


# Ends.

OUTCOMES = st.builds(
    Outcome,
    kind=st.sampled_from(Kind),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    by=st.none() | st.text(alphabet="abc"),
    detail=st.none() | st.text(alphabet="abc"),
)


@given(outcome=OUTCOMES)
def test_an_outcome_comes_back_with_every_signal(outcome: Outcome) -> None:
    told = msgspec.json.decode(msgspec.json.encode(events.outcome(outcome)), type=WireOutcome)

    assert events._read_outcome(told) == outcome


def test_words_that_are_too_new_are_an_ordinary_end() -> None:
    found = events._read_outcome(WireOutcome("meteorite", 3, "SIGNEW", None, None))

    assert found == Outcome(Kind.EXIT, 3)
    assert events._read_outcome(WireOutcome("exit", signal="SIG77")).signal == 77
    assert events._read_outcome(WireOutcome("exit", signal="SIGRTMIN+3")).signal == signals.SIGRTMIN + 3
    assert events._read_outcome(WireOutcome("exit", signal="SIG" + "9" * 5000)).signal is None
    assert events._read_outcome(WireOutcome("exit", signal="SIGRTMIN+" + "9" * 5000)).signal is None


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ({"exitCode": 3}, Exit(3, Outcome(Kind.EXIT, 3))),
        ({}, Exit(-1, Outcome(Kind.EXIT, -1))),
        (
            {"exitCode": 1, "sandboxDenied": True},
            Exit(1, Outcome(Kind.SANDBOX_DENIED, 1), denied=Denied(failed=True, exact=False)),
        ),
        (
            {
                "exitCode": 1,
                "denial": "exact",
                "denials": [{"op": "openat", "path": "/x", "count": 2}],
                "outcome": {"kind": "exit", "exitCode": 1},
                "usage": {"userMs": 1, "systemMs": 2, "maxRssBytes": 3},
                "heldBy": [7, 8],
            },
            Exit(
                1,
                Outcome(Kind.EXIT, 1),
                Usage(1000, 2000, 3),
                (7, 8),
                Denied(failed=False, exact=True, denials=(Denial("openat", "/x", 2),)),
            ),
        ),
    ],
)
def test_an_end_is_all_that_was_told_of_it(told: dict[str, Any], end: Exit) -> None:
    assert events.read_exit(msgspec.convert({**PAGE, **told}, ReadResult)) == end


# Pages and lists.


def test_a_page_is_all_that_was_told_in_it() -> None:
    told = {
        "chunks": [{"seq": 3, "stream": "pty", "chunk": "aGk="}],
        "nextSeq": 5,
        "exited": True,
        "exitCode": 0,
        "closed": False,
        "failure": None,
        "gap": {"fromSeq": 1, "toSeq": 2, "bytes": None},
        "from": "the future",
    }

    assert events.read_page(READ.read(msgspec.json.encode(told))) == Page(
        [Chunk(3, Stream.PTY, b"hi")], 5, Exit(0, Outcome(Kind.EXIT, 0)), closed=False, gap=Gap(1, 2, None)
    )


def test_the_page_of_a_process_that_runs_has_no_end() -> None:
    told = {"chunks": [], "nextSeq": 1, "exited": False, "exitCode": None, "closed": False, "failure": None}

    assert events.read_page(READ.read(msgspec.json.encode(told))) == Page([], 1, None, closed=False)


@pytest.mark.parametrize(("word", "state"), [("exited", ProcessState.EXITED), ("frozen", "frozen")])
def test_a_line_of_a_list_is_all_that_was_told_in_it(word: str, state: ProcessState | str) -> None:
    """Also a state that only a newer server knows."""
    told = ListedProcess(
        process_id="p",
        argv=["a", "b"],
        cwd="file:///a%20b",
        tty=True,
        started_at_ms=1500,
        state=word,
        pid=7,
        exit_code=1,
        outcome=WireOutcome("timeout"),
        next_seq=9,
        retained_bytes=5,
        kept=True,
    )

    assert events.read_listing(told) == Listing(
        identifier="p",
        name="p",
        pid=7,
        argv=["a", "b"],
        cwd="/a b",
        terminal=True,
        started=1.5,
        state=state,
        exit_code=1,
        outcome=Outcome(Kind.TIMEOUT),
        next_seq=9,
        retained=5,
        kept=True,
    )


@given(
    chunks=st.lists(st.tuples(st.sampled_from(Stream), st.binary(max_size=50)), max_size=5),
    extended=st.booleans(),
    gap=st.none() | st.builds(Gap, st.just(1), st.integers(1, 3), st.none() | st.integers(0, 99)),
    outcome=st.none() | OUTCOMES,
)
def test_a_page_comes_back_as_it_was_written(
    chunks: list[tuple[Stream, bytes]], gap: Gap | None, outcome: Outcome | None, *, extended: bool
) -> None:
    """Writer and reader are two forms of one description."""
    end = None if outcome is None else Exit(7, outcome, Usage(1000, 2000, 3), (5,))
    page = Page(
        [Chunk(seq, stream, data) for seq, (stream, data) in enumerate(chunks, 4)], 30, end, False, gap
    )

    found = events.read_page(READ.read(b"".join(events.page(page, extended=extended))))

    if extended or end is None:
        assert found == page
    else:
        assert (found.chunks, found.gap, found.next_seq) == (page.chunks, page.gap, page.next_seq)
        expected = end.outcome if end.outcome.kind is not Kind.EXIT else Outcome(Kind.EXIT, 7)
        assert found.exit is not None
        assert (found.exit.code, found.exit.outcome, found.exit.usage) == (7, expected, None)


@given(name=st.text(max_size=9), seq=st.integers(1, 10**12), data=st.binary(max_size=9000))
def test_a_notification_of_output_comes_back_as_it_was_written(name: str, seq: int, data: bytes) -> None:
    name = name.encode("utf-8", "replace").decode()
    chunk = Chunk(seq, Stream.STDERR, data)
    message = b"".join(events.output(msgspec.json.encode(name), chunk))

    found = events.read_output(message)
    told = msgspec.json.decode(message)["params"]

    assert found in ((events.key_of(name), chunk), None)
    assert found is not None or '"' in name or "\\" in name or not name.isprintable()
    assert events.read_chunk(msgspec.convert(told, ProcessOutput)) == chunk
    assert told["processId"] == name
