"""The exec endpoint: the handshake, and what outlives a connection.  The clock is moved by hand."""

from __future__ import annotations

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.dialect import Breach, Method, UnknownMethod, WireError
from holdfast.dialects.exec.endpoint import ExecConversation, ExecEndpoint, Stage
from holdfast.dialects.exec.feed import Feed
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import OutOfTurn, SessionBusy, SessionUnknown
from holdfast.telemetry import Tally
from holdfast.wire.jsonrpc import Notification, Response
from tests.fakes.dialects import FakeBackend, FakeClient, FakeProcess, HandLoop

LIMITS = SessionLimits(
    detached_seconds=30.0, closed_seconds=30.0, attached_bytes=10, detached_bytes=99, probe_seconds=1.5
)
INITIALIZED = Notification("initialized", None)


class Scene:
    """An endpoint and its surroundings."""

    def __init__(self) -> None:
        self.loop = HandLoop()
        self.tally = Tally()
        self.endpoint = ExecEndpoint(
            FakeBackend(), METHODS, loop=self.loop.loop, telemetry=self.tally, limits=LIMITS
        )

    def greet(self, client: FakeClient | None = None) -> tuple[ExecConversation, FakeClient]:
        client = client or FakeClient()
        talk = self.endpoint.greet(client)
        client.on_cut = talk.ended
        return talk, client

    async def begun(self, client: FakeClient | None = None) -> tuple[ExecConversation, FakeClient]:
        talk, client = self.greet(client)
        await talk.begin(None)
        talk.notified(INITIALIZED)
        return talk, client

    def run(self, talk: ExecConversation, name: str = "p") -> tuple[Feed, FakeProcess]:
        """A process of the session, as ``process/start`` makes it."""
        process = FakeProcess()
        feed = Feed(talk.session, name, process, self.endpoint, now=self.loop.time())
        talk.session.scope.settle(talk.session.scope.reserve(name), feed)
        self.tally.process_started()
        return feed, process

    def finished(self) -> dict[str, int]:
        metric = "exec_server_processes_finished_total"
        return {key[1]: count for key, count in self.tally.counts.items() if key[0] == metric}


EXEC = Method(decode=lambda value: value, handle=lambda talk, params: None, family="exec")


# The handshake.


async def test_a_method_of_a_family_waits_for_the_handshake() -> None:
    talk, _ = Scene().greet()

    with pytest.raises(OutOfTurn, match=r"^client must call initialize before using exec methods$"):
        talk.gate(EXEC)
    await talk.begin(None)
    with pytest.raises(OutOfTurn, match=r"^client must send initialized before using exec methods$"):
        talk.gate(EXEC)
    talk.notified(INITIALIZED)
    talk.gate(EXEC)


def test_the_handshake_itself_passes_at_any_time() -> None:
    talk, _ = Scene().greet()

    talk.gate(METHODS["initialize"])


async def test_a_second_initialize_is_refused() -> None:
    talk, _ = Scene().greet()
    session = await talk.begin(None)

    for resume in (None, session.key, "nope"):
        with pytest.raises(OutOfTurn, match=r"^initialize may only be sent once per connection$"):
            await talk.begin(resume)

    assert talk.session is session


async def test_a_failed_initialize_may_be_tried_again() -> None:
    talk, client = Scene().greet()

    with pytest.raises(SessionUnknown):
        await talk.begin("nope")
    with pytest.raises(Breach):
        talk.notified(INITIALIZED)
    session = await talk.begin(None)

    assert session.client is client
    assert talk.stage is Stage.INITIALIZED


@pytest.mark.parametrize("params", [None, {}, 5, [1, {"a": 2}], "x"])
async def test_initialized_is_taken_with_any_params_and_any_number_of_times(params: object) -> None:
    talk, _ = Scene().greet()
    await talk.begin(None)

    for _ in range(2):
        talk.notified(Notification("initialized", params))

    assert talk.stage is Stage.READY


