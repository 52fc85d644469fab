"""The first words of an app client: what it is told, what is refused, and which dialect is picked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import (
    TRANSPORTS,
    AppClient,
    Place,
    app_client,
    exec_params,
    greeting,
    serving,
    spawn_params,
    stranger,
)
from tests.fakes.client import Client, client

EXPERIMENTAL: dict[str, dict[str, Any]] = {
    "process/spawn": spawn_params("h", "true"),
    "process/writeStdin": {"processHandle": "h", "closeStdin": True},
    "process/resizePty": {"processHandle": "h", "size": {"rows": 1, "cols": 1}},
    "process/kill": {"processHandle": "h"},
}
STABLE: dict[str, dict[str, Any]] = {
    "command/exec": exec_params("true"),
    "command/exec/write": {"processId": "c", "closeStdin": True},
    "command/exec/resize": {"processId": "c", "size": {"rows": 1, "cols": 1}},
    "command/exec/terminate": {"processId": "c"},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for the tests that need no other."""
    with serving("ws", tmp_path_factory.mktemp("handshake")) as place:
        yield place


@pytest.fixture(scope="module")
def auto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server that finds out by itself what a client speaks."""
    with serving("ws", tmp_path_factory.mktemp("auto"), "--endpoint", "auto") as place:
        yield place


# The answer.


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("endpoint", ["app", "auto"])
async def test_the_answer_says_who_serves_and_on_what(tmp_path: Path, transport: str, endpoint: str) -> None:
    """Clients choose paths and commands by the platform, so all four members must be there."""
    env = {"HOME": str(tmp_path)}
    with serving(transport, tmp_path, "--endpoint", endpoint, env=env) as place:
        async with stranger(place) as talking:
            answer = await talking.initialize()
            exit_code = (await talking.execute("true"))["exitCode"]

    agent = answer.pop("userAgent")
    assert agent.startswith("holdfast/")
    assert agent.endswith("(test; 1)")
    assert answer == {
        "codexHome": f"{tmp_path}/.holdfast",
        "platformFamily": "unix",
        "platformOs": "linux",
    }
    assert exit_code == 0


@pytest.mark.parametrize(
    "params",
    [
        {"clientInfo": {"name": "o", "version": "1"}},
        {"clientInfo": {"name": "o", "version": "1"}, "capabilities": None},
        {"clientInfo": {"name": "o", "title": None, "version": "1"}, "capabilities": {}},
        {"clientInfo": {"name": "o", "title": "T", "version": "1", "x": 1}, "zzz": 1},
        {"clientInfo": {"name": "o", "version": "1"}, "capabilities": {"foo": 1}},
        {"clientInfo": {"name": "", "version": ""}},
        {"clientInfo": {"name": "\té日本\x80\"'", "version": "1\n2"}},
        {"clientInfo": {"name": "o", "version": "1"}, "capabilities": {"optOutNotificationMethods": None}},
        {"clientInfo": {"name": "o", "version": "1"}, "capabilities": {"optOutNotificationMethods": [""]}},
    ],
    ids=str,
)
async def test_a_greeting_is_taken_in_every_legal_form(place: Place, params: Any) -> None:
    """What is optional may be left out, and what is unknown is left aside."""
    async with stranger(place) as talking:
        answer = await talking.call("initialize", params)

    assert set(answer) == {"userAgent", "codexHome", "platformFamily", "platformOs"}


async def test_requests_may_follow_the_greeting_in_the_same_packet_and_without_initialized(
    place: Place,
) -> None:
    """The notification is a courtesy here; a round trip less for everybody who does not wait."""
    async with stranger(place) as talking:
        greeted, spawned = talking.post_together(
            ("initialize", greeting(experimentalApi=True)),
            ("process/spawn", spawn_params("h", "true")),
        )
        answers = [await talking.answer(greeted), await talking.answer(spawned)]
        told = await talking.exited("h")

    assert "userAgent" in answers[0]["result"]
    assert answers[1]["result"] == {}
    assert told["exitCode"] == 0


# Refusals.


@pytest.mark.parametrize("method", [*EXPERIMENTAL, *STABLE])
async def test_nothing_is_done_before_the_greeting(place: Place, method: str) -> None:
    """Who has not said what it can do is not served."""
    async with stranger(place) as talking:
        refusal = await talking.refusal(method, {**EXPERIMENTAL, **STABLE}[method])

    assert refusal == (-32600, "Not initialized")


async def test_a_second_greeting_is_refused_and_changes_nothing(place: Place) -> None:
    """The capabilities of a connection are settled once."""
    async with app_client(place) as talking:
        refusal = await talking.refusal("initialize", greeting(experimentalApi=False))
        answer = await talking.spawn("h", "true")
        await talking.exited("h")

    assert refusal == (-32600, "Already initialized")
    assert answer == {}


@pytest.mark.parametrize("name", ["a\nb", "\x00", "\x1f", "x\x7f", "\r"])
async def test_a_name_that_no_header_can_hold_is_refused_and_a_better_one_is_taken(
    place: Place, name: str
) -> None:
    """A failed greeting leaves the connection as it was."""
    async with stranger(place) as talking:
        refusal = await talking.refusal("initialize", greeting(name=name))
        still_none = await talking.refusal("command/exec", exec_params("true"))
        answer = await talking.initialize()

    text = f"Invalid clientInfo.name: '{name}'. Must be a valid HTTP header value."
    assert refusal == (-32600, text)
    assert still_none == (-32600, "Not initialized")
    assert "userAgent" in answer


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (None, "missing field `params`"),
        ({}, "missing field `clientInfo`"),
        ([], "invalid type: sequence, expected struct InitializeParams"),
        ("x", 'invalid type: string "x", expected struct InitializeParams'),
        ({"clientInfo": None}, "invalid type: null, expected struct ClientInfo"),
        ({"clientInfo": {}}, "missing field `name`"),
        ({"clientInfo": {"name": "o"}}, "missing field `version`"),
        ({"clientInfo": {"name": 1, "version": "1"}}, "invalid type: integer `1`, expected a string"),
        (
            greeting(experimentalApi=None),
            "invalid type: null, expected a boolean",
        ),
        (
            greeting(optOutNotificationMethods={}),
            "invalid type: map, expected a sequence",
        ),
        (
            greeting(optOutNotificationMethods=[1]),
            "invalid type: integer `1`, expected a string",
        ),
        (
            {"clientInfo": {"name": "o", "version": "1"}, "capabilities": 1},
            "invalid type: integer `1`, expected struct InitializeCapabilities",
        ),
    ],
    ids=str,
)
async def test_a_greeting_that_is_none_is_refused_in_the_decoders_words(
    place: Place, params: Any, text: str
) -> None:
    """They name what was expected, so that a client's author sees the mistake."""
    async with stranger(place) as talking:
        first = await talking.refusal("initialize", params)
        await talking.initialize()
        second = await talking.refusal("initialize", params)

    assert first == (-32600, f"Invalid request: {text}")
    assert second == first, "the decoder comes before the state of the connection"


