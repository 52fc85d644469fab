"""``holdfast logs``."""

from __future__ import annotations

import base64
import json

import pytest

from holdfast.api.host import local
from holdfast.cli.logs import Pages
from tests.fakes.terminal import Call

pytestmark = pytest.mark.slow


def test_it_works_after_the_end_and_keeps_the_outputs_apart(far: Call) -> None:
    far("run", "--name", "logs-done", "--", "sh", "-c", "echo out; echo err >&2")

    assert far("logs", "logs-done") == (0, "out\n", "err\n")


def test_the_last_lines_and_what_comes_after_a_number(far: Call) -> None:
    far("run", "--name", "logs-lines", "--", "printf", "a\\nb\\nc\\n")

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
    far("run", "--name", "logs-json", "--", "echo", "x")

    (line,) = far("logs", "-o", "json", "logs-json").out.splitlines()

    assert json.loads(line) == {"seq": 1, "stream": "stdout", "data": base64.b64encode(b"x\n").decode()}


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
        pages = Pages(await host.place.find("p"))

        assert [chunk.data async for chunk in pages.chunks(follow=False)] == [b"x\n"]
        assert pages.after == 1
