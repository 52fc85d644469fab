"""How commands are run: what is not in the contract."""

from __future__ import annotations

import io
import sys
from subprocess import DEVNULL, PIPE

import pytest

import holdfast
from holdfast.api.running import Coding
from tests.fakes.gate import Gate
from tests.fakes.process import is_alive


def test_bytes_stay_bytes_unless_somebody_wants_text() -> None:
    assert Coding().decode(bytearray(b"a\r\n")) == b"a\r\n"
    assert Coding(text=False).decode(None) is None
    assert Coding(text=True).decode(bytearray(b"a\r\nb\rc")) == "a\nb\nc"
    assert Coding(errors="replace").decode(bytearray(b"\xff")) == "\ufffd"
    assert Coding(encoding="utf-16-le").encode("a") == b"a\0"
    assert Coding().encode(b"a") == b"a"


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
