"""The app endpoint: the handshake, who is let through, and what ends with a connection."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import AppLimits
from holdfast.dialects.app.conversation import AppConversation, AppEndpoint
from holdfast.dialects.app.explain import explain
from holdfast.dialects.app.methods import METHODS
from holdfast.dialects.app.order import COMMAND, PROCESS
from holdfast.dialects.dialect import Conversation, WireError
from holdfast.errors import HoldfastError, UnknownMethod
from holdfast.model import Leftovers
from holdfast.protocol.shapes import Nothing
from holdfast.value import replace
from holdfast.wire.jsonrpc import Notification, Request, Response
from tests.fakes.app_talk import CLIENT, AppLoop, AppTalk, ready
from tests.fakes.dialects import FakeBackend, FakeClient, FakeProcess

SPAWN = {"command": ["x"], "processHandle": "h", "cwd": "/tmp"}


async def refusal(scene: AppTalk, method: str, params: Any) -> WireError:
    with pytest.raises(HoldfastError) as caught:
        await scene.start(method, params)
    found = explain(caught.value, ())
    return WireError(found.code, found.message)  # The data is the same in all dialects.


# The handshake.


async def test_the_handshake_tells_who_we_are_and_on_what() -> None:
    scene = AppTalk()

    result = await scene.call("initialize", {"clientInfo": {"name": " demo ", "version": "1\t"}})

    agent = result.pop("userAgent")
    assert agent.startswith("holdfast/9.9.9 (Linux ")
    assert agent.endswith(") (demo; 1)")
    assert result == {"codexHome": "/home/é/.holdfast", "platformFamily": "unix", "platformOs": "linux"}


async def test_before_the_handshake_nothing_else_is_let_through() -> None:
    """Though well-formed: what is ill-formed is told first."""
    scene = AppTalk()

    for method, params in (
        ("process/spawn", SPAWN),
        ("process/kill", {"processHandle": "h"}),
        ("command/exec", {"command": ["x"]}),
        ("command/exec/terminate", {"processId": "c"}),
    ):
        assert await refusal(scene, method, params) == WireError(-32600, "Not initialized")
        malformed = await refusal(scene, method, None)
        assert malformed == WireError(-32600, "Invalid request: missing field `params`")


async def test_a_second_handshake_is_refused() -> None:
    scene = await ready()

    again = await refusal(scene, "initialize", {"clientInfo": CLIENT})
    malformed = await refusal(scene, "initialize", {})

    assert again == WireError(-32600, "Already initialized")
    assert malformed == WireError(-32600, "Invalid request: missing field `clientInfo`")


@pytest.mark.parametrize("name", ["a\nb", "\0", "\x1f", "a\x7f", "\r"])
async def test_a_name_that_no_header_can_carry_is_refused_and_may_be_corrected(name: str) -> None:
    scene = AppTalk()

    refused = await refusal(scene, "initialize", {"clientInfo": {"name": name, "version": "1"}})
    still = await refusal(scene, "process/spawn", SPAWN)
    await scene.call("initialize", {"clientInfo": CLIENT})

    text = f"Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value."
    assert refused == WireError(-32600, text)
    assert still.message == "Not initialized"


@pytest.mark.parametrize("name", ["", " ", "\t", "é 日本 \x80", "\"'", "x" * 5000])
async def test_any_other_name_is_taken(name: str) -> None:
    """Version and title are not looked at."""
    info = {"name": name, "version": "1\n2", "title": "\0"}

    await AppTalk().call("initialize", {"clientInfo": info})


@pytest.mark.parametrize("capabilities", [None, {}, {"experimentalApi": False}, {"foo": 1}])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("process/spawn", {**SPAWN, "command": []}),
        ("process/writeStdin", {"processHandle": "h"}),
        ("process/resizePty", {"processHandle": "h", "size": {"rows": 0, "cols": 0}}),
        ("process/kill", {"processHandle": "h"}),
    ],
)
async def test_processes_are_for_those_who_know_what_they_ask_for(
    method: str, params: dict[str, Any], capabilities: Any
) -> None:
    """Looked at before any mistake of the request itself, but for its form."""
    scene = AppTalk()
    await scene.call("initialize", {"clientInfo": CLIENT, "capabilities": capabilities})

    refused = await refusal(scene, method, params)

    assert refused == WireError(-32600, f"{method} requires experimentalApi capability")


async def test_commands_are_for_everybody() -> None:
    scene = AppTalk(FakeProcess())
    await scene.call("initialize", {"clientInfo": CLIENT})

    await scene.start("command/exec", {"command": ["x"]})

    assert len(scene.backend.specs) == 1


async def test_without_a_home_there_is_still_a_place_of_ours() -> None:
    scene = AppTalk()
    scene.backend.info = replace(scene.backend.info, cwd="/srv", home=None)

    result = await scene.call("initialize", {"clientInfo": CLIENT})

    assert result["codexHome"] == "/srv/.holdfast"


# What is passed over.


@pytest.mark.parametrize("method", ["initialized", "initialize", "nope", "process/kill", ""])
async def test_no_notification_changes_anything(method: str) -> None:
    scene = await ready()

    talk: Conversation = scene.talk
    talk.notified(Notification(method, {"x": 1}))
    talk.answered(Response(7))

    assert talk.malformed("anything") is None
    assert (scene.client.raw, scene.client.cuts) == ([], [])


def test_the_last_of_two_equal_keys_counts_and_binary_data_does_not() -> None:
    talk = AppTalk().talk

    assert not talk.binary
    assert talk.envelope.decode(b'{"id":1,"method":"x","params":{"a":1,"a":2}}') == Request(1, "x", {"a": 2})


def test_an_unknown_method_is_told_all_that_are_known() -> None:
    known = ", ".join(f"`{name}`" for name in METHODS)

    assert AppTalk().talk.explain(UnknownMethod("nope")) == WireError(
        -32600,
        f"Invalid request: unknown variant `nope`, expected one of {known}",
        {"kind": "unknownMethod", "method": "nope"},
    )


# What a client is told.


async def test_a_notification_carries_its_time() -> None:
    scene = await ready()

    scene.talk.notify("some/thing", Nothing())

    (told,) = scene.client.sent
    assert list(told) == ["method", "params", "emittedAtMs"]
    assert (told["method"], told["params"]) == ("some/thing", {})
    assert isinstance(told["emittedAtMs"], int)


async def test_a_client_that_is_behind_shuts_the_valve() -> None:
    scene = await ready()

    scene.talk.congested()
    shut = scene.talk.valve.is_open
    scene.talk.drained()

    assert (shut, scene.talk.valve.is_open) == (False, True)


# The end.


async def test_everything_of_a_client_ends_with_its_connection() -> None:
    """What runs, what is draining, and what starts; of both families, named or not."""
    scene = await ready(*(processes := [FakeProcess() for _ in range(4)]))
    await scene.start("process/spawn", SPAWN)
    await scene.start("process/spawn", {**SPAWN, "processHandle": "draining"})
    await scene.start("command/exec", {"command": ["x"], "processId": "c"})
    await scene.start("command/exec", {"command": ["x"]})
    processes[1].exit_with(0)
    given_up: list[str] = []
    scene.talk.commands.reserve("starting").cancel_with(lambda: given_up.append("starting"))

    scene.talk.ended()

    assert [process.calls[-1] for process in processes] == [("forget", Leftovers.END)] * 4
    assert given_up == ["starting"]
    assert scene.loop.timers == []
    assert scene.client.raw == []


@pytest.mark.parametrize(
    ("method", "params"),
    [("process/spawn", SPAWN), ("command/exec", {"command": ["x"]})],
)
async def test_what_a_process_left_behind_lives_as_long_as_its_connection(
    method: str, params: dict[str, Any]
) -> None:
    """A daemon that a command has started serves the next one, and nobody after that."""
    scene = await ready(process := FakeProcess())
    await scene.start(method, params)
    process.has_leftovers = True
    process.exit_with(0)
    process.close()
    before = process.calls[1:]

    scene.talk.ended()
    scene.talk.ended()

    assert before == [("forget", Leftovers.END_GROUP)]
    assert process.calls[1:] == [*before, ("forget", Leftovers.END)]


async def test_a_process_that_left_nobody_behind_is_not_kept() -> None:
    scene = await ready(process := FakeProcess())
    await scene.start("process/spawn", SPAWN)
    process.exit_with(0)
    process.close()

    scene.talk.ended()

    assert process.calls[1:] == [("forget", Leftovers.END_GROUP)]


async def test_clients_do_not_see_each_others_processes() -> None:
    scene = await ready(FakeProcess())
    await scene.start("process/spawn", SPAWN)

    other = scene.endpoint.greet(FakeClient())

    assert list(other.processes) == []
    assert isinstance(other, AppConversation)


def test_each_family_has_names_of_its_own() -> None:
    talk = AppTalk().talk

    assert talk.scope(PROCESS) is talk.processes
    assert talk.scope(COMMAND) is talk.commands


async def test_every_client_of_the_endpoint_means_it() -> None:
    endpoint = AppEndpoint(FakeBackend(), METHODS, loop=AppLoop().loop)

    assert endpoint.pick(b"whatever") is endpoint
    assert endpoint.limits == AppLimits()
