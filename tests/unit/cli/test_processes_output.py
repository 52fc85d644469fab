"""``holdfast attach`` and ``logs``; at a terminal, attach is in ``tests/system/test_cli_terminal.py``."""

from __future__ import annotations

import base64
import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api.host import local
from holdfast.backend import Process
from holdfast.cli.processes import LastLines, OutputPages
from holdfast.model import Chunk, Gap, Page, Stream
from tests.fakes.server import eventually_sync
from tests.fakes.terminal import Call, holdfast

pytestmark = pytest.mark.slow

# attach.


def test_what_was_said_is_shown_and_the_code_is_the_processes(far: Call) -> None:
    far("run", "-d", "--name", "attach-done", "--", "sh", "-c", "echo a; echo b; exit 3")
    far("wait", "-q", "attach-done")

    assert far("attach", "--no-stdin", "attach-done") == (3, "a\nb\n", "")
    assert far("attach", "--no-stdin", "--tail", "1", "attach-done") == (3, "b\n", "")


def test_what_is_given_is_passed_on(far: Call, url: str) -> None:
    far("run", "-d", "-i", "--name", "attach-input", "--", "cat")

    done = holdfast("attach", "-H", url, "attach-input", data=b"given")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"given", b"")


def test_old_output_that_is_gone_is_told_and_is_no_failure(forgetful: Call) -> None:
    forgetful("run", "-d", "--name", "p", "--", "head", "-c", "30000000", "/dev/zero")
    forgetful("wait", "p")

    said = forgetful("attach", "--no-stdin", "p")

    assert said.code == 0
    assert "no longer kept" in said.err


def test_nobody_can_attach_to_an_unknown_name(far: Call) -> None:
    assert far("attach", "nobody").code == 125


# logs.


def test_it_works_after_the_end_and_keeps_the_outputs_apart(far: Call) -> None:
    far("run", "-d", "--name", "logs-done", "--", "sh", "-c", "echo out; echo err >&2")
    far("wait", "-q", "logs-done")

    assert far("logs", "logs-done") == (0, "out\n", "err\n")


def test_the_last_lines_and_what_comes_after_a_number(far: Call) -> None:
    far("run", "-d", "--name", "logs-lines", "--", "printf", "a\\nb\\nc\\n")
    far("wait", "-q", "logs-lines")

    assert far("logs", "--tail", "2", "logs-lines").out == "b\nc\n"
    assert far("logs", "--tail", "0", "logs-lines").out == ""
    assert far("logs", "--since-seq", "1000", "logs-lines").out == ""


def test_of_one_that_runs_what_there_is_and_with_f_everything(far: Call) -> None:
    far("run", "-d", "-i", "--name", "logs-runs", "--", "sh", "-c", "echo first; cat")
    far("write", "logs-runs", "second\n")
    far("write", "logs-runs", "--eof")
    followed = far("logs", "-f", "logs-runs")
    tail = far("logs", "-f", "--tail", "1", "logs-runs")

    assert (followed, tail) == ((0, "first\nsecond\n", ""), (0, "second\n", ""))


def test_json_is_a_line_per_piece(far: Call) -> None:
    far("run", "-d", "--name", "logs-json", "--", "echo", "x")
    far("wait", "-q", "logs-json")

    (line,) = far("logs", "-o", "json", "logs-json").out.splitlines()

    data = base64.b64encode(b"x\n").decode()
    assert json.loads(line) == {"seq": 1, "stream": "stdout", "data": data, "text": "x\n"}


def test_what_is_no_longer_kept_is_told_on_standard_error(forgetful: Call) -> None:
    forgetful("run", "-d", "--name", "p", "--", "head", "-c", "30000000", "/dev/zero")
    forgetful("wait", "p")

    said = forgetful("logs", "p")
    quiet = forgetful("logs", "-q", "p")

    assert said.code == 0
    missing = int(said.err.split()[1])
    assert "bytes of its output are no longer kept" in said.err
    assert len(said.out) + missing == 30_000_000
    assert quiet.err == ""


def test_an_unknown_name_is_told_with_advice(far: Call) -> None:
    said = far("logs", "nobody")

    assert (said.code, said.out) == (125, "")
    assert "'holdfast ps -a' shows those that there are" in said.err


async def test_of_one_that_runs_and_is_not_followed_pages_end_where_it_is() -> None:
    async with local() as host:
        handle = await host.start(["sh", "-c", "echo x; exec sleep 1000"], name="p")
        await anext(handle.chunks())
        pages = OutputPages(await host.place.find("p"))

        assert [chunk.data async for chunk in pages.chunks(follow=False)] == [b"x\n"]
        assert pages.after == 1


