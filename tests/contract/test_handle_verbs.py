"""What programs ask of a process beyond its life: near and far alike."""

from __future__ import annotations

import re
import socket
import uuid
from pathlib import Path

import pytest

from holdfast import (
    PIPE,
    Handle,
    Host,
    Inspection,
    Kind,
    Outcome,
    ProcessEnded,
    Size,
    Waited,
    WaitEnd,
    WaitTimedOut,
)
from holdfast.conditions import Condition
from holdfast.errors import BadRequest
from tests.fakes.process import PATIENCE


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


async def until_it_waits(handle: Handle) -> Inspection:
    found = await handle.inspect()
    while not found.waiting_for_input:
        found = await handle.inspect()
    return found


async def test_a_process_says_that_it_waits_for_input(host: Host) -> None:
    """A harness need not guess from silence."""
    handle = await host.start(["cat"], stdin=PIPE)

    found = await until_it_waits(handle)

    assert found == Inspection(waiting_for_input=True)


async def test_the_facts_of_a_terminal_come_with_it(host: Host) -> None:
    handle = await host.start(sh("stty -echo; read secret"), terminal=Size())

    found = await until_it_waits(handle)

    assert found == Inspection(waiting_for_input=True, echo=False, canonical=True)


async def test_a_list_says_who_waits_if_it_is_asked(host: Host) -> None:
    """And nobody is looked at otherwise."""
    names = [f"{word}-{uuid.uuid4()}" for word in ("waits", "sleeps", "ended")]
    waits = await host.start(["cat"], stdin=PIPE, name=names[0], keep=True)
    sleeps = await host.start(["sleep", "1000"], stdin=PIPE, name=names[1], keep=True)
    ended = await host.start(["true"], name=names[2], keep=True)
    await ended.wait()
    await until_it_waits(waits)
    while (await sleeps.inspect()).waiting_for_input is not False:
        pass  # It is still a shim that is about to become this program.

    looked = {each.name: each.waiting_for_input for each in await host.processes(inspect=True)}
    plain = {each.name: each.waiting_for_input for each in await host.processes()}

    assert [looked[name] for name in names] == [True, False, None]
    assert [plain[name] for name in names] == [None] * 3


# Waiting until something is so.


async def test_a_program_waits_until_a_process_is_ready(host: Host, tmp_path: Path) -> None:
    """The same near and far, where the server waits."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        handle = await host.start(sh(f"echo ready at last; touch {tmp_path}/made; exec sleep 1000"))

        said = await handle.wait_for(output="^ready", timeout=PATIENCE)
        answered = await handle.wait_for(port=port)
        made = await handle.wait_for(file=tmp_path / "made")

    assert (said.line, said.seq) == ("ready at last", 1)
    assert answered == made == Waited(WaitEnd.MET)


async def test_what_is_not_so_in_time_is_an_error_that_says_what(host: Host, tmp_path: Path) -> None:
    handle = await host.start(["sleep", "1000"], name=f"web-{uuid.uuid4()}")

    with pytest.raises(WaitTimedOut, match=r"was not there after 0\.01 seconds: No such file") as caught:
        await handle.wait_for(file=tmp_path / "never", timeout=0.01)

    assert isinstance(caught.value, TimeoutError)
    assert caught.value.condition == Condition(file=str(tmp_path / "never"))
    assert handle.returncode is None


async def test_a_process_that_ends_before_is_an_error_with_its_outcome(host: Host) -> None:
    handle = await host.start(sh("exit 3"))

    with pytest.raises(ProcessEnded, match="has ended with exit code 3 before output 'never'") as caught:
        await handle.wait_for(output="never")

    assert caught.value.outcome == Outcome(Kind.EXIT, 3)


async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(host: Host) -> None:
    handle = await host.start(["sleep", "1000"])

    with pytest.raises(BadRequest, match="exactly one"):
        await handle.wait_for()
    with pytest.raises(BadRequest, match=re.escape(r"\b is not supported")):
        await handle.wait_for(output=r"\bword")
