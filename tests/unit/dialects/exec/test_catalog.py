"""The catalog of the exec endpoint is what its table does and what its code sends."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holdfast.dialects.exec import messages as m
from holdfast.dialects.exec.catalog import CATALOG
from holdfast.dialects.exec.methods import ABSENT, METHODS
from holdfast.model import Chunk, Page, Stream
from tests.fakes.dialects import ExecTalk, FakeProcess
from tests.fakes.exactly import exactly

START = {"processId": "p", "argv": ["x"], "cwd": "file:///", "env": {}, "tty": False}
READ = {"processId": "p"}

DECODERS: dict[Any, Any] = {
    m.decode_start: m.StartParams,
    m.decode_write: m.WriteParams,
    m.decode_unit: None,
}
"""Those that do more than decode, and what they decode."""


def decoded_type(name: str) -> Any:
    decode = METHODS[name].decode
    return decode.keywords["kind"] if isinstance(decode, partial) else DECODERS[decode]


def test_every_method_is_in_the_catalog() -> None:
    """A method that no schema shows is found by those who read the source, and by nobody else."""
    absent = {name for names in ABSENT.values() for name in names.split()}

    assert [call.name for call in CATALOG.calls] == [name for name in METHODS if name not in absent]


@pytest.mark.parametrize("call", CATALOG.calls, ids=lambda call: call.name)
def test_params_are_those_that_the_table_decodes(call: Any) -> None:
    """A schema of other params than are decoded makes every client wrong."""
    assert call.params is decoded_type(call.name)


@pytest.mark.parametrize("each", [*CATALOG.calls, *CATALOG.heard, *CATALOG.told], ids=lambda each: each.name)
def test_everything_has_a_summary_of_one_line(each: Any) -> None:
    """It becomes a comment in whatever is generated from it."""
    assert each.summary.endswith(".")
    assert "\n" not in each.summary


async def talk(process: FakeProcess) -> ExecTalk:
    scene = ExecTalk(process)
    await scene.shake_hands()
    await scene.call("process/start", START)
    return scene


CALLS: dict[str, Any] = {
    "environment/info": None,
    "environment/status": None,
    "process/read": READ,
    "process/write": {"processId": "p", "chunk": "aGk=", "writeId": "w"},
    "process/signal": {"processId": "p", "signal": "interrupt"},
    "process/terminate": {"processId": "p"},
}


@pytest.mark.parametrize("call", CATALOG.calls, ids=lambda call: call.name)
async def test_the_result_of_a_call_is_exactly_of_its_type(call: Any) -> None:
    """What is put together from bytes would otherwise drift from what is said of it."""
    if call.name == "initialize":
        result = await ExecTalk().call("initialize", {"clientName": "test"})
    elif call.name == "process/start":
        scene = ExecTalk(FakeProcess())
        await scene.shake_hands()
        result = await scene.call("process/start", START)
    else:
        result = await (await talk(FakeProcess())).call(call.name, CALLS[call.name])

    exactly(result, call.result)


@pytest.mark.parametrize("exit_code", [None, 0, 137])
async def test_what_is_read_is_exactly_of_its_type(exit_code: int | None) -> None:
    """The answer to a read is the largest that is written by hand."""
    process = FakeProcess()
    scene = await talk(process)
    chunks = [Chunk(seq, stream, b"hi") for seq, stream in enumerate(Stream, 1)]
    process.page = Page(chunks, 4, exit_code, closed=exit_code is not None)

    page = exactly(await scene.call("process/read", READ), m.ReadResult)

    assert [chunk.stream for chunk in page.chunks] == list(Stream)
    assert page.exit_code == exit_code


async def test_what_is_told_is_exactly_of_its_type() -> None:
    """Notifications are written by hand, small ones otherwise than large ones."""
    process = FakeProcess()
    scene = await talk(process)

    for stream in Stream:
        process.say(b"hi", stream)
        process.say(b"x" * 65_536, stream)
    process.exit(3)
    process.close()

    told = {notice.name: notice.params for notice in CATALOG.told}
    sent = scene.client.sent
    assert {message["method"] for message in sent} == told.keys()
    for message in sent:
        assert message.keys() == {"method", "params"}
        kind = told[message["method"]]
        assert kind is not None
        exactly(message["params"], kind)