@pytest.mark.parametrize("capabilities", [{}, {"experimentalApi": False}], ids=["absent", "false"])
async def test_the_experimental_methods_need_the_capability_each_by_its_name(
    place: Place, capabilities: dict[str, Any]
) -> None:
    """A client that does not know what may change must not come to rely on it."""
    async with stranger(place) as talking:
        await talking.call("initialize", greeting(**capabilities))
        refusals = {method: await talking.refusal(method, params) for method, params in EXPERIMENTAL.items()}
        empty = await talking.refusal("process/spawn", spawn_params("h"))
        malformed = await talking.refusal("process/spawn", {})
        profile = await talking.refusal(
            "command/exec", {"command": ["true"], "permissionProfile": ":danger-full-access"}
        )
        without = await talking.call("command/exec", {"command": ["true"], "permissionProfile": None})

    assert refusals == {
        method: (-32600, f"{method} requires experimentalApi capability") for method in EXPERIMENTAL
    }
    assert empty == (-32600, "process/spawn requires experimentalApi capability")
    assert malformed == (-32600, "Invalid request: missing field `command`")
    assert profile == (-32600, "command/exec.permissionProfile requires experimentalApi capability")
    assert without["exitCode"] == 0


async def test_an_unknown_method_is_answered_with_the_known_ones(place: Place) -> None:
    """Also before the greeting, because the name is read first."""
    async with stranger(place) as talking:
        code, text = await talking.refusal("nosuch/method", {})

    assert code == -32600
    assert text.startswith("Invalid request: unknown variant `nosuch/method`, expected one of `initialize`, ")
    assert all(f"`{method}`" in text for method in (*EXPERIMENTAL, *STABLE))


# Notifications.


SCRIPT = ("sh", "-c", "echo out; echo err >&2")


