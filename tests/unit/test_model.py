"""The values every layer shares."""

from __future__ import annotations

import pytest

from holdfast.model import Chunk, Page, Size, Spec, Stream, WriteStatus


def test_a_page_knows_whether_the_process_has_exited() -> None:
    """An exit code of 0 is one."""
    assert not Page([], 1, None, closed=False).exited
    assert Page([], 3, 0, closed=True).exited


def test_a_terminal_has_the_usual_size_unless_another_is_given() -> None:
    assert Size() == Size(rows=24, cols=80)


def test_a_spec_asks_for_nothing_that_was_not_said() -> None:
    spec = Spec(argv=["x"], cwd="/", env={})

    assert (spec.env_policy, spec.terminal, spec.stdin, spec.arg0) == (None, None, False, None)


def test_equal_chunks_are_equal() -> None:
    assert Chunk(1, Stream.PTY, b"x") == Chunk(1, Stream.PTY, b"x")
    assert Chunk(1, Stream.PTY, b"x") != Chunk(2, Stream.PTY, b"x")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([member.value for member in Stream], ["stdout", "stderr", "pty"]),
        ([member.value for member in WriteStatus], ["accepted", "stdinClosed"]),
    ],
)
def test_the_names_on_the_wire_are_those_of_the_protocol(names: list[str], expected: list[str]) -> None:
    assert names == expected
