"""How commands are run: what is not in the contract."""

from __future__ import annotations

import asyncio
import io
import sys
from subprocess import DEVNULL, PIPE

import pytest

import holdfast
from holdfast.api.embedded_process import EmbeddedProcess
from holdfast.errors import Forbidden
from holdfast.model import Ended, WriteStatus
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, is_alive


async def test_wishes_that_exclude_each_other_are_refused() -> None:
    async with holdfast.local() as host:
        with pytest.raises(ValueError, match="stdin and input"):
            await host.run(["cat"], input=b"", stdin=DEVNULL)
        with pytest.raises(ValueError, match="capture_output"):
            await host.run(["cat"], capture_output=True, stdout=PIPE)


async def test_output_is_passed_on_as_text_where_there_is_no_place_for_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a notebook for instance."""
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", None)

    async with holdfast.local() as host:
        await host.run(["sh", "-c", "echo out; echo err >&2"])

    assert shown.getvalue() == "out\n"


async def test_a_terminal_has_nothing_on_stderr() -> None:
    async with holdfast.local() as host:
        completed = await host.run(["echo", "x"], terminal=True, capture_output=True)

    assert (completed.stdout, completed.stderr) == (b"x\r\n", b"")


async def test_a_command_does_not_outlive_whoever_cannot_pass_its_output_on(
    monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("no space left")

    monkeypatch.setattr(sys, "stdout", Full())
    async with holdfast.local() as host:
        with pytest.raises(OSError, match="no space left"):
            await host.run(["sh", "-c", f"echo $$; {gate.shell}"])

        assert not any(listed.pid and is_alive(listed.pid) for listed in await host.processes())


async def test_input_that_cannot_be_handed_over_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for the rest of its input for ever, and so would we."""
    pids = []

    async def write(process: EmbeddedProcess, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        pids.append(process.pid)
        raise Forbidden("method", "process/write")

    monkeypatch.setattr(EmbeddedProcess, "write", write)
    async with holdfast.local() as host, asyncio.timeout(PATIENCE):
        with pytest.raises(Forbidden):
            await host.run(["cat"], input=b"x", capture_output=True)

    assert len(pids) == 1
    assert not is_alive(pids[0])


async def test_the_first_thing_that_went_wrong_is_what_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it cannot be put right: then that is told beside it."""

    async def write(process: EmbeddedProcess, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        raise Forbidden("method", "process/write")

    async def terminate(process: EmbeddedProcess, *, grace: float = 0.0, by: str = "client") -> Ended:
        raise Forbidden("method", "process/terminate")

    monkeypatch.setattr(EmbeddedProcess, "write", write)
    monkeypatch.setattr(EmbeddedProcess, "end", terminate)
    async with holdfast.local() as host, asyncio.timeout(PATIENCE):
        with pytest.raises(Forbidden, match="process/write") as caught:
            await host.run(["cat"], input=b"x", capture_output=True)

    assert caught.value.__notes__ == [
        "The command may go on: not allowed by the token: method 'process/terminate'"
    ]
