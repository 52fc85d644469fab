"""Every bound of the server by its name: it is read in its unit, and arrives where it is kept."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from holdfast.cli import serve_options as module
from holdfast.cli.overview import parser_of_all
from holdfast.config import (
    AppLimits,
    ConnectionLimits,
    EngineLimits,
    EnvironmentLimits,
    FileLimits,
    HttpLimits,
    SandboxLimits,
    ServerLimits,
    SessionLimits,
)
from tests.fakes.client import Client, Message, Refusal, client
from tests.fakes.frames import Wire
from tests.fakes.server import program_at

NAMES = module.limit_names()


DEFAULTS = ServerLimits()


def limits(*options: str) -> ServerLimits:
    """The defaults with these changes."""
    reader = argparse.ArgumentParser()
    module._add_limit(reader)
    return module.apply_limits(DEFAULTS, reader.parse_args(options).limit)


def served(*options: str) -> ServerLimits:
    """What a server with these options keeps."""
    return module.limits_of(parser_of_all().parse_args(["serve", *options]))


def one(name: str, all_of_them: ServerLimits) -> float | None:
    part, _, field = name.partition(".")
    found: float | None = getattr(getattr(all_of_them, part), field)
    return found


def test_every_number_of_the_configuration_has_a_name() -> None:
    parts = {
        "engine": EngineLimits,
        "environment": EnvironmentLimits,
        "sandbox": SandboxLimits,
        "session": SessionLimits,
        "app": AppLimits,
        "http": HttpLimits,
        "file": FileLimits,
        "connection": ConnectionLimits,
    }
    fields = [f"{part}.{field}" for part, kind in parts.items() for field in kind.__annotations__]

    assert sorted([*NAMES, "app.command_policy"]) == sorted(fields)


@pytest.mark.parametrize("name", NAMES)
def test_each_can_be_set_and_nothing_else_changes(name: str) -> None:
    changed = limits("--limit", f"{name}=7")

    assert one(name, changed) == 7
    assert {other for other in NAMES if one(other, changed) != one(other, DEFAULTS)} == {name}
    assert type(one(name, changed)) is (float if name.endswith("_seconds") else int)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_read_in_its_own_unit(name: str) -> None:
    text, value = "7", 7.0
    if name.endswith("_seconds"):
        text, value = "2m", 120.0
    elif name.endswith(("_bytes", ".buffered_total")):
        text, value = "3k", 3072.0

    assert one(name, limits("--limit", f"{name}={text}")) == value


def test_a_server_gets_all_of_them() -> None:
    changed = served(*(f"--limit={name}={number}" for number, name in enumerate(NAMES, 1)))

    assert [one(name, changed) for name in NAMES] == list(range(1, len(NAMES) + 1))


def test_of_two_the_last_one_counts_and_others_stay() -> None:
    changed = limits(
        *("--limit", "engine.processes=5", "--limit", "session.names=9"), "--limit=engine.processes=6"
    )

    assert (changed.engine.processes, changed.session.names) == (6, 9)


def test_it_counts_more_than_an_option_of_its_own() -> None:
    """There is one for some, from before; who names the limit itself means it."""
    options = ("--retain-total-bytes", "5m", "--retain-detached-bytes", "6", "--drain", "9")
    named = (
        "--limit=engine.retained_bytes=1",
        "--limit=session.detached_bytes=2",
        "--limit=app.drain_seconds=3",
    )

    old, new = served(*options), served(*named, *options)

    assert (old.engine.retained_bytes, old.session.detached_bytes, old.app.drain_seconds) == (5 << 20, 6, 9.0)
    assert (new.engine.retained_bytes, new.session.detached_bytes, new.app.drain_seconds) == (1, 2, 3.0)


def test_what_is_set_can_be_shown() -> None:
    shown = module.limit_values(limits("--limit", "file.handles=3"))

    assert shown["file.handles"] == 3
    assert set(NAMES) - set(shown) == {name for name in NAMES if one(name, DEFAULTS) is None}


def test_a_limit_of_the_version_before_is_ignored_and_said_to_be() -> None:
    """A service file that names it must not keep the new server from starting."""
    settings = [module.limit_setting("connection.frame_bytes=32m"), module.limit_setting("file.handles=3")]

    assert module.apply_limits(DEFAULTS, settings) == limits("--limit", "file.handles=3")
    assert module.ignored_limits(settings) == [
        "--limit connection.frame_bytes is ignored: one frame may be as large as one message,"
        " connection.message_bytes"
    ]


@pytest.mark.parametrize("text", ["connection.frame_bytes", "connection.frame_bytes=x"])
def test_a_limit_of_the_version_before_still_needs_a_value(text: str) -> None:
    with pytest.raises(SystemExit):
        limits("--limit", text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "engine.processes",
        "engine.processes:5",
        "processes=5",
        "engine=5",
        "engine.=5",
        ".processes=5",
        "engine.none=5",
        "none.processes=5",
        "Engine.processes=5",
        "engine.processes =5",
        "app.command_policy=5",
        "engine.__init__=5",
        "engine.processes.x=5",
    ],
)
def test_what_is_no_limit_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        limits("--limit", text)

    assert end.value.code == 2
    assert f"{text!r} is not NAME=VALUE with the name of a limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        *(f"engine.processes={value}" for value in ("", "0", "-1", "1.5", "x", "5k", "5=5")),
        *(f"engine.retained_bytes={value}" for value in ("", "0", "-1", "x", "5s")),
        *(f"session.detached_seconds={value}" for value in ("", "-1", "x", "5k", "inf", "nan")),
    ],
)
def test_what_is_no_value_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        limits("--limit", text)

    assert end.value.code == 2
    assert "--limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ([], AppLimits()),
        (["--drain", "7"], AppLimits(drain_seconds=7.0)),
        (["--drain", "0"], AppLimits(drain_seconds=0.0)),
        (["--process-quiet", "0.5"], AppLimits(process_quiet_seconds=0.5)),
        (["--process-quiet", "0"], AppLimits(process_quiet_seconds=None)),
        (["--command-quiet", "3"], AppLimits(command_quiet_seconds=3.0)),
        (["--command-quiet", "0"], AppLimits(command_quiet_seconds=None)),
        (["--command-sandbox", "workspace-write"], AppLimits(command_policy="workspace-write")),
    ],
)
def test_the_app_endpoint_is_as_the_command_line_says(options: list[str], limits: AppLimits) -> None:
    """No silence at all would end everything at once, so 0 stands for no such end."""
    assert served(*options).app == limits


@pytest.mark.slow
async def test_a_server_keeps_those_of_every_part() -> None:
    """One of each, where it is kept: not only in a configuration that somebody forgot to hand down."""
    small = {"engine.processes": 1, "session.names": 2, "file.handles": 1, "connection.connections": 2}
    small |= {"http.header_bytes": 1}
    opened = {"path": Path(__file__).as_uri(), "handleId": "h", "mode": "read"}
    asked: Message = {"method": "GET", "url": "http://127.0.0.1:1/", "requestId": "r"}
    asked["headers"] = [{"name": "a", "value": "b"}]
    with program_at(*(f"--limit={name}={value}" for name, value in small.items())) as (_, url):
        async with client(url) as talking:
            await talking.start("p", "sleep", "1000")
            await talking.call("fs/open", opened)
            reached = [
                await _refused(talking, "process/start", _start("q")),
                await _refused(talking, "fs/open", {**opened, "handleId": "i"}),
                await _refused(talking, "http/request", asked),
            ]
            await talking.terminate("p")
            await talking.closed("p")
            await talking.start("q", "true")
            await talking.closed("q")
            reached.append(await _refused(talking, "process/start", _start("r")))
            other = await Wire.open(url)
            third = await Wire.dial(url)
            third.writer.write(
                b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            answer = await third.reader.read()
            await third.close()
            await other.close()

    assert reached == ["engine.processes", "file.handles", "http.header_bytes", "session.names"]
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b"limit reached: connections (2)")


def _start(name: str) -> Message:
    return {"processId": name, "argv": ["true"], "cwd": "file:///", "env": {}, "tty": False}


async def _refused(talking: Client, method: str, params: Message) -> str:
    """Which limit the request runs into."""
    with pytest.raises(Refusal) as caught:
        await talking.call(method, params)
    name: str = caught.value.data["name"]
    return name
