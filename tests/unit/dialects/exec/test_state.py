"""The exec endpoint: what outlives a connection.  The clock is moved by hand."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec.conversation import ExecConversation, ExecEndpoint
from holdfast.dialects.exec.entries import Entry, StartSummary
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import SessionBusy
from holdfast.model import Leftovers
from holdfast.principal import ANYBODY, Principal
from tests.fakes.dialects import FakeBackend, FakeClient, FakeProcess, HandLoop
from tests.fakes.exec_talk import INITIALIZED

LIMITS = SessionLimits(
    detached_seconds=30.0, closed_seconds=30.0, attached_bytes=10, detached_bytes=99, probe_seconds=1.5
)
ENDED = ("forget", Leftovers.END)
TERMINATED = ("end", 0.0, "client")


class Scene:
    """An endpoint and its surroundings."""

    def __init__(self) -> None:
        self.loop = HandLoop()
        self.endpoint = ExecEndpoint(FakeBackend(), METHODS, loop=self.loop.loop, limits=LIMITS)

    def greet(self, client: FakeClient | None = None) -> tuple[ExecConversation, FakeClient]:
        client = client or FakeClient()
        talk = self.endpoint.greet(client)
        client.on_cut = talk.ended
        return talk, client

    async def begun(self, client: FakeClient | None = None) -> tuple[ExecConversation, FakeClient]:
        talk, client = self.greet(client)
        await talk.begin(None, extended=False)
        talk.notified(INITIALIZED)
        return talk, client

    def run(
        self, talk: ExecConversation, name: str = "p", *, retain: int | None = None
    ) -> tuple[Entry, FakeProcess]:
        """A process of the session, as ``process/start`` makes it."""
        process = FakeProcess()
        request = StartSummary(b"", b"", retain)
        entry = self.endpoint.enter(talk.session, talk.session.reserve(name), process, request)
        process.calls.clear()
        return entry, process


# Leaving and coming back.


async def test_a_session_waits_for_its_client_and_keeps_more_meanwhile() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    entry, process = scene.run(talk)

    talk.ended()
    process.say(b"unheard")
    scene.loop.move(29.9)

    assert scene.endpoint.sessions.get(talk.session.key) is talk.session
    assert entry.retention.is_for_absent
    assert process.calls == [("retain", 99)]


async def test_a_session_whose_client_stays_away_ends_with_its_processes() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)
    talk.ended()

    scene.loop.move(30.0)

    assert len(scene.endpoint.sessions) == 0
    assert process.calls == [("retain", 99), ENDED]
    assert scene.loop.timers == []


async def test_a_client_that_cannot_come_back_takes_its_processes_along() -> None:
    """The other end of a pipe is gone for good."""
    scene = Scene()
    talk, _ = await scene.begun(FakeClient(transport="stdio"))
    _, process = scene.run(talk)
    given_up: list[str] = []
    talk.session.reserve("starting").cancel_with(lambda: given_up.append("starting"))

    talk.ended()

    assert len(scene.endpoint.sessions) == 0
    assert process.calls == [ENDED]
    assert given_up == ["starting"]


async def test_a_client_that_comes_back_finds_its_session() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)
    talk.ended()
    scene.loop.move(10.0)

    again, client = scene.greet()
    session = await again.begin(talk.session.key, extended=False)
    process.say(b"x")

    assert session is talk.session
    assert [message["method"] for message in client.sent] == ["process/output"]
    scene.loop.move(25.0)
    assert scene.endpoint.sessions.get(session.key) is session


async def test_what_was_kept_for_a_client_is_dropped_some_time_after_its_return() -> None:
    """A client that reads nothing must not keep the server's memory for ever."""
    scene = Scene()
    talk, _ = await scene.begun()
    (entry, process), (read_out, other) = scene.run(talk, "p"), scene.run(talk, "q")
    talk.ended()
    again, _ = scene.greet()
    await again.begin(talk.session.key, extended=False)
    read_out.catch_up()
    process.calls.clear()
    other.calls.clear()

    scene.loop.move(29.9)
    before = list(process.calls)
    scene.loop.move(0.1)

    assert (before, process.calls, other.calls) == ([], [("retain", 10)], [])
    assert not entry.retention.is_for_absent


@pytest.mark.parametrize(
    ("asked", "there", "away"), [(None, 10, 99), (50, 50, 99), (500, 500, 500), (0, 1, 99)]
)
async def test_a_client_that_said_how_much_to_keep_never_gets_less(
    asked: int | None, there: int, away: int
) -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    entry, process = scene.run(talk, retain=asked)

    entry.catch_up()
    talk.ended()
    entry.catch_up()

    assert process.calls == [("retain", there), ("retain", away), ("retain", there)]


async def test_what_was_kept_stays_when_the_client_has_left_again() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    entry, _ = scene.run(talk)
    talk.ended()
    again, _ = scene.greet()
    await again.begin(talk.session.key, extended=False)
    scene.loop.move(10.0)
    again.ended()

    scene.loop.move(25.0)

    assert entry.retention.is_for_absent


async def test_a_session_is_not_taken_from_a_client_that_is_alive() -> None:
    scene = Scene()
    talk, holder = await scene.begun(FakeClient(alive=True))
    other, _ = scene.greet()

    with pytest.raises(SessionBusy) as caught:
        await other.begin(talk.session.key, extended=False)

    assert caught.value.session == talk.session.key
    assert (holder.asked, holder.cuts, talk.session.client) == ([1.5], [], holder)


