"""Events of all processes of a tenant, for the connections that ask for them."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.dialects.exec.methods import METHODS
from holdfast.model import Exit, Kind, Outcome, Usage
from holdfast.principal import Grant, Principal
from tests.fakes.dialects import FakeClient, FakeProcess, exited
from tests.fakes.exec_talk import START, ExecTalk, ready, started

TIMEOUT = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit"), Usage(1000, 2000, 3))


async def beside(scene: ExecTalk, principal: Principal | None = None) -> ExecTalk:
    """Another client that has subscribed."""
    client = FakeClient() if principal is None else FakeClient(principal=principal)
    other = ExecTalk(beside=scene, client=client)
    await other.shake_hands()
    await other.call("events/subscribe", {})
    return other


def told(scene: ExecTalk) -> list[Any]:
    """The events, without their times."""
    found = [each["params"] for each in scene.client.sent if each["method"] == "events/event"]
    assert all(each.pop("atMs") > 0 for each in found)
    return found


async def test_a_start_and_an_end_are_told_to_every_client_of_the_principal() -> None:
    process = FakeProcess()
    scene = await ready(process)
    other = await beside(scene)

    await scene.call("process/start", {**START, "name": "web", "tty": True})
    process.exit_with(end=TIMEOUT)

    assert told(scene) == []
    assert told(other) == [
        {
            "seq": 1,
            "kind": "started",
            "processId": "p",
            "name": "web",
            "pid": 1,
            "argv": ["x"],
            "tty": True,
            "kept": False,
        },
        {
            "seq": 2,
            "kind": "exited",
            "processId": "p",
            "name": "web",
            "pid": 1,
            "exitCode": 137,
            "outcome": {
                "kind": "timeout",
                "exitCode": None,
                "signal": "SIGKILL",
                "by": "limit",
                "detail": None,
            },
            "usage": {"userMs": 1, "systemMs": 2, "maxRssBytes": 3},
        },
    ]


async def test_a_kept_process_is_told_too() -> None:
    process = FakeProcess()
    scene = await ready(process)
    other = await beside(scene)

    await scene.call("process/start", {**START, "keep": True})
    process.exit_with(0)

    assert [(each["kind"], each.get("kept")) for each in told(other)] == [("started", True), ("exited", None)]


async def test_nobody_is_told_of_the_processes_of_another_principal() -> None:
    process = FakeProcess()
    scene = await ready(process)
    stranger = await beside(scene, Principal("mallory"))

    await scene.call("process/start", START)
    process.exit_with(0)
    stranger.loop.move(10)

    assert told(stranger) == []


async def test_who_waits_for_input_is_told_also_of_those_that_were_there_before() -> None:
    scene, process = await started()
    other = await beside(scene)

    scene.loop.move(1)

    assert told(other) == [{"seq": 1, "kind": "waiting", "processId": "p", "pid": 1}]
    assert process.calls


async def test_what_happens_while_a_client_is_behind_is_counted_and_told_when_it_has_caught_up() -> None:
    processes = [FakeProcess() for _ in range(3)]
    scene = await ready(*processes)
    other = await beside(scene)
    other.talk.congested()

    for name in "abc":
        await scene.call("process/start", {**START, "processId": name})
    while_behind = told(other)
    other.talk.drained()
    other.talk.drained()
    processes[0].exit_with(0)

    assert while_behind == []
    gap, exit_ = told(other)
    assert gap == {"seq": 3, "kind": "gap", "lost": 3}
    assert (exit_["seq"], exit_["kind"], exit_["processId"]) == (4, "exited", "a")


async def test_a_process_whose_session_is_over_is_told_to_be_forgotten() -> None:
    """Nobody hears of its end."""
    scene, _ = await started()
    other = await beside(scene)
    scene.talk.ended()

    scene.loop.move(scene.limits.detached_seconds + 1)

    assert [each["kind"] for each in told(other)] == ["waiting", "forgotten"]


async def test_to_subscribe_twice_is_to_subscribe_once() -> None:
    process = FakeProcess()
    scene = await ready(process)
    other = await beside(scene)

    again = await other.call("events/subscribe", {})
    await scene.call("process/start", START)

    assert again == {"nextSeq": 1}
    assert len(told(other)) == 1


async def test_whoever_subscribes_again_is_told_again_who_waits() -> None:
    """Another part of the same client wants to know it."""
    scene, _ = await started()
    other = await beside(scene)
    scene.loop.move(1)

    await other.call("events/subscribe", {})
    scene.loop.move(1)

    assert [each["kind"] for each in told(other)] == ["waiting", "waiting"]


async def test_numbers_go_on_after_a_time_without_subscribers() -> None:
    """A client that comes back must not take new events for old ones."""
    scene = await ready(FakeProcess(), FakeProcess())
    await scene.call("events/subscribe", {})
    await scene.call("process/start", START)
    await scene.call("events/unsubscribe", {})

    again = await scene.call("events/subscribe", {})

    assert again == {"nextSeq": 2}


async def test_nothing_is_left_of_a_subscription_that_was_ended_in_any_way() -> None:
    """Nobody is looked at, and no timer goes on."""
    scene, process = await started(keep=True)
    tenant = scene.talk.session.tenant
    ends = []
    for way in ("unsubscribe", "close", "end"):
        other = await beside(scene)
        assert tenant.announcer is not None
        if way == "unsubscribe":
            await other.call("events/unsubscribe", {})
            await other.call("events/unsubscribe", {})
        elif way == "close":
            await other.call("session/close", None)
        else:
            other.talk.ended()
        ends.append(tenant.announcer)
    process.calls.clear()
    scene.loop.move(5)

    assert ends == [None] * 3
    assert process.calls == []


async def test_one_that_leaves_does_not_end_the_subscription_of_another() -> None:
    process = FakeProcess()
    scene = await ready(process)
    stays, leaves = await beside(scene), await beside(scene)

    leaves.talk.ended()
    await scene.call("process/start", START)

    assert [each["kind"] for each in told(stays)] == ["started"]
    assert told(leaves) == []


async def test_a_start_during_the_search_for_those_that_run_is_told_once() -> None:
    """The search lets others have their turn."""
    scene = await ready(*[FakeProcess() for _ in range(1100)])
    for number in range(1099):
        await scene.call("process/start", {**START, "processId": f"p{number}"})
    other = ExecTalk(beside=scene)
    await other.shake_hands()

    subscribing = asyncio.create_task(other.call("events/subscribe", {}))
    await asyncio.sleep(0)
    searching = not subscribing.done()
    await scene.call("process/start", {**START, "processId": "new"})
    await subscribing

    assert searching
    assert [(each["kind"], each["processId"]) for each in told(other)] == [("started", "new")]


async def test_a_process_of_before_is_not_followed_for_whoever_has_left_meanwhile() -> None:
    """The search may take a while, and its client need not wait for it."""
    scene = await ready(*[FakeProcess() for _ in range(1100)])
    for number in range(1100):
        await scene.call("process/start", {**START, "processId": f"p{number}"})
    other = ExecTalk(beside=scene)
    await other.shake_hands()
    subscribing = asyncio.create_task(other.call("events/subscribe", {}))
    await asyncio.sleep(0)

    await other.call("events/unsubscribe", {})
    await subscribing
    scene.loop.move(5)

    assert scene.talk.session.tenant.announcer is None
    assert all(each[0] != "events/event" for each in other.client.sent if "method" in each)
    assert scene.loop.timers == []


def test_a_token_that_allows_to_subscribe_allows_to_unsubscribe() -> None:
    subscriber, other = Grant(methods=("events/subscribe",)), Grant(methods=("process/*",))
    for name in ("events/subscribe", "events/unsubscribe"):
        assert METHODS[name].is_granted(name, subscriber)
        assert not METHODS[name].is_granted(name, other)


async def test_an_end_before_the_client_subscribes_is_not_told() -> None:
    scene, process = await started()
    process.exit = exited(0)
    other = await beside(scene)

    scene.loop.move(1)

    assert told(other) == []
