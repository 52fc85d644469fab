"""Hosts, from open to close."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Kind, LimitReached, OutOfTurn
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, nothing_left_open


async def test_a_host_that_is_not_open_says_so() -> None:
    host = holdfast.local()

    with pytest.raises(OutOfTurn, match="not open"):
        await host.start(["true"])
    with pytest.raises(OutOfTurn, match="not open"):
        _ = host.info
    await host.aclose()


async def test_a_host_is_opened_once_and_closed_once() -> None:
    with nothing_left_open():
        async with holdfast.local() as host:
            assert await host.open() is host
            assert (await host.run(["true"])).returncode == 0
            await host.aclose()
            with pytest.raises(OutOfTurn):
                await host.run(["true"])


async def test_closing_a_host_ends_its_processes_and_tells_those_who_wait(gate: Gate) -> None:
    """Also those that are kept: there is nobody else on this host to keep them."""
    host = await holdfast.local().open()
    handle = await host.start(["sh", "-c", f"echo said; {gate.shell}"], keep=True)
    assert handle.stdout is not None
    await gate.reached()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        waiting = group.create_task(handle.wait())
        reading = group.create_task(handle.stdout.read())
        await asyncio.sleep(0)
        await host.aclose()

    assert waiting.result().kind is Kind.TERMINATED
    assert reading.result() == b"said\n"


async def test_a_host_has_limits() -> None:
    async with holdfast.local(processes=1, retained_bytes=1000) as host, await host.start(["sleep", "1000"]):
        with pytest.raises(LimitReached):
            await host.start(["true"])


async def test_a_command_starts_where_this_program_is_and_with_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are when it starts: what ``subprocess`` does, and what everybody expects."""
    async with holdfast.local() as host:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("SET_LATER", "yes")
        (tmp_path / "below").mkdir()

        here = await host.run(["sh", "-c", "pwd; echo $SET_LATER"], capture_output=True, text=True)
        below = await host.run(["pwd"], cwd="below", capture_output=True, text=True)

        assert here.stdout == f"{os.getcwd()}\nyes\n"
        assert below.stdout == f"{os.getcwd()}/below\n"
        assert host.info.cwd == os.getcwd()


async def test_files_are_those_of_the_host(tmp_path: Path) -> None:
    async with holdfast.local() as host:
        await host.files.write(str(tmp_path / "file"), b"bytes")

        assert await host.files.read(str(tmp_path / "file"), at_once=100) == b"bytes"


async def test_a_server_that_is_not_there_is_lost() -> None:
    with pytest.raises(holdfast.LinkLost):
        async with holdfast.connect("ws://127.0.0.1:1", reconnect_timeout=0.01):
            pass


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [("give_up", 0.01, "reconnect_timeout"), ("told", print, "on_connection_change")],
)
async def test_an_old_name_of_an_option_still_works_and_says_the_new_one(
    old: str, value: Any, new: str
) -> None:
    with pytest.warns(DeprecationWarning, match=f"^{old} is now called {new}$") as told:
        holdfast.connect("ws://127.0.0.1:1", **{old: value})

    assert [each.filename for each in told] == [__file__]
