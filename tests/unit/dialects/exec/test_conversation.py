"""One client's talk with the exec endpoint: the handshake, what is let through, and the flow of output."""

from __future__ import annotations

import json

import pytest

from holdfast.dialects.dialect import Breach, Method
from holdfast.dialects.exec.conversation import Handshake
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import LimitReached, OutOfTurn, SessionUnknown, UnknownMethod
from holdfast.principal import Grant, Principal
from holdfast.value import replace
from holdfast.wire.jsonrpc import Notification, Response
from tests.fakes.dialects import FakeClient
from tests.fakes.exec_talk import INITIALIZED, ExecTalk, ready, started

EXEC = Method(decode=lambda value: value, handle=lambda talk, params: None, family="exec")


# The handshake.


async def test_a_method_of_a_family_waits_for_the_handshake() -> None:
    talk = ExecTalk().talk

    with pytest.raises(OutOfTurn, match=r"^client must call initialize before using exec methods$"):
        talk.gate(EXEC)
    await talk.begin(None, extended=False)
    with pytest.raises(OutOfTurn, match=r"^client must send initialized before using exec methods$"):
        talk.gate(EXEC)
    talk.notified(INITIALIZED)
    talk.gate(EXEC)


def test_the_handshake_itself_passes_at_any_time() -> None:
    talk = ExecTalk().talk

    talk.gate(METHODS["initialize"])


async def test_a_second_initialize_is_refused() -> None:
    talk = ExecTalk().talk
    session = await talk.begin(None, extended=False)

    for resume in (None, session.key, "nope"):
        with pytest.raises(OutOfTurn, match=r"^initialize may only be sent once per connection$"):
            await talk.begin(resume, extended=False)

    assert talk.session is session


async def test_a_failed_initialize_may_be_tried_again() -> None:
    scene = ExecTalk()
    talk, client = scene.talk, scene.client

    with pytest.raises(SessionUnknown):
        await talk.begin("nope", extended=False)
    with pytest.raises(Breach):
        talk.notified(INITIALIZED)
    session = await talk.begin(None, extended=False)

    assert session.client is client
    assert talk.stage is Handshake.INITIALIZED


@pytest.mark.parametrize("params", [None, {}, 5, [1, {"a": 2}], "x"])
async def test_initialized_is_taken_with_any_params_and_any_number_of_times(params: object) -> None:
    talk = ExecTalk().talk
    await talk.begin(None, extended=False)

    for _ in range(2):
        talk.notified(Notification("initialized", params))

    assert talk.stage is Handshake.READY


@pytest.mark.parametrize("method", ["nope", "initialize", "process/read", ""])
async def test_any_other_notification_is_a_breach(method: str) -> None:
    talk = (await ready()).talk

    with pytest.raises(Breach, match=f"^unexpected notification `{method}`$"):
        talk.notified(Notification(method, None))


async def test_an_answer_to_nothing_is_a_breach() -> None:
    talk = (await ready()).talk

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
    talk = ExecTalk(client=client).talk

    answer = json.loads(talk.malformed("expected value at line 1 column 1"))

    words = f"failed to parse {words}: expected value at line 1 column 1"
    assert answer == {"id": -1, "error": {"code": -32600, "message": words, "data": {"kind": "malformed"}}}


def test_errors_are_explained_in_this_dialect() -> None:
    talk = ExecTalk().talk

    assert talk.explain(UnknownMethod("x")).code == -32601


# The flow of output.


async def test_a_client_that_is_behind_shuts_the_valve_of_its_session() -> None:
    talk = (await ready()).talk
    resumed: list[str] = []

    talk.congested()
    shut = talk.session.valve.is_open
    talk.session.valve.wait(lambda: resumed.append("resumed"))
    talk.drained()

    assert (shut, talk.session.valve.is_open, resumed) == (False, True, ["resumed"])


async def test_the_valve_opens_when_the_client_leaves() -> None:
    """Nobody would open it again, and the processes would stand still."""
    talk = (await ready()).talk
    talk.congested()

    talk.ended()

    assert talk.session.valve.is_open


async def test_a_client_that_is_behind_stays_so_when_it_opens_another_session() -> None:
    """It is told once; a new session whose valve is open would fill the buffer without a bound."""
    scene = await ready()
    scene.talk.congested()

    await scene.call("session/close")
    await scene.shake_hands()
    while_behind = scene.talk.session.valve.is_open
    scene.talk.drained()

    assert (while_behind, scene.talk.session.valve.is_open) == (False, True)


async def test_a_client_that_catches_up_between_two_sessions_is_not_behind_in_the_second() -> None:
    """Nobody would open its valve."""
    scene = await ready()
    scene.talk.congested()
    await scene.call("session/close")

    scene.talk.drained()
    await scene.shake_hands()

    assert scene.talk.session.valve.is_open


