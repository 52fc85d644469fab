"""Terminals that their host records, near and far alike."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from holdfast import Handle, Host, HostRecording, Size, SpawnFailed
from holdfast.errors import BadRequest
from tests.fakes.casts import events, eventually_ended

ECHO = "stty -echo; echo ready; read line; echo got $line"


async def said(handle: Handle, text: bytes) -> None:
    """Read on until it has said this."""
    assert handle.stdout is not None
    await handle.stdout.readuntil(text)


async def ended(path: Path) -> list[tuple[str, object]]:
    return await asyncio.to_thread(events, path)


async def test_what_a_terminal_shows_is_recorded_to_its_end(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    handle = await host.start(ECHO + "; exit 7", shell=True, terminal=Size(30, 90), record=str(path))
    await said(handle, b"ready\r\n")
    await handle.resize(Size(40, 100))
    assert handle.stdin is not None
    handle.stdin.write(b"secret\n")
    await handle.communicate()

    found = await ended(path)

    (header, *_) = eventually_ended(path)
    assert json.loads(header)["term"] == {"cols": 90, "rows": 30}
    assert json.loads(header)["version"] == 3
    assert found == [("o", "ready\r\n"), ("r", "100x40"), ("o", "got secret\r\n"), ("x", "7")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_is_typed_is_recorded_only_if_that_is_wanted(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    terms = HostRecording(str(path), input=True)
    handle = await host.start(ECHO, shell=True, terminal=True, record=terms)
    await said(handle, b"ready\r\n")
    assert handle.stdin is not None
    handle.stdin.write(b"secret\n")
    await handle.communicate()

    assert ("i", "secret\n") in await ended(path)


async def test_it_goes_on_though_nobody_looks(host: Host, tmp_path: Path) -> None:
    """That is what it is for: the file is whole, whoever was connected."""
    path = tmp_path / "a.cast"
    handle = await host.start(["seq", "1", "20000"], terminal=True, record=str(path))
    handle.detach()

    found = await ended(path)

    assert found == [("o", "".join(f"{n}\r\n" for n in range(1, 20_001))), ("x", "0")]


async def test_a_recording_has_a_bound_and_the_process_goes_on(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    terms = HostRecording(str(path), max_bytes=5000)
    handle = await host.start(["seq", "1", "20000"], terminal=True, record=terms)

    output, _ = await handle.communicate()

    assert output is not None
    assert output.endswith(b"20000\r\n")
    found = await asyncio.to_thread(events, path, "m")
    assert found[-1] == ("m", "the recording ends here: it may have 5000 bytes")
    assert path.stat().st_size <= 5000


async def test_a_file_that_is_there_is_left_alone(host: Host, tmp_path: Path) -> None:
    """Nor is anything started that was to be recorded."""
    path, mark = tmp_path / "a.cast", tmp_path / "started"
    path.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")

    for taken in (path, link):
        with pytest.raises(BadRequest, match=r"cannot record to .*File exists") as refused:
            await host.start(["touch", str(mark)], terminal=True, record=str(taken))
        assert refused.value.field == "record"
    with pytest.raises(BadRequest, match="No such file"):
        await host.start(["touch", str(mark)], terminal=True, record=str(tmp_path / "no" / "a.cast"))

    assert path.read_text() == "precious"
    assert not mark.exists()


async def test_a_path_is_relative_to_the_directory_of_the_process(host: Host, tmp_path: Path) -> None:
    handle = await host.start(["true"], terminal=True, cwd=tmp_path, record="a.cast")
    await handle.communicate()

    assert await ended(tmp_path / "a.cast") == [("x", "0")]


async def test_nothing_is_left_of_a_recording_of_nothing(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.cast"

    with pytest.raises(SpawnFailed):
        await host.start(["/no/such/program"], terminal=True, record=str(path))
    handle = await host.start(["echo", "hi"], terminal=True, record=str(path))
    await handle.communicate()

    assert ("o", "hi\r\n") in await ended(path)


async def test_pipes_are_not_recorded(host: Host, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="record needs terminal=True"):
        await host.start(["true"], record=str(tmp_path / "a.cast"))


async def test_a_restart_is_not_recorded(host: Host, tmp_path: Path) -> None:
    """Its recording would be in the way of another one."""
    path = tmp_path / "a.cast"
    first = await host.start(["echo", "hi"], terminal=True, keep=True, record=str(path))
    await first.communicate()
    before = await ended(path)

    second = await host.restart(first.identifier)
    await second.communicate()

    assert await ended(path) == before == [("o", "hi\r\n"), ("x", "0")]