@pytest.mark.parametrize("method", ["nope", "initialize", "process/read", ""])
async def test_any_other_notification_is_a_breach(method: str) -> None:
    talk, _ = await Scene().begun()

    with pytest.raises(Breach, match=f"^unexpected notification `{method}`$"):
        talk.notified(Notification(method, None))


async def test_an_answer_to_nothing_is_a_breach() -> None:
    talk, _ = await Scene().begun()

    with pytest.raises(Breach, match="never sent: id 7"):
        talk.answered(Response(7))


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (FakeClient(), "websocket JSON-RPC message from exec-server websocket 127.0.0.1:5"),
        (FakeClient(transport="stdio", peer=""), "JSON-RPC message from exec-server stdio"),
    ],
)
def test_what_is_no_message_is_answered_with_where_it_came_from(client: FakeClient, words: str) -> None:
    talk = Scene().endpoint.greet(client)

    assert talk.malformed("expected value at line 1 column 1") == WireError(
        -32600, f"failed to parse {words}: expected value at line 1 column 1"
    )


def test_errors_are_explained_in_this_dialect() -> None:
    talk, _ = Scene().greet()

    assert talk.explain(UnknownMethod("x")).code == -32601


# Leaving and coming back.


async def test_a_session_waits_for_its_client_and_keeps_more_meanwhile() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    feed, process = scene.run(talk)

    talk.ended()
    process.say(b"unheard")
    scene.loop.move(29.9)

    assert scene.endpoint.sessions.find(talk.session.key) is talk.session
    assert feed.roomy
    assert process.calls == [("retain", 99)]


async def test_a_session_whose_client_stays_away_ends_with_its_processes() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)
    talk.ended()

    scene.loop.move(30.0)

    assert len(scene.endpoint.sessions) == 0
    assert process.calls == [("retain", 99), ("forget", "leftovers")]
    assert scene.finished() == {"terminated": 1}
    assert scene.loop.timers == []


async def test_a_client_that_cannot_come_back_takes_its_processes_along() -> None:
    """The other end of a pipe is gone for good."""
    scene = Scene()
    talk, _ = await scene.begun(FakeClient(transport="stdio"))
    _, process = scene.run(talk)
    given_up: list[str] = []
    talk.session.scope.reserve("starting").cancel_with(lambda: given_up.append("starting"))

    talk.ended()

    assert len(scene.endpoint.sessions) == 0
    assert process.calls == [("forget", "leftovers")]
    assert given_up == ["starting"]


async def test_a_client_that_comes_back_finds_its_session() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    _, process = scene.run(talk)
    talk.ended()
    scene.loop.move(10.0)

    again, client = scene.greet()
    session = await again.begin(talk.session.key)
    process.say(b"x")

    assert session is talk.session
    assert [message["method"] for message in client.sent] == ["process/output"]
    scene.loop.move(25.0)
    assert scene.endpoint.sessions.find(session.key) is session


async def test_what_was_kept_for_a_client_is_dropped_some_time_after_its_return() -> None:
    """A client that reads nothing must not keep the server's memory for ever."""
    scene = Scene()
    talk, _ = await scene.begun()
    (feed, process), (read_out, other) = scene.run(talk, "p"), scene.run(talk, "q")
    talk.ended()
    again, _ = scene.greet()
    await again.begin(talk.session.key)
    scene.endpoint.caught_up(read_out)
    process.calls.clear()
    other.calls.clear()

    scene.loop.move(29.9)
    before = list(process.calls)
    scene.loop.move(0.1)

    assert (before, process.calls, other.calls) == ([], [("retain", 10)], [])
    assert not feed.roomy


async def test_what_was_kept_stays_when_the_client_has_left_again() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    feed, _ = scene.run(talk)
    talk.ended()
    again, _ = scene.greet()
    await again.begin(talk.session.key)
    scene.loop.move(10.0)
    again.ended()

    scene.loop.move(25.0)

    assert feed.roomy