class Talker:
    """A process that has said something more whenever it is asked, three pieces to a page."""

    def __init__(self, said: int, *, first: int = 1) -> None:
        self._said = said
        self.first = first  # The first piece that is still kept.

    @property
    def next_seq(self) -> int:
        return self._said + 1

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        self._said += 2
        start = max(after + 1, self.first)
        chunks = [Chunk(n, Stream.STDOUT, b"%d\n" % n) for n in range(start, min(start + 3, self._said + 1))]
        gap = Gap(after + 1, start - 1, 7) if start > after + 1 else None
        next_seq = chunks[-1].seq + 1 if chunks else self._said + 1
        return Page(tuple(chunks), next_seq, None, closed=False, gap=gap)


def pages_of(talker: Talker) -> OutputPages:
    return OutputPages(cast("Process", talker))  # It has all of a process that pages need.


async def test_of_one_that_never_stops_pages_end_at_what_there_was() -> None:
    """Whoever asks for what was said wants an answer, however fast more is said."""
    pages = pages_of(Talker(5))

    assert [chunk.seq async for chunk in pages.chunks(follow=False)] == [1, 2, 3, 4, 5]
    assert pages.after == 5
    following = pages.chunks(follow=True)
    assert [(await anext(following)).seq for _ in range(3)] == [6, 7, 8]


async def test_the_last_lines_of_one_that_never_stops_are_those_there_were() -> None:
    pages = pages_of(Talker(5))

    assert [chunk.seq for chunk in await pages.last_lines(2)] == [4, 5]
    assert pages.after == 5


async def test_what_was_pushed_out_while_it_was_asked_for_is_told() -> None:
    """Then what is kept instead is shown: of a flood there would never be anything to see."""
    pages = pages_of(Talker(8, first=9))

    assert [chunk.seq async for chunk in pages.chunks(follow=False)] == [9, 10]
    assert pages.missing == "7 bytes of its output are no longer kept; a larger --retain keeps more"
    assert pages.after == 10


async def test_what_is_pushed_out_between_two_pages_is_told_and_not_replaced() -> None:
    """What came later was not asked for, and how much of the gap was is not known."""
    talker = Talker(6)
    pages = pages_of(talker)
    asking = pages.chunks(follow=False)
    seen = [(await anext(asking)).seq for _ in range(3)]
    talker.first = 9

    assert [*seen, *[chunk.seq async for chunk in asking]] == [1, 2, 3]
    assert pages.missing is not None
    assert pages.missing.startswith("an unknown number of bytes")
    assert pages.after == 6


def test_logs_of_one_that_never_stops_end(far: Call) -> None:
    far("run", "-d", "--name", "logs-flood", "--", "yes")
    try:
        eventually_sync(lambda: far("logs", "--tail", "1", "logs-flood").out)
        said = far("logs", "logs-flood")
        tail = far("logs", "--tail", "3", "logs-flood")
    finally:
        far("kill", "--grace", "0", "logs-flood")

    assert (said.code, tail.code) == (0, 0)
    assert 0 < len(said.out) < 4_000_000  # What is kept is about 1 MiB.
    assert len(tail.out.splitlines()) == 3


# The last lines.


def last(count: int, *pieces: bytes) -> bytes:
    kept = LastLines(count)
    for number, piece in enumerate(pieces, 1):
        kept.add(Chunk(number, Stream.STDOUT, piece))
    return b"".join(chunk.data for chunk in kept.take())


@pytest.mark.parametrize(
    ("count", "pieces", "rest"),
    [
        (0, (b"a\nb\n",), b""),
        (1, (), b""),
        (1, (b"a\nb\n",), b"b\n"),
        (1, (b"a\nb",), b"b"),
        (2, (b"a\n", b"b\n", b"c\n"), b"b\nc\n"),
        (2, (b"a\nb", b"b\nc", b"\n"), b"bb\nc\n"),
        (9, (b"a\nb\n",), b"a\nb\n"),
        (1, (b"\n\n\n",), b"\n"),
    ],
)
def test_so_many_lines_are_kept(count: int, pieces: tuple[bytes, ...], rest: bytes) -> None:
    assert last(count, *pieces) == rest


def test_the_number_and_the_stream_of_a_cut_piece_stay() -> None:
    kept = LastLines(1)
    kept.add(Chunk(5, Stream.STDERR, b"a\nb\n"))

    assert kept.take() == [Chunk(5, Stream.STDERR, b"b\n")]
    assert kept.take() == []


def test_no_more_is_kept_than_is_needed() -> None:
    kept = LastLines(2)
    for number in range(1000):
        kept.add(Chunk(number, Stream.STDOUT, b"x\n"))

    assert len(kept._chunks) <= 4


@given(st.integers(1, 5), st.lists(st.sampled_from([b"a", b"\n", b"b\n", b"\nc", b"a\nb\n"])))
def test_however_it_is_cut_the_lines_are_those_of_the_text(count: int, pieces: list[bytes]) -> None:
    lines = b"".join(pieces).splitlines(keepends=True)

    assert last(count, *pieces) == b"".join(lines[-count:])
