"""The catalog of the exec endpoint is what its table does and what its code sends."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from holdfast.dialects.exec.decoding import (
    decode_http_request,
    decode_list,
    decode_start,
    decode_unit,
    decode_watch_missing,
    decode_write,
    decode_write_block,
)
from holdfast.dialects.exec.methods import CATALOG, METHODS
from holdfast.dialects.exec.places import CodexPlaces
from holdfast.model import Chunk, Exit, Gap, Kind, Outcome, Page, Stream, Usage
from holdfast.protocol.files import WatchMissingParams, WriteBlockParams
from holdfast.protocol.http import HttpRequestParams
from holdfast.protocol.inspecting import ListParams
from holdfast.protocol.processes import ListResult, ReadResult, WriteParams
from holdfast.protocol.start import StartParams
from tests.fakes.dialects import FakeProcess, exited
from tests.fakes.exactly import exactly
from tests.fakes.exec_talk import START, ExecTalk, ready
from tests.fakes.file_talk import file_scene, uri

READ = {"processId": "p"}

DECODERS: dict[Any, Any] = {
    decode_start: StartParams,
    decode_write: WriteParams,
    decode_unit: None,
    decode_http_request: HttpRequestParams,
    decode_write_block: WriteBlockParams,
    decode_list: ListParams,
    decode_watch_missing: WatchMissingParams,
}
"""Those that do more than decode, and what they decode."""


def decoded_type(name: str) -> Any:
    decode = METHODS[name].decode
    return decode.keywords["kind"] if isinstance(decode, partial) else DECODERS[decode]


def test_every_method_is_in_the_catalog() -> None:
    """A method that no schema shows is found by those who read the source, and by nobody else."""
    assert sorted(call.name for call in CATALOG.calls) == sorted(METHODS)


@pytest.mark.parametrize("call", CATALOG.calls, ids=lambda call: call.name)
def test_params_are_those_that_the_table_decodes(call: Any) -> None:
    """A schema of other params than are decoded makes every client wrong."""
    assert call.params is decoded_type(call.name)


@pytest.mark.parametrize(
    "each",
    [*CATALOG.calls, *CATALOG.client_notifications, *CATALOG.server_notifications],
    ids=lambda each: each.name,
)
def test_everything_has_a_summary_of_one_line(each: Any) -> None:
    """It becomes a comment in whatever is generated from it."""
    assert each.summary.endswith(".")
    assert "\n" not in each.summary


async def talk(process: FakeProcess, *, extended: bool = False, **params: Any) -> ExecTalk:
    scene = await ready(process, extended=extended)
    await scene.call("process/start", {**START, **params})
    return scene


CALLS: dict[str, Any] = {
    "session/close": None,
    "environment/info": None,
    "environment/status": None,
    "process/list": None,
    "process/find": {"name": "p"},
    "process/restart": {"processId": "p", "newProcessId": "q"},
    "process/remove": READ,
    "process/usage": {"names": ["p"]},
    "process/read": READ,
    "process/ack": {"processId": "p", "seq": 1, "release": True},
    "process/wait": READ,
    "process/inspect": READ,
    "process/waitFor": {"processId": "p", "output": "x"},
    "process/write": {"processId": "p", "chunk": "aGk=", "writeId": "w"},
    "process/closeStdin": READ,
    "process/resize": {"processId": "p", "size": {"rows": 1, "cols": 1}},
    "process/signal": {"processId": "p", "signal": "interrupt"},
    "process/snapshot": READ,
    "process/readRange": READ,
    "process/terminate": {"processId": "p"},
    "events/subscribe": {},
    "events/unsubscribe": {},
    "http/request": {"method": "GET", "url": "http://h/", "requestId": "r"},
}

TIMEOUT = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit"), Usage(1000, 2000, 3), held_by=(7,))


WALK = {"maxDepth": 1, "maxDirectories": 2, "maxEntries": 9, "followDirectorySymlinks": False}


FILE_FAMILIES = {"fs", "capabilities", "capabilityRoots", "environmentConfig"}
"""Methods that need files, and no processes."""


def furnish(root: Path) -> None:
    """Something of everything that a client may look for."""
    for name in (
        ".codex-plugin/plugin.json",
        ".mcp.json",
        "s/SKILL.md",
        "s/agents/openai.yaml",
        "config.toml",
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("a = 1")
    plugin = root / "plugins/cache/m/p/1.0"
    for top in (plugin, root):
        (top / "skills/s/agents").mkdir(parents=True)
        (top / "skills/s/SKILL.md").write_text("---\nname: s\ndescription: d\n---\n")
        tools = "dependencies:\n  tools:\n  - {type: mcp, value: v}\npolicy:\n  products: [codex]\n"
        (top / "skills/s/agents/openai.yaml").write_text(tools)
    (plugin / ".codex-plugin").mkdir()
    (plugin / ".codex-plugin/plugin.json").write_text("{}")
    (root / "skills/bad").mkdir()
    (root / "skills/bad/SKILL.md").write_text("")
    (root / "large").mkdir()
    (root / "large/SKILL.md").write_bytes(bytes(2**20 + 1))


async def file_result(name: str, root: Path) -> Any:
    """The answer to a call about files."""
    furnish(root)
    (root / "file").write_bytes(b"hi")
    (root / os.fsdecode(b"\xff")).touch()
    here, file = {"path": uri(root)}, {"path": uri(root / "file")}
    calls: dict[str, Any] = {
        "fs/readFile": file,
        "fs/writeFile": {**file, "dataBase64": ""},
        "fs/createDirectory": here,
        "fs/getMetadata": file,
        "fs/canonicalize": file,
        "fs/readDirectory": here,
        "fs/walk": {**here, "options": WALK},
        "fs/remove": file,
        "fs/copy": {"sourcePath": file["path"], "destinationPath": uri(root / "copy"), "recursive": False},
        "fs/rename": {"sourcePath": file["path"], "destinationPath": uri(root / "moved")},
        "fs/archive": {**here, "handleId": "a"},
        "fs/extract": {"path": uri(root / "new"), "handleId": "e"},
        "fs/open": {**file, "handleId": "r"},
        "fs/readBlock": {"handleId": "h", "offset": 0, "len": 1},
        "fs/writeBlock": {"handleId": "h", "offset": 0, "chunk": "aGk="},
        "fs/close": {"handleId": "h"},
        "fs/watchMissing": {"watchId": 1, "missing": [uri(root / "none")]},
        "capabilityRoots/discoverV1": {"roots": [{"id": "r", **here}]},
        "capabilities/discoverV2": {"cwd": here["path"]},
        "environmentConfig/read": {"cwd": here["path"], "configPaths": [["a"]], "requirementsPaths": [["a"]]},
    }
    async with file_scene() as scene:
        scene.endpoint.places = CodexPlaces(str(root), str(root), str(root))
        mode = "replace" if name == "fs/writeBlock" else "read"
        await scene.call("fs/open", {**file, "handleId": "h", "mode": mode})
        return await scene.call(name, calls[name])


async def result_of(name: str, *, ended: bool) -> Any:
    """The answer to a call, with all the members it can have or with none of those that may be absent."""
    process = FakeProcess()
    process.limits = {"memory": "cgroup"} if ended else {}
    scene = ExecTalk(process, FakeProcess())
    if name == "initialize":
        return await scene.call(name, {"clientName": "test"})
    await scene.shake_hands()
    if name == "session/takeOver":
        return await ExecTalk(beside=scene).call(name, {"sessionId": scene.talk.session.key})
    named: dict[str, Any] = {"name": "n"} if ended else {}
    if name == "process/restart":
        named["keep"] = True
    started = await scene.call("process/start", {**START, **named, "idempotent": ended})
    if name == "process/start":
        return started
    if ended:
        process.exit_with(end=TIMEOUT)
        process.page = Page([Chunk(3, Stream.PTY, b"")], 4, TIMEOUT, closed=True, gap=Gap(1, 2, None))
    if name == "process/remove":
        process.exit_with(0)
    return await scene.call(name, CALLS[name])


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("call", CATALOG.calls, ids=lambda call: call.name)
async def test_the_result_of_a_call_is_exactly_of_its_type(call: Any, tmp_path: Path, *, ended: bool) -> None:
    """What is put together from bytes would otherwise drift from what is said of it."""
    is_file = call.name.partition("/")[0] in FILE_FAMILIES
    result = await (file_result(call.name, tmp_path) if is_file else result_of(call.name, ended=ended))

    exactly(result, call.result)


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("gap", [None, Gap(1, 2, 50), Gap(1, 2, None)])
@pytest.mark.parametrize("end", [None, exited(0), exited(137), TIMEOUT])
async def test_what_is_read_is_exactly_of_its_type(
    end: Exit | None, gap: Gap | None, *, extended: bool
) -> None:
    """The answer to a read is the largest that is written by hand."""
    process = FakeProcess()
    scene = await talk(process, extended=extended)
    chunks = [Chunk(seq, stream, b"hi") for seq, stream in enumerate(Stream, 3)]
    process.page = Page(chunks, 6, end, closed=end is not None, gap=gap)

    page = exactly(await scene.call("process/read", READ), ReadResult)

    assert [chunk.stream for chunk in page.chunks] == list(Stream)
    assert page.exit_code == (None if end is None else end.code)


async def test_a_list_is_exactly_of_its_type_in_every_state() -> None:
    """It is written by hand, too."""
    processes = [FakeProcess() for _ in range(3)]
    scene = await ready(*processes, asyncio.Event(), FakeProcess())
    for name in "abc":
        await scene.call("process/start", {**START, "processId": name})
    scene.backend.asked.clear()
    task = await scene.starting(processId="d")
    processes[1].exit_with(3)
    processes[2].exit_with(end=TIMEOUT)
    processes[2].close()

    listed = exactly(await scene.call("process/list"), ListResult)

    assert listed.more is UNSET
    states = ["running", "exited", "closed", "starting"]
    assert [each.state for each in listed.processes] == states
    task.cancel()


async def test_a_list_that_does_not_fit_is_exactly_of_its_type() -> None:
    scene = await talk(FakeProcess(), processId="x" * 10_000)

    assert exactly(await scene.call("process/list"), ListResult) == ListResult([], more=True)


async def tell_body(scene: ExecTalk) -> None:
    """Have a streamed body told."""
    asked = decode_http_request({**CALLS["http/request"], "streamResponse": True})
    sequel = await METHODS["http/request"].handle(scene.talk, asked)
    await sequel.rest


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("end", [exited(3), TIMEOUT])
async def test_what_is_told_is_exactly_of_its_type(end: Exit, *, extended: bool) -> None:
    """Notifications are written by hand, small ones otherwise than large ones."""
    process = FakeProcess()
    scene = await talk(process, extended=extended)
    await scene.call("events/subscribe", {})

    for stream in Stream:
        process.say(b"hi", stream)
        process.say(b"x" * 65_536, stream)
    process.exit_with(end=end)
    process.close()
    await tell_body(scene)

    told = {
        notice.name: notice.params
        for notice in CATALOG.server_notifications
        if not notice.name.startswith("fs/")
    }
    sent = scene.client.sent
    assert {message["method"] for message in sent} == told.keys()
    for message in sent:
        assert message.keys() == {"method", "params"}
        kind = told[message["method"]]
        assert kind is not None
        exactly(message["params"], kind)
