"""Ended processes of a session, each in one block of memory."""

from __future__ import annotations

import sys

import pytest

from holdfast.backend import Packed
from holdfast.dialects.exec.entries import ArchivedEntry, Entry
from holdfast.model import Leftovers
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import ExecTalk

START = {"processId": "p", "argv": ["x"], "cwd": "file:///tmp", "env": {}, "tty": False}


async def ended(
    *, packed: Packed | None = ("block",), **params: object
) -> tuple[ExecTalk, FakeProcess, FakeProcess]:
    """A closed process that can be packed, and what it is when it is unpacked."""
    process, past = FakeProcess(), FakeProcess()
    scene = ExecTalk(process)
    await scene.shake_hands()
    await scene.call("process/start", {**START, **params})
    process.exit_with(3)
    process.close()
    past.exit, past.closed, past.next_seq = process.exit, True, 3
    process.packed = packed
    scene.backend.unpacked[("block",)] = past
    return scene, process, past


def kept(scene: ExecTalk) -> object:
    return scene.talk.session.find("p")


async def test_a_process_is_kept_as_it_is_and_then_as_a_block() -> None:
    scene, _, _ = await ended()

    scene.loop.move(0.9)
    first = kept(scene)
    scene.loop.move(0.2)

    assert isinstance(first, Entry)
    assert isinstance(kept(scene), ArchivedEntry)


async def test_a_process_that_cannot_be_packed_stays_as_it_is() -> None:
    scene, process, _ = await ended(packed=None)

    scene.loop.move(29.0)
    before = kept(scene)
    scene.loop.move(2.0)

    assert isinstance(before, Entry)
    assert kept(scene) is None
    assert process.calls[-1] == ("forget", Leftovers.SPARE)


async def test_a_block_is_one_piece_that_the_system_gets_back() -> None:
    """The interpreter's own store ends at 512 bytes."""
    scene, _, _ = await ended()
    scene.loop.move(1.5)
    block = kept(scene)

    assert isinstance(block, ArchivedEntry)
    assert 512 < sys.getsizeof(block) < 700
    assert not hasattr(block, "__dict__")
    assert (block.key, block.name) == (scene.talk.session.key, "p")


async def test_who_asks_is_answered_as_before() -> None:
    scene, _, past = await ended(idempotent=True)
    scene.loop.move(1.5)
    past.page = past.page.__class__([], 3, past.exit, closed=True)

    read = await scene.call("process/read", {"processId": "p"})
    waited = await scene.call("process/wait", {"processId": "p"})
    listed = await scene.call("process/list")
    again = await scene.call("process/start", {**START, "idempotent": True})
    past.write_status = None
    terminated = await scene.call("process/terminate", {"processId": "p"})

    assert (read["exitCode"], read["closed"]) == (3, True)
    assert (waited["exitCode"], waited["closed"]) == (3, True)
    assert [(entry["processId"], entry["state"], entry["argv"]) for entry in listed["processes"]] == [
        ("p", "closed", ["x"])
    ]
    assert again["existing"]
    assert terminated["running"] is False
    assert isinstance(kept(scene), ArchivedEntry)


@pytest.mark.parametrize("name", ["p", 'a"\n', "", "é" * 300])
async def test_a_list_says_the_same_of_it_without_unpacking_it(name: str) -> None:
    """There may be tens of thousands of them in one list."""
    scene, _, _ = await ended(processId=name, argv=["x", "é"])
    before = await scene.call("process/list")
    scene.loop.move(1.5)
    scene.backend.unpacked.clear()

    after = await scene.call("process/list")

    assert isinstance(scene.talk.session.find(name), ArchivedEntry)
    assert (after, before["processes"][0]["state"]) == (before, "closed")


async def test_what_was_asked_for_is_known_as_before() -> None:
    scene, _, _ = await ended(argv=["x", "é"])
    about = scene.entry().request.about
    scene.loop.move(1.5)

    entry = scene.endpoint.find(scene.talk.session, "p")

    assert isinstance(entry, Entry)
    assert entry.request.about == about


SANDBOX = {"permissions": {"type": "external", "network": "restricted"}, "windowsSandboxLevel": "disabled"}


async def test_that_it_was_in_a_sandbox_is_not_forgotten() -> None:
    """Who asks for the same again is told the same."""
    scene, _, _ = await ended(idempotent=True, sandbox=SANDBOX)
    scene.loop.move(1.5)

    again = await scene.call("process/start", {**START, "idempotent": True, "sandbox": SANDBOX})

    assert isinstance(kept(scene), ArchivedEntry)
    assert (again["existing"], again["sandboxType"]) == (True, "linuxSeccomp")


@pytest.mark.parametrize("seconds", [31.0, 40.0])
async def test_its_name_is_free_when_its_time_is_over(seconds: float) -> None:
    scene, _, past = await ended()

    scene.loop.move(seconds)

    assert kept(scene) is None
    assert past.calls == [("forget", Leftovers.SPARE)]


async def test_it_is_forgotten_with_its_session() -> None:
    scene, _, past = await ended()
    scene.loop.move(1.5)

    await scene.call("session/close")
    scene.loop.move(60.0)

    assert past.calls == [("forget", Leftovers.SPARE)]


async def test_a_session_that_ends_in_the_first_second_leaves_nothing_to_pack() -> None:
    scene, process, past = await ended()

    await scene.call("session/close")
    scene.loop.move(60.0)

    assert ("forget", Leftovers.END) in process.calls
    assert past.calls == []


async def test_one_that_cannot_be_packed_is_forgotten_once_with_its_session() -> None:
    """The queue of those who are due still knows it, and its name may be another's by then."""
    scene, process, _ = await ended(packed=None)
    scene.loop.move(1.5)

    await scene.call("session/close")
    scene.loop.move(60.0)

    assert [call for call in process.calls if call[0] == "forget"] == [("forget", Leftovers.END)]
