"""The catalog of the app endpoint is what its table does and what its code sends."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from holdfast.dialects.app.methods import CATALOG, METHODS
from holdfast.model import Stream
from holdfast.protocol import app as m
from tests.fakes.app_talk import EXPERIMENTAL, AppTalk, ready
from tests.fakes.dialects import FakeProcess
from tests.fakes.exactly import exactly

SPAWN = {"command": ["x"], "processHandle": "p", "cwd": "/", "tty": True}
EXEC = {"command": ["x"], "processId": "p", "tty": True}

CALLS: dict[str, Any] = {
    "process/writeStdin": {"processHandle": "p", "deltaBase64": "aGk="},
    "process/resizePty": {"processHandle": "p", "size": {"rows": 1, "cols": 1}},
    "process/kill": {"processHandle": "p"},
    "command/exec/write": {"processId": "p", "closeStdin": True},
    "command/exec/resize": {"processId": "p", "size": {"rows": 1, "cols": 1}},
    "command/exec/terminate": {"processId": "p"},
}
"""About something that runs already."""


def test_every_method_is_in_the_catalog() -> None:
    """A method that no schema shows is found by those who read the source, and by nobody else."""
    assert [call.name for call in CATALOG.calls] == list(METHODS)


@pytest.mark.parametrize("call", CATALOG.calls, ids=lambda call: call.name)
def test_params_are_those_that_the_table_decodes(call: Any) -> None:
    """A schema of other params than are decoded makes every client wrong."""
    decode = METHODS[call.name].decode

    assert isinstance(decode, partial)
    assert call.params is decode.keywords["kind"]


@pytest.mark.parametrize(
    "each",
    [*CATALOG.calls, *CATALOG.client_notifications, *CATALOG.server_notifications],
    ids=lambda each: each.name,
)
def test_everything_has_a_summary_of_one_line(each: Any) -> None:
    """It becomes a comment in whatever is generated from it."""
    assert each.summary.endswith(".")
    assert "\n" not in each.summary


async def command(process: FakeProcess, params: dict[str, Any]) -> Any:
    """The result of a command that says something and ends."""
    scene = await ready(process)
    answer = await scene.start("command/exec", params)
    process.say(b"x" * 200)
    process.say(b"y", Stream.STDERR)
    process.exit_with(1)
    process.close()
    return msgspec.to_builtins(await answer)


@pytest.mark.parametrize("call", CATALOG.calls, ids=lambda call: call.name)
async def test_the_result_of_a_call_is_exactly_of_its_type(call: Any) -> None:
    """A client that was generated from the schema reads nothing else."""
    process = FakeProcess()
    if call.name == "initialize":
        result = await AppTalk().call("initialize", EXPERIMENTAL)
    elif call.name == "process/spawn":
        result = await (await ready(process)).call("process/spawn", SPAWN)
    elif call.name == "command/exec":
        result = await command(process, {"command": ["x"]})
    else:
        scene = await ready(process)
        start = ("process/spawn", SPAWN) if call.name.startswith("process/") else ("command/exec", EXEC)
        await scene.start(*start)
        result = await scene.call(call.name, CALLS[call.name])

    exactly(result, call.result)


async def test_a_result_that_was_cut_although_all_was_wanted_is_of_the_same_type() -> None:
    """The members that say so are absent otherwise."""
    result = await command(FakeProcess(), {"command": ["x"], "disableOutputCap": True})

    assert exactly(result, m.ExecResult).stdout_cap_reached is True
    assert "stderrCapReached" not in result


async def test_what_is_told_is_exactly_of_its_type() -> None:
    """Deltas are written by hand."""
    process, other = FakeProcess(), FakeProcess()
    scene = await ready(process, other)
    streams = {"streamStdoutStderr": True, "tty": False}
    await scene.start("process/spawn", SPAWN | streams)
    await scene.start("command/exec", EXEC | streams)

    for each in (process, other):
        each.say(b"hi")
        each.say(b"x" * (2 << 20), Stream.STDERR)
        each.exit_with(0)
        each.close()

    told = {notice.name: notice.params for notice in CATALOG.server_notifications}
    sent = scene.client.sent
    assert {message["method"] for message in sent} == told.keys()
    for message in sent:
        assert CATALOG.stamped
        assert message.keys() == {"method", "params", "emittedAtMs"}
        kind = told[message["method"]]
        assert kind is not None
        exactly(message["params"], kind)