@pytest.mark.parametrize(
    "silenced",
    [
        ["process/outputDelta"],
        ["process/exited"],
        ["command/exec/outputDelta"],
        ["process/outputDelta", "process/exited", "command/exec/outputDelta"],
        ["process/*", "PROCESS/EXITED", "", "nosuch"],
    ],
    ids=str,
)
async def test_notifications_a_client_does_not_want_are_not_sent(place: Place, silenced: list[str]) -> None:
    """By their exact names; everything else comes as ever."""
    everything = {"process/outputDelta", "process/exited", "command/exec/outputDelta"}
    async with app_client(place, optOutNotificationMethods=silenced) as talking:
        await talking.spawn("h", *SCRIPT, streamStdoutStderr=True)
        # The handle is free again exactly when the exit was told, or would have been.
        while "error" in (
            again := await talking.answer(talking.post("process/spawn", spawn_params("h", "true")))
        ):
            assert again["error"]["message"] == 'duplicate active process handle: "h"'
        result = await talking.execute(*SCRIPT, processId="c", streamStdoutStderr=True)

    heard = {message["method"] for message in talking.messages if "method" in message}
    assert heard == everything - set(silenced)
    assert result == {"exitCode": 0, "stdout": "", "stderr": ""}


async def test_every_notification_says_when_it_was_made(place: Place) -> None:
    """Beside the params, in milliseconds of the wall clock; answers carry no such member."""
    before = int(time.time() * 1000)
    async with app_client(place) as talking:
        await talking.spawn("h", *SCRIPT, streamStdoutStderr=True)
        await talking.exited("h")
        await talking.execute(*SCRIPT, processId="c", streamStdoutStderr=True)
    after = int(time.time() * 1000)

    told = [message for message in talking.messages if "method" in message]
    times = [message["emittedAtMs"] for message in told]
    assert {message["method"] for message in told} == {
        "process/outputDelta",
        "process/exited",
        "command/exec/outputDelta",
    }
    assert {frozenset(message) for message in told} == {frozenset({"method", "params", "emittedAtMs"})}
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= after
    assert not [message for message in talking.messages if "id" in message and "emittedAtMs" in message]


# Which dialect.


async def test_auto_serves_both_dialects_on_one_listener_at_once(auto: Place) -> None:
    """One server is enough for clients of both kinds, and their names do not meet."""
    async with app_client(auto) as app, client(auto.url) as executing:
        await app.spawn("p", "cat", streamStdin=True)
        await executing.start("p", "cat", pipeStdin=True)
        await app.write("p", b"to the app", close=True)
        await executing.write("p", b"to exec", "w")
        exited = await app.exited("p")
        tale = executing.tale("p")
        await executing.until(lambda: tale.data() == b"to exec")
        running = await executing.terminate("p")

    assert exited["stdout"] == "to the app"
    assert running


@pytest.mark.parametrize(
    "first",
    [
        b'{"id":1,"method":"command/exec/terminate","params":{"processId":"x"}}',
        b'{"id":1,"method":"initialize","params":{"clientName":1}}',
        b'{"id":1,"method":"initialize","params":{}}',
        b'{"id":1,"method":"initialize"}',
        b'{"id":1,"method":"initialize","params":[{"name":"o","version":"1"},null]}',
        b"garbage",
    ],
)
async def test_auto_takes_whoever_does_not_begin_as_an_app_for_an_exec_client(
    auto: Place, first: bytes
) -> None:
    """The exec dialect answers everything, so that nobody is left without a word."""
    talking = await Client.connect(auto.url)
    try:
        talking.wire.send_text(first)
        await talking.until(lambda: talking.messages)
        await talking.initialize()
    finally:
        await talking.close()

    assert talking.messages[0]["error"]["code"] in (-32600, -32601, -32602)
    assert talking.session


async def test_auto_is_not_asked_twice(auto: Place) -> None:
    """The first message decides for the whole connection."""
    async with app_client(auto) as talking:
        refusal = await talking.refusal("initialize", {"clientName": "exec"})

    assert refusal == (-32600, "Invalid request: missing field `clientInfo`")


async def test_a_pinned_endpoint_does_not_listen_to_the_greeting(place: Place) -> None:
    """Whoever says exec to an app endpoint is told what is missing."""
    talking = AppClient(await place.link())
    refusal = await talking.refusal("initialize", {"clientName": "exec"})
    await talking.close()

    assert refusal == (-32600, "Invalid request: missing field `clientInfo`")
