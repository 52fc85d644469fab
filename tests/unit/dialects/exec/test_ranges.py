"""Output by place, of processes that only remember what was asked of them."""

from __future__ import annotations

import pytest

from holdfast.errors import UnknownProcess
from holdfast.model import Stream
from tests.fakes.exec_talk import started


async def test_a_range_that_takes_long_is_asked_for_again() -> None:
    scene, process = await started()
    process.next_seq = 4
    params = {"processId": "p", "stream": "stderr", "offset": 3, "length": 2}

    result = await scene.call("process/readRange", params)

    assert process.calls == [("try_read_range", Stream.STDERR, 3, 2, 3)] * 2
    assert result == {
        "stream": "stderr",
        "offset": 3,
        "data": "aGk=",
        "next": 5,
        "total": 9,
        "firstOffset": 1,
        "ended": False,
    }


async def test_a_client_may_leave_all_of_it_to_the_server() -> None:
    scene, process = await started()

    await scene.call("process/readRange", {"processId": "p"})

    assert [call[1:3] for call in process.calls] == [(None, 0)] * 2


@pytest.mark.parametrize("wrong", [{"stream": "stdin"}, {"offset": -1}, {"length": -1}, {"offset": 1 << 64}])
async def test_a_range_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    scene, process = await started()

    await scene.refusal("process/readRange", {"processId": "p", **wrong})

    assert process.calls == []


async def test_a_process_that_is_unknown_has_no_output() -> None:
    scene, _ = await started()

    assert isinstance(await scene.refusal("process/readRange", {"processId": "nope"}), UnknownProcess)
