"""What a server says of processes, as the values that every layer shares."""

from __future__ import annotations

import signal as signals
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.client import answers as a
from holdfast.client import reading
from holdfast.dialects import base64
from holdfast.dialects.exec import describe
from holdfast.model import Chunk, Denied, Exit, Gap, HostInfo, Kind, Listing, Outcome, Page, Stream, Usage
from holdfast.sandbox import NO_SANDBOXES, Denial, Guarantees, Protection, SandboxBackendName

END = {"exitCode": 3, "exited": True, "closed": True, "chunks": [], "nextSeq": 3}


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

    assert reading.output(message) == (b"p", Chunk(seq, stream, data))


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
        b" " + pushed("p", 1, "stdout", b"x"),
        pushed("p", 1, "stdout", b"x").replace(b'eA=="', b'eA==","more":"'),
    ],
)
def test_anything_else_is_left_to_the_parser(message: bytes) -> None:
    """Being fast must not mean being forgiving."""
    assert reading.output(message) is None


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
    told = msgspec.json.decode(msgspec.json.encode(describe.outcome(outcome)), type=a.Outcome)

    assert reading.outcome(told) == outcome


def test_words_that_are_too_new_are_an_ordinary_end() -> None:
    found = reading.outcome(a.Outcome("meteorite", 3, "SIGNEW", None, None))

    assert found == Outcome(Kind.EXIT, 3)
    assert reading.outcome(a.Outcome("exit", signal="SIG77")).signal == 77
    assert reading.outcome(a.Outcome("exit", signal="SIGRTMIN+3")).signal == signals.SIGRTMIN + 3
    assert reading.outcome(a.Outcome("exit", signal="SIG" + "9" * 5000)).signal is None
    assert reading.outcome(a.Outcome("exit", signal="SIGRTMIN+" + "9" * 5000)).signal is None


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
    assert reading.ending(msgspec.convert(told, a.Ending)) == end


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

    assert reading.page(reading.read_result(msgspec.json.encode(told))) == Page(
        [Chunk(3, Stream.PTY, b"hi")], 5, Exit(0, Outcome(Kind.EXIT, 0)), closed=False, gap=Gap(1, 2, None)
    )


def test_the_page_of_a_process_that_runs_has_no_end() -> None:
    told = {"chunks": [], "nextSeq": 1, "exited": False, "exitCode": None, "closed": False, "failure": None}

    assert reading.page(reading.read_result(msgspec.json.encode(told))) == Page([], 1, None, closed=False)


def test_a_line_of_a_list_is_all_that_was_told_in_it() -> None:
    told = a.ListedProcess(
        process_id="p",
        argv=["a", "b"],
        cwd="file:///a%20b",
        tty=True,
        started_at_ms=1500,
        state="exited",
        pid=7,
        exit_code=1,
        outcome=a.Outcome("timeout"),
        next_seq=9,
        retained_bytes=5,
        kept=True,
    )

    assert reading.listing(told) == Listing(
        name="p",
        pid=7,
        argv=["a", "b"],
        cwd="/a b",
        terminal=True,
        started=1.5,
        state="exited",
        exit_code=1,
        outcome=Outcome(Kind.TIMEOUT),
        next_seq=9,
        retained=5,
        kept=True,
    )


# The host.


def test_a_host_that_tells_little_has_what_every_host_has() -> None:
    told = msgspec.convert({"shell": {"name": "sh", "path": "/bin/sh"}}, a.EnvironmentInfo)

    assert reading.host_info(told) == HostInfo(  # noqa: S604
        shell="/bin/sh",
        cwd="/",
        home=None,
        temp="/tmp",
        temp_dirs=(),
        provider="",
        version="",
        sandboxes=NO_SANDBOXES,
    )


def test_a_host_is_all_that_was_told_of_it() -> None:
    sandbox = {
        "backend": "landlock",
        "protectsSubpaths": "soft",
        "denial": "exact",
        "weaknesses": ["ptrace"],
        "reason": "no bubblewrap",
    }
    told = {
        "shell": {"name": "zsh", "path": "/bin/zsh"},
        "executorVersion": "1.2",
        "providerId": "here",
        "cwd": "file:///work",
        "userHomeDir": "file:///root",
        "temporaryDirectories": ["file:///tmp", "file://elsewhere/tmp"],
        "tempDir": "file:///var/tmp",
        "capabilities": {"holdfast": {"version": 1, "features": ["list"], "sandbox": sandbox}},
    }

    assert reading.host_info(msgspec.convert(told, a.EnvironmentInfo)) == HostInfo(  # noqa: S604
        shell="/bin/zsh",
        cwd="/work",
        home="/root",
        temp="/var/tmp",
        temp_dirs=("/tmp",),
        provider="here",
        version="1.2",
        sandboxes=Guarantees(
            SandboxBackendName.LANDLOCK,
            Protection.SOFT,
            exact=True,
            weaknesses=("ptrace",),
            reason="no bubblewrap",
        ),
    )


@pytest.mark.parametrize("sandbox", [None, {}, {"backend": "magic"}, {"backend": None}])
def test_sandboxes_in_words_that_nobody_knows_are_none(sandbox: dict[str, Any] | None) -> None:
    told = a.EnvironmentInfo(
        shell=a.ShellInfo("sh", "/bin/sh"), capabilities=a.Capabilities(a.Extensions(sandbox=sandbox))
    )

    assert reading.host_info(told).sandboxes == NO_SANDBOXES


def test_what_is_no_text_in_the_words_about_sandboxes_is_passed_over() -> None:
    sandbox = {"backend": "landlock", "protectsSubpaths": 1, "weaknesses": 5, "reason": []}
    told = a.EnvironmentInfo(
        shell=a.ShellInfo("sh", "/bin/sh"), capabilities=a.Capabilities(a.Extensions(sandbox=sandbox))
    )

    assert reading.host_info(told).sandboxes == Guarantees(SandboxBackendName.LANDLOCK, Protection.NONE)