def test_the_end_of_a_connection_without_a_session_changes_nothing() -> None:
    scene = ExecTalk()

    scene.talk.congested()
    scene.talk.drained()
    scene.talk.ended()

    assert (len(scene.endpoint.sessions), len(scene.endpoint.tenants), scene.loop.timers) == (0, 0, [])


# Requests that wait for the end of a process.


def test_only_so_many_requests_may_wait_for_an_end_and_each_makes_room() -> None:
    talk = ExecTalk().talk
    waiting = [talk.waiting_for_end(counted=True) for _ in range(1024)]
    for each in waiting:
        each.__enter__()

    for _ in range(2):
        with pytest.raises(LimitReached) as caught, talk.waiting_for_end(counted=True):
            pass
    with talk.waiting_for_end(counted=False):
        pass
    waiting.pop().__exit__(None, None, None)
    with talk.waiting_for_end(counted=True):
        pass

    assert (caught.value.limit, caught.value.value) == ("requests waiting for the end of a process", 1024)


def test_a_failure_makes_room_too() -> None:
    talk = ExecTalk().talk

    for _ in range(1025):
        with pytest.raises(KeyError), talk.waiting_for_end(counted=True):
            raise KeyError


# Whose it is.


ALICE = Principal("alice", "i")


async def test_a_client_is_in_the_tenant_of_its_principal_until_it_has_gone() -> None:
    scene = ExecTalk(client=FakeClient(principal=ALICE))
    other = ExecTalk(client=FakeClient(principal=replace(ALICE, grant=Grant(sessions=2))), beside=scene)
    await scene.shake_hands()
    await other.shake_hands()
    tenant = scene.talk.session.tenant

    assert (other.talk.session.tenant is tenant, tenant.identity, tenant.clients) == (True, ALICE.identity, 2)
    assert (tenant.sessions, len(scene.endpoint.tenants)) == (2, 1)

    for each in (scene, other):
        each.talk.ended()
    assert (tenant.clients, tenant.sessions, len(scene.endpoint.tenants)) == (0, 2, 1)

    scene.loop.move(scene.limits.detached_seconds + 1)
    assert (tenant.sessions, len(scene.endpoint.tenants)) == (0, 0)


async def test_two_principals_have_two_tenants() -> None:
    scene = ExecTalk(client=FakeClient(principal=ALICE))
    other = ExecTalk(client=FakeClient(principal=Principal("alice", "j")), beside=scene)
    await scene.shake_hands()
    await other.shake_hands()

    refused = await ExecTalk(client=FakeClient(principal=Principal("bob", "i")), beside=scene).refusal(
        "session/takeOver", {"sessionId": scene.talk.session.key}
    )

    assert scene.talk.session.tenant is not other.talk.session.tenant
    assert str(refused) == str(SessionUnknown(scene.talk.session.key))


async def test_a_failed_resume_leaves_the_tenant_with_the_connection() -> None:
    """Its client may try again, and must not be counted twice."""
    scene = ExecTalk(client=FakeClient(principal=ALICE))
    for _ in range(3):
        await scene.refusal("initialize", {"clientName": "x", "resumeSessionId": "none"})
    assert [tenant.clients for tenant in scene.endpoint.tenants] == [1]

    scene.talk.ended()

    assert len(scene.endpoint.tenants) == 0


async def test_a_token_may_allow_fewer_sessions_than_the_server() -> None:
    """Those that wait for their client count: they have processes, too."""
    few = replace(ALICE, grant=Grant(sessions=1))
    scene = ExecTalk(client=FakeClient(principal=few))
    await scene.shake_hands()
    scene.talk.ended()
    second = ExecTalk(client=FakeClient(principal=few), beside=scene)

    refused = await second.refusal("initialize", {"clientName": "x"})
    await second.shake_hands(resumeSessionId=scene.talk.session.key)
    await second.call("session/close")
    await second.shake_hands()

    assert isinstance(refused, LimitReached)
    assert (refused.value, refused.name) == (1, "token.sessions")


# How much of its limits it uses.


async def test_what_a_client_uses_is_counted_by_the_names_of_the_limits() -> None:
    scene, _ = await started()
    before = ExecTalk(beside=scene).talk.usage()
    assert scene.talk.exchanges is scene.talk.exchanges
    assert scene.talk.files is scene.talk.files
    scene.talk.congested()
    scene.talk.drained()

    used = scene.talk.usage()
    scene.talk.ended()

    assert set(before.values()) == {0}
    assert {name for name, amount in used.items() if amount} == {"session.names", "session.name_bytes"}
    assert used["session.names"] == 1