async def test_a_session_is_taken_from_a_client_that_has_silently_gone() -> None:
    """After a network failure the kernel may hold the old connection open for a long time."""
    scene = Scene()
    talk, holder = await scene.begun(FakeClient(alive=False))
    other, client = scene.greet()

    session = await other.begin(talk.session.key, extended=False)

    assert session is talk.session
    assert session.client is client
    assert holder.cuts == ["the session was resumed by another connection"]
    talk.ended()
    assert session.client is client


async def test_a_holder_that_leaves_while_it_is_asked_need_not_be_cut() -> None:
    scene = Scene()
    talk, holder = await scene.begun()
    holder.on_asked = talk.ended
    other, client = scene.greet()

    session = await other.begin(talk.session.key, extended=False)

    assert (session.client, holder.cuts) == (client, [])


# Ends of processes.


async def test_a_closed_process_can_be_read_for_a_while_and_is_then_forgotten() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    entry, process = scene.run(talk)
    process.exit_with(0)
    process.close()

    scene.loop.move(29.9)
    assert talk.session.find("p") is entry
    scene.loop.move(0.1)

    assert talk.session.find("p") is None
    assert process.calls == [("forget", Leftovers.SPARE)]


@pytest.mark.parametrize("end", ["expiry", "close", "leaving", "stop"])
async def test_what_a_forgotten_process_left_behind_ends_with_its_session(end: str) -> None:
    """However that ends.  Until then it is spared: it may be what the session is for."""
    scene = Scene()
    talk, _ = await scene.begun(FakeClient(transport="stdio" if end == "leaving" else "websocket"))
    _, process = scene.run(talk)
    process.has_leftovers = True
    process.exit_with(0)
    process.close()
    scene.loop.move(30.0)
    before = list(process.calls)

    if end == "close":
        await talk.finish()
    elif end == "stop":
        scene.endpoint.close()
    else:
        talk.ended()
        scene.loop.move(30.0)

    assert before == [("forget", Leftovers.SPARE)]
    assert process.calls == [*before, TERMINATED if end == "close" else ENDED]


async def test_a_client_that_is_away_for_a_while_finds_what_its_processes_left_behind() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)
    process.has_leftovers = True
    process.exit_with(0)
    process.close()
    scene.loop.move(30.0)

    talk.ended()
    scene.loop.move(29.0)
    again, _ = scene.greet()
    await again.begin(talk.session.key, extended=False)
    scene.loop.move(60.0)

    assert ENDED not in process.calls


async def test_a_forgotten_process_that_left_nobody_behind_is_not_thought_of_again() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)
    process.exit_with(0)
    process.close()
    scene.loop.move(30.0)

    await talk.finish()

    assert process.calls == [("forget", Leftovers.SPARE)]


async def test_a_closed_process_is_forgotten_in_time_whoever_else_is_waited_for() -> None:
    """The timer was set for somebody who is due later."""
    scene = Scene()
    away, _ = await scene.begun()
    away.ended()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)

    process.exit_with(0)
    process.close()
    scene.loop.move(29.0)
    kept = scene.endpoint.find(talk.session, "p")
    scene.loop.move(2.0)

    assert kept is not None
    assert scene.endpoint.find(talk.session, "p") is None


async def test_a_process_that_exited_and_is_not_closed_is_kept() -> None:
    """Somebody it left behind may still write."""
    scene = Scene()
    talk, _ = await scene.begun()
    entry, process = scene.run(talk)
    process.exit_with(0)

    scene.loop.move(3600.0)

    assert talk.session.find("p") is entry


async def test_a_closed_process_of_a_session_that_ended_is_forgotten_once_more_without_harm() -> None:
    scene = Scene()
    talk, _ = await scene.begun(FakeClient(transport="stdio"))
    _, process = scene.run(talk)
    process.exit_with(0)
    process.close()
    talk.ended()

    scene.loop.move(60.0)

    assert process.calls[0] == ENDED


async def test_a_session_that_is_closed_gives_everything_up_before_it_waits_for_anybody() -> None:
    """One that takes its time must not let the others run on; and all of them were ended, not lost."""
    scene = Scene()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)
    process.gate = asyncio.Event()
    stray, given_up = FakeProcess(), list[str]()
    stray.has_leftovers = True
    talk.session.strays.keep(stray)
    scope = talk.session
    scope.reserve("starting").cancel_with(lambda: given_up.append("starting"))

    task = asyncio.create_task(talk.finish())
    await process.asked.wait()
    process.exit_with(137)

    assert (stray.calls, given_up) == ([TERMINATED], ["starting"])
    process.gate.set()
    scope.release("starting")
    await task


async def test_the_close_ends_every_session_and_every_timer() -> None:
    scene = Scene()
    here, _ = await scene.begun()
    gone, _ = await scene.begun()
    processes = [scene.run(talk)[1] for talk in (here, gone)]
    gone.ended()

    scene.endpoint.close()
    scene.endpoint.close()

    assert (len(scene.endpoint.sessions), scene.loop.timers) == (0, [])
    assert [process.calls[-1] for process in processes] == [ENDED] * 2


# Written down, and read again.


async def test_what_a_principal_has_kept_is_resumed_on_its_own_account() -> None:
    """Its ended processes are charged there, and are given back there when they are forgotten."""

    class Accounts(FakeBackend):
        def __init__(self) -> None:
            super().__init__()
            self.principals: list[Principal] = []

        def on_behalf_of(self, principal: Principal, peer: str = "") -> FakeBackend:
            self.principals.append(principal)
            return self

    first = Scene()
    await first.begun(FakeClient(principal=Principal("ann", "issuer")))
    await first.begun()
    accounts = Accounts()

    ExecEndpoint(accounts, METHODS, loop=first.loop.loop, limits=LIMITS).resume(first.endpoint.snapshot())

    # Once for the session of each, and once for what each shares.
    assert accounts.principals == 2 * [Principal("ann", "issuer"), ANYBODY]
