"""A process followed by its user, without a terminal; with one: ``tests/system/test_cli_terminal.py``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import signal
import termios
from collections.abc import AsyncIterator, Iterator
from subprocess import PIPE
from typing import Any

import pytest

from holdfast.api.handle import Handle
from holdfast.api.host import Host, local
from holdfast.cli import follow as module
from holdfast.cli.follow import Manner, follow
from holdfast.errors import LinkLost, OutputGap
from holdfast.model import Chunk, Kind, Outcome, Size, Stream
from holdfast.value import replace
from tests.fakes.gate import Gate


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with local() as opened:
        yield opened


async def test_what_it_says_is_passed_on_and_its_code_is_given(
    host: Host, capfd: pytest.CaptureFixture[str]
) -> None:
    handle = await host.start(["sh", "-c", "echo out; echo err >&2; exit 3"])

    code = await follow(handle, Manner(), [Chunk(0, Stream.STDOUT, b"before\n")])

    assert code == 3
    assert capfd.readouterr() == ("before\nout\n", "err\n")


async def test_afterwards_signals_are_ours_again(host: Host) -> None:
    before = signal.getsignal(signal.SIGTERM)
    await follow(await host.start(["true"]), Manner())

    assert signal.getsignal(signal.SIGTERM) == before


async def followed(host: Host, script: str, manner: Manner) -> tuple[int, Handle]:
    """Follow a shell that begins its work when signals for us are ours."""
    handle = await host.start(["sh", "-c", f"read go; {script}"], stdin=PIPE)

    async def go() -> None:
        assert handle.stdin is not None
        handle.stdin.write(b"\n")

    code, _ = await asyncio.gather(follow(handle, manner), go())
    return code, handle


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_reaches_the_process(host: Host, number: signal.Signals) -> None:
    """To be told to end is passed on as the request to end, whichever way we were told."""
    name = "TERM" if number == signal.SIGHUP else number.name[3:]
    script = f"trap 'exit 6' {name}; kill -{number.name[3:]} {os.getpid()}; while :; do sleep 0.05; done"

    code, _ = await followed(host, script, Manner())

    assert code == 6


@pytest.mark.parametrize(
    ("manner", "number"), [(Manner(ours=False), signal.SIGTERM), (Manner(detachable=True), signal.SIGHUP)]
)
async def test_what_is_not_ours_is_left(host: Host, manner: Manner, number: signal.Signals) -> None:
    code, handle = await followed(host, f"kill -{number.name[3:]} {os.getpid()}; exec sleep 1000", manner)

    assert code == 128 + number
    assert handle.outcome is None


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 137)])
async def test_who_insists_does_not_wait(host: Host, number: signal.Signals, expected: int) -> None:
    """A third ^C leaves the process to its grace, a second request to end takes that away."""
    ours = f"kill -{number.name[3:]} {os.getpid()}"
    script = f"trap '{ours}' INT TERM; {ours}; while :; do sleep 0.05; done"

    code, _ = await followed(host, script, Manner(grace=1000.0))

    assert code == expected


class Broken:
    """A handle whose output and end are as the test wants them."""

    name = "broken"
    stdin = None
    usage = None
    denials = ()
    dropped = 0

    def __init__(self, *items: Chunk | Exception, end: Outcome | Exception) -> None:
        self._items = list(items)
        self._end = end

    def chunks(self) -> Broken:
        return self

    def __aiter__(self) -> Broken:
        return self

    async def __anext__(self) -> Chunk:
        if not self._items:
            raise StopAsyncIteration
        item = self._items.pop(0)
        if isinstance(item, Exception):
            raise item
        return item

    async def wait(self) -> Outcome:
        if isinstance(self._end, Exception):
            raise self._end
        return self._end


def broken(*items: Chunk | Exception, end: Outcome | Exception | None = None) -> Any:
    return Broken(*items, end=end or Outcome(Kind.EXIT, 0))


GAP = OutputGap(2, 3, 99)
FIRST, LAST = Chunk(1, Stream.STDOUT, b"first"), Chunk(4, Stream.STDOUT, b"last")


async def test_what_is_missing_is_told_at_the_end_and_is_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    """Whoever takes the output for complete would be wrong."""
    code = await follow(broken(FIRST, GAP, LAST), Manner())

    shown = capfd.readouterr()
    assert (code, shown.out) == (125, "firstlast")
    assert shown.err == f"holdfast: {GAP}\n"


async def test_a_beginning_that_is_gone_is_none_for_who_comes_later(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert await follow(broken(GAP, LAST), Manner(ours=False)) == 0
    assert await follow(broken(FIRST, GAP, LAST), Manner(ours=False)) == 125


async def test_a_process_that_is_lost_is_an_error() -> None:
    with pytest.raises(LinkLost):
        await follow(broken(end=LinkLost("gone")), Manner())


async def test_why_it_ended_is_told_if_the_code_does_not_say_it(capfd: pytest.CaptureFixture[str]) -> None:
    await follow(broken(end=Outcome(Kind.OOM, signal=9)), Manner())
    await follow(broken(end=Outcome(Kind.OOM, signal=9)), Manner(quiet=True))

    assert capfd.readouterr().err == "holdfast: it was ended because it used more memory than it may\n"


async def test_a_mistake_of_ours_is_not_swallowed() -> None:
    with pytest.raises(KeyError):
        await follow(broken(KeyError("x")), Manner())


async def test_when_it_is_cancelled_nothing_of_it_goes_on(host: Host) -> None:
    handle = await host.start(["sleep", "1000"])
    task = asyncio.create_task(follow(handle, Manner()))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


# At a terminal, which is our standard input for the time of a test.


@contextlib.contextmanager
def standard(fd: int, number: int) -> Iterator[None]:
    """Make a descriptor one of our standard streams."""
    before = os.dup(number)
    os.dup2(fd, number)
    try:
        yield
    finally:
        os.dup2(before, number)
        os.close(before)


@pytest.fixture
def keys() -> Iterator[int]:
    """A terminal is our standard input; give where its keys are pressed."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (30, 90))
    with standard(slave, 0):
        yield master
    os.close(master)
    os.close(slave)