async def test_a_session_is_not_taken_from_a_client_that_is_alive() -> None:
    scene = Scene()
    talk, holder = await scene.begun(FakeClient(alive=True))
    other, _ = scene.greet()

    with pytest.raises(SessionBusy) as caught:
        await other.begin(talk.session.key)

    assert caught.value.session == talk.session.key
    assert (holder.asked, holder.cuts, talk.session.client) == ([1.5], [], holder)


async def test_a_session_is_taken_from_a_client_that_has_silently_gone() -> None:
    """After a network failure the kernel may hold the old connection open for a long time."""
    scene = Scene()
    talk, holder = await scene.begun(FakeClient(alive=False))
    other, client = scene.greet()

    session = await other.begin(talk.session.key)

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

    session = await other.begin(talk.session.key)

    assert (session.client, holder.cuts) == (client, [])


async def test_the_end_of_a_connection_without_a_session_changes_nothing() -> None:
    scene = Scene()
    talk, _ = scene.greet()

    talk.congested()
    talk.drained()
    talk.ended()

    assert (len(scene.endpoint.sessions), scene.loop.timers) == (0, [])


# The flow of output.


async def test_a_client_that_is_behind_shuts_the_valve_of_its_session() -> None:
    talk, _ = await Scene().begun()
    resumed: list[str] = []

    talk.congested()
    shut = talk.session.valve.is_open
    talk.session.valve.wait(lambda: resumed.append("resumed"))
    talk.drained()

    assert (shut, talk.session.valve.is_open, resumed) == (False, True, ["resumed"])


async def test_the_valve_opens_when_the_client_leaves() -> None:
    """Nobody would open it again, and the processes would stand still."""
    talk, _ = await Scene().begun()
    talk.congested()

    talk.ended()

    assert talk.session.valve.is_open


# Ends of processes.


@pytest.mark.parametrize(
    ("code", "terminated", "result"), [(0, False, "success"), (3, False, "error"), (137, True, "terminated")]
)
async def test_the_end_of_a_process_is_counted(code: int, result: str, *, terminated: bool) -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    feed, process = scene.run(talk)
    feed.terminated = terminated
    scene.loop.move(0.2)

    process.exit(code)

    assert scene.finished() == {result: 1}
    assert scene.tally.durations["exec_server_process_duration_seconds", result][7] == 1


async def test_a_closed_process_can_be_read_for_a_while_and_is_then_forgotten() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    feed, process = scene.run(talk)
    process.exit(0)
    process.close()

    scene.loop.move(29.9)
    assert talk.session.scope.find("p") is feed
    scene.loop.move(0.1)

    assert talk.session.scope.find("p") is None
    assert process.calls == [("forget",)]


async def test_a_process_that_exited_and_is_not_closed_is_kept() -> None:
    """Somebody it left behind may still write."""
    scene = Scene()
    talk, _ = await scene.begun()
    feed, process = scene.run(talk)
    process.exit(0)

    scene.loop.move(3600.0)

    assert talk.session.scope.find("p") is feed


async def test_a_closed_process_of_a_session_that_ended_is_forgotten_once_more_without_harm() -> None:
    scene = Scene()
    talk, _ = await scene.begun(FakeClient(transport="stdio"))
    _, process = scene.run(talk)
    process.exit(0)
    process.close()
    talk.ended()

    scene.loop.move(60.0)

    assert process.calls[0] == ("forget", "leftovers")
    assert scene.finished() == {"success": 1}


async def test_the_close_ends_every_session_and_every_timer() -> None:
    scene = Scene()
    here, _ = await scene.begun()
    gone, _ = await scene.begun()
    processes = [scene.run(talk)[1] for talk in (here, gone)]
    gone.ended()

    scene.endpoint.close()
    scene.endpoint.close()

    assert (len(scene.endpoint.sessions), scene.loop.timers) == (0, [])
    assert [process.calls[-1] for process in processes] == [("forget", "leftovers")] * 2
    assert scene.finished() == {"terminated": 2}
