"""What terminals show, of processes that only remember what was asked of them."""

from __future__ import annotations

from holdfast.errors import UnknownProcess
from tests.fakes.exec_talk import started


async def test_a_snapshot_that_takes_long_is_asked_for_again() -> None:
    scene, process = await started()
    process.next_seq = 4

    result = await scene.call("process/snapshot", {"processId": "p"})

    assert process.calls == [("try_snapshot", 3), ("try_snapshot", 3)]
    assert result == {
        "seq": 1,
        "size": {"rows": 2, "cols": 3},
        "data": "aGk=",
        "cursor": {"row": 1, "col": 3, "visible": True, "shape": "default", "blinking": False},
        "title": "",
        "alternateScreen": False,
        "complete": True,
    }


async def test_a_process_that_is_unknown_has_no_screen() -> None:
    scene, _ = await started()

    assert isinstance(await scene.refusal("process/snapshot", {"processId": "nope"}), UnknownProcess)