RAW = Manner(stdin=True, raw=True, keys=b"\x10\x11")


async def at_terminal(host: Host, *argv: str) -> Handle:
    return await host.start(argv, terminal=Size(24, 80), stdin=PIPE)


async def pressed(handle: Handle, manner: Manner, keys: int, text: bytes) -> int:
    """Follow it, and press keys as soon as the terminal is raw: before, some of them would mean something."""

    async def press() -> None:
        os.write(keys, text)

    code, _ = await asyncio.gather(follow(handle, manner), press())
    return code


async def test_keys_reach_it_and_the_size_is_ours(
    host: Host, keys: int, capfd: pytest.CaptureFixture[str]
) -> None:
    handle = await at_terminal(host, "sh", "-c", "read word; stty size; exit ${#word}")

    code = await pressed(handle, RAW, keys, b"four\r")

    assert code == 4
    assert "30 90" in capfd.readouterr().out


async def test_the_keys_leave_what_is_kept(host: Host, keys: int, capfd: pytest.CaptureFixture[str]) -> None:
    handle = await at_terminal(host, "sleep", "1000")
    before = termios.tcgetattr(0)

    code = await pressed(handle, replace(RAW, detachable=True), keys, b"x\x10\x11")

    assert (code, handle.outcome) == (0, None)
    assert f"left {handle.name} running" in capfd.readouterr().err
    assert termios.tcgetattr(0) == before


async def test_what_is_not_kept_cannot_be_left_and_is_told_the_keys(
    host: Host, keys: int, capfd: pytest.CaptureFixture[str]
) -> None:
    handle = await at_terminal(host, "sh", "-c", "read word; exit ${#word}")

    code = await pressed(handle, RAW, keys, b"\x10\x11\r")

    assert code == 1  # Its terminal keeps the second for itself.
    assert "there is nothing to detach from" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGWINCH, signal.SIGCONT])
async def test_another_size_is_passed_on(host: Host, keys: int, number: signal.Signals, gate: Gate) -> None:
    """Also when we were stopped meanwhile, and could not hear of it."""
    ours = f"kill -{number.name[3:]} {os.getpid()}"
    heard = "set -- $(stty size); [ $1 = 41 ] && exit 7"
    script = f"trap '{heard}' WINCH; read go; {gate.shell}; {ours}; while :; do sleep 0.05; done"
    handle = await at_terminal(host, "sh", "-c", script)

    async def drag() -> None:
        # Whoever gets a key has been told the first size: this is another one.
        os.write(keys, b"\r")
        await gate.reached()
        termios.tcsetwinsize(0, (41, 91))
        gate.open()

    code, _ = await asyncio.gather(follow(handle, RAW), drag())

    assert code == 7


async def test_the_end_of_our_input_is_the_end_of_its(host: Host, capfd: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"given")
    os.close(writer)
    with standard(reader, 0):
        code = await follow(await host.start(["cat"], stdin=PIPE), Manner(stdin=True))
    os.close(reader)

    assert (code, capfd.readouterr().out) == (0, "given")


async def test_a_process_that_takes_no_input_is_followed_all_the_same(host: Host) -> None:
    with open("/dev/zero", "rb") as endless, standard(endless.fileno(), 0):
        assert await follow(await host.start(["true"], stdin=PIPE), Manner(stdin=True)) == 0
        assert await follow(await host.start(["true"]), Manner(stdin=True)) == 0


@pytest.mark.parametrize("json", [False, True])
async def test_when_nobody_reads_our_output_it_is_ended_if_it_is_ours(host: Host, *, json: bool) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ours, others = await host.start(["yes"]), await host.start(["yes"])
    with standard(writer, 1):
        codes = [await follow(ours, Manner(json=json)), await follow(others, Manner(json=json, ours=False))]
    os.close(writer)

    assert codes == [141, 141]
    assert (ours.outcome is None, others.outcome is None) == (False, True)


async def test_json_whose_end_nobody_reads_is_told_by_the_code(host: Host) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with standard(writer, 1):
        code = await follow(await host.start(["true"]), Manner(json=True))
    os.close(writer)

    assert code == 141


async def test_output_that_others_hold_open_is_not_waited_for(
    host: Host, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_LINGER", 0.05)

    code = await follow(await host.start(["sh", "-c", "sleep 1000 & exit 3"]), Manner())

    assert code == 3
    assert "held open by others" in capfd.readouterr().err
