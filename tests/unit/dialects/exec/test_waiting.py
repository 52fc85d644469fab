"""Waits until a process has brought something about, for clients that ask."""

from __future__ import annotations

import pytest

from holdfast.errors import BadRequest, Forbidden, UnknownProcess
from holdfast.model import Chunk, Page, Stream
from holdfast.principal import Grant, Principal
from tests.fakes.dialects import exited
from tests.fakes.exec_talk import started


async def test_a_text_that_is_there_is_found() -> None:
    scene, process = await started()
    process.next_seq = 3
    process.page = Page([Chunk(2, Stream.STDOUT, b"now ready\n")], 3, None, closed=False)

    answer = await scene.call("process/waitFor", {"processId": "p", "output": "ready$"})

    assert {name: value for name, value in answer.items() if value} == {
        "end": "met",
        "line": "now ready",
        "seq": 2,
    }


async def test_the_end_of_the_process_is_told() -> None:
    scene, process = await started()
    process.exit = exited(3)

    answer = await scene.call("process/waitFor", {"processId": "p", "output": "never"})

    assert (answer["end"], answer["exitCode"], answer["outcome"]["kind"]) == ("exited", 3, "exit")


@pytest.mark.parametrize(
    "params", [{}, {"port": 1, "output": "x"}, {"output": "("}, {"port": 0}, {"url": "ftp://localhost/"}]
)
async def test_what_makes_no_sense_is_refused(params: dict[str, object]) -> None:
    scene, _ = await started()

    assert isinstance(await scene.refusal("process/waitFor", {"processId": "p", **params}), BadRequest)


async def test_nobody_waits_for_a_process_that_is_not_there() -> None:
    scene, _ = await started()

    error = await scene.refusal("process/waitFor", {"processId": "nope", "port": 1})

    assert isinstance(error, UnknownProcess)


@pytest.mark.parametrize(
    "params", [{"url": "http://10.0.0.1/"}, {"url": "http://example.org/"}, {"file": "file:///etc/passwd"}]
)
async def test_what_a_token_does_not_allow_is_not_found_out_in_this_way(params: dict[str, str]) -> None:
    """A token for processes is none for the network, nor for files."""
    scene, _ = await started()
    grant = Grant(methods=("process/*",))
    scene.client.principal = Principal("somebody", grant=grant)

    error = await scene.refusal("process/waitFor", {"processId": "p", **params})

    assert isinstance(error, Forbidden)
