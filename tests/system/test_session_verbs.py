"""The end of a session at a client's word, and a session taken from whoever has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.client import Client, Message, Refusal, page_bytes, start_params, write_params
from tests.fakes.server import Program, is_running, program_at
from tests.fakes.trees import exit_of, greet, knowing


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


async def take_over(talking: Client, session: str) -> Message:
    """The handshake of a client that takes a session, whoever has it."""
    result = await talking.call("session/takeOver", {"sessionId": session, "holdfast": 1})
    talking.session = result["sessionId"]
    talking.notify("initialized")
    return result


async def talker(talking: Client) -> int:
    """Start a process that answers; gives its pid."""
    await talking.start("p", "sh", "-c", "echo $$; exec cat", pipeStdin=True)
    tale = talking.tale("p")
    await talking.until(lambda: tale.events)
    return int(tale.data())


# Close.


async def test_what_waits_for_a_start_when_its_session_is_closed_is_refused(url: str) -> None:
    """Also a second start: it was meant for the session that is gone, and not for the next one."""
    start = start_params("p", "sleep", "1000")
    async with knowing(url) as talking:
        behind = [
            ("process/read", {"processId": "p"}),
            ("process/write", write_params("p", b"x", "w")),
            ("process/wait", {"processId": "p"}),
            ("process/start", start),
        ]
        first, *waiting, closed = talking.post_together(
            ("process/start", start), *behind, ("session/close", None)
        )
        given_up = await first
        refusals = [(await each)["error"] for each in waiting]
        answer = await talking.result(closed)
        await talking.initialize()
        listed = await talking.call("process/list")

    assert given_up["error"]["message"] == "process p start was cancelled"
    words = "client must call initialize before using exec methods"
    assert refusals == [
        {"code": -32600, "message": words, "data": {"kind": "outOfTurn", "reason": words}}
    ] * len(behind)
    assert (answer, listed) == ({"survivors": []}, {"processes": []})


async def test_a_closed_session_is_gone_with_everything_in_it(url: str) -> None:
    """Nobody has to wait for its time to be over."""
    late = await Client.connect(url)
    async with knowing(url) as talking:
        pid = await talker(talking)
        await talking.start("exited", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!")
        await exit_of(talking, "exited")
        left_behind = int(talking.tale("exited").data())
        spared = is_running(left_behind)

        answer = await talking.call("session/close")
        running = is_running(pid), is_running(left_behind)
        with pytest.raises(Refusal) as caught:
            await greet(late, resumeSessionId=talking.session)
        await late.close()

    assert spared
    assert answer == {"survivors": []}
    assert running == (False, False)
    assert caught.value.code == -32600
    assert caught.value.text == f"unknown session id {talking.session}"


async def test_a_connection_can_open_another_session_after_the_end_of_one(url: str) -> None:
    """And finds it empty."""
    async with knowing(url) as talking:
        first = talking.session
        await talker(talking)
        await talking.call("session/close")
        with pytest.raises(Refusal):
            await talking.call("process/list")

        await greet(talking)
        listed = await talking.call("process/list")
        await talking.start("p", "sh", "-c", "exit 3")
        end = await exit_of(talking, "p")

    assert talking.session != first
    assert listed == {"processes": []}
    assert end["exitCode"] == 3


async def test_a_session_without_processes_can_be_closed(url: str) -> None:
    """Nothing to end is not an error."""
    async with knowing(url) as talking:
        assert await talking.call("session/close") == {"survivors": []}


# Take over.


async def test_a_session_is_taken_from_a_client_that_is_alive(url: str) -> None:
    """The other one is told, and everything is there for the one who took it."""
    async with knowing(url) as holder:
        pid = await talker(holder)
        with pytest.raises(Refusal) as caught:
            async with knowing(url, resume=holder.session):
                pass

        taker = await Client.connect(url)
        result = await take_over(taker, holder.session)
        farewell = await holder.ended()
        await taker.write("p", b"hello\n", "w")
        await taker.until(lambda: b"hello\n" in taker.tale("p").data())
        page = await taker.read("p")
        await taker.close()

    assert caught.value.code == -32010
    assert result["sessionId"] == holder.session
    assert result["environmentInfo"]["capabilities"]["holdfast"]["version"] == 1
    assert farewell is not None
    assert farewell.close_reason == "the session was resumed by another connection"
    assert page_bytes(page) == b"%d\nhello\n" % pid


async def test_a_session_is_taken_from_a_client_that_is_dead_without_a_wait(url: str) -> None:
    """Its connection may look alive for a minute."""
    dead = await Client.connect(url, answers_pings=False)
    await greet(dead)
    pid = await talker(dead)
    dead.stop_listening()

    taker = await Client.connect(url)
    await take_over(taker, dead.session)
    listed = await taker.call("process/list")
    await dead.abort()
    running = await taker.terminate("p")
    await taker.close()

    assert [entry["pid"] for entry in listed["processes"]] == [pid]
    assert running, "the end of the dead connection took the process with it"


async def test_a_session_that_nobody_has_can_be_taken(url: str) -> None:
    """As with a plain resume."""
    async with knowing(url) as first:
        pid = await talker(first)
        await first.abort()
    taker = await Client.connect(url)

    await take_over(taker, first.session)
    listed = await taker.call("process/list")
    await taker.close()

    assert [entry["pid"] for entry in listed["processes"]] == [pid]


async def test_a_session_can_be_taken_back(url: str) -> None:
    """Two who fight for one lose nothing but their connections."""
    async with knowing(url) as first:
        pid = await talker(first)
    session = first.session
    takers = []
    for _ in range(6):
        taker = await Client.connect(url)
        await take_over(taker, session)
        takers.append(taker)

    listed = await takers[-1].call("process/list")
    farewells = [await taker.ended() for taker in takers[:-1]]
    for taker in takers:
        await taker.close()

    assert [(entry["pid"], entry["state"]) for entry in listed["processes"]] == [(pid, "running")]
    assert all(farewells)


async def test_a_session_that_does_not_exist_cannot_be_taken(url: str) -> None:
    """And the connection can still open one of its own."""
    taker = await Client.connect(url)
    with pytest.raises(Refusal) as caught:
        await take_over(taker, "nobody's")

    await greet(taker)
    listed = await taker.call("process/list")
    await taker.close()

    assert caught.value.text == "unknown session id nobody's"
    assert listed == {"processes": []}
