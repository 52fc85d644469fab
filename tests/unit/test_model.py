"""The values every layer shares."""

from __future__ import annotations

import json

import pytest

from holdfast.model import (
    PLAIN,
    Chunk,
    Ended,
    Exit,
    Kind,
    Limits,
    Outcome,
    Page,
    ProcessState,
    ProcessTerms,
    Size,
    Spec,
    Stream,
    WriteStatus,
    is_unicode,
    to_bytes,
    to_text,
    utf8_size,
)


def test_a_terminal_has_the_usual_size_unless_another_is_given() -> None:
    assert Size() == Size(rows=24, cols=80)


def test_a_spec_asks_for_nothing_that_was_not_said() -> None:
    spec = Spec(argv=["x"], cwd="/", env={})

    assert (spec.env_policy, spec.terminal, spec.stdin, spec.arg0) == (None, None, False, None)
    assert spec.terms is PLAIN


def test_by_default_nothing_ends_a_process() -> None:
    """A limit that nobody asked for is a bug report from somebody whose build takes an hour."""
    assert (
        ProcessTerms(timeout=None, idle_timeout=None, grace=0.0, output=None, drain=None, limits=Limits())
        == PLAIN
    )
    assert Limits() == Limits(memory=None, cpu=None, processes=None, files=None)


def test_an_end_says_only_what_is_known() -> None:
    assert Exit(0, Outcome(Kind.EXIT, 0)) == Exit(
        0, Outcome(Kind.EXIT, exit_code=0, signal=None, by=None, detail=None), usage=None, held_by=()
    )
    assert Ended(running=True) == Ended(running=True, survivors=(), exact=True)
    assert Page([], 1, None, closed=False).gap is None


def test_equal_chunks_are_equal() -> None:
    assert Chunk(1, Stream.PTY, b"x") == Chunk(1, Stream.PTY, b"x")
    assert Chunk(1, Stream.PTY, b"x") != Chunk(2, Stream.PTY, b"x")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([member.value for member in Stream], ["stdout", "stderr", "pty"]),
        ([member.value for member in WriteStatus], ["accepted", "stdinClosed"]),
        (
            [member.value for member in Kind],
            [
                *("exit", "signal", "timeout", "idleTimeout", "oom", "outputLimit", "cpuLimit"),
                *("terminated", "sandboxDenied", "lost"),
            ],
        ),
    ],
)
def test_the_names_on_the_wire_are_those_of_the_protocol(names: list[str], expected: list[str]) -> None:
    assert names == expected


def test_a_state_is_a_word_for_programs_that_compare_print_or_write_it() -> None:
    """It was a plain text once."""
    state = ProcessState.RUNNING

    assert (state, f"{state}", repr(state), json.dumps(state)) == (
        "running",
        "running",
        "'running'",
        '"running"',
    )
    assert [str(each) for each in ProcessState] == ["starting", "running", "exited", "closed"]


# Text and bytes.


@pytest.mark.parametrize("data", [b"", b"plain", "ü€😀".encode(), b"\xff\xfe", b"a\x80b", bytes(range(256))])
def test_any_bytes_survive_the_way_to_text_and_back(data: bytes) -> None:
    """A file name or variable that is not UTF-8 must reach the child as it was."""
    assert to_bytes(to_text(data)) == data


def test_text_is_utf_8_whatever_the_locale() -> None:
    """Two servers with different locales give the same child the same bytes."""
    assert to_bytes("é") == b"\xc3\xa9"
    assert to_text(b"\xc3\xa9") == "é"


def test_bytes_that_are_not_utf_8_become_lone_surrogates() -> None:
    """The form that Python's own interfaces to the operating system understand."""
    assert to_text(b"a\xff") == "a\udcff"


@pytest.mark.parametrize("text", ["", "plain", "ü€😀", "a\udcff", "\ud800"])
def test_a_text_is_as_long_as_its_bytes_and_unicode_unless_a_part_of_it_stands_for_bytes(text: str) -> None:
    assert utf8_size(text) == len(text.encode("utf-8", "surrogatepass"))
    assert is_unicode(text) is not any("\ud800" <= each <= "\udfff" for each in text)
