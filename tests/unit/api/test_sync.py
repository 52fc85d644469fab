"""holdfast without an event loop."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import CommandFailed, Kind, LinkLost, OutOfTurn, TimedOut, sync
from holdfast.api.sync import _SHARED
from holdfast.api.thread import LoopThread
from tests.fakes.process import PATIENCE, nothing_left_open


@pytest.fixture
def host() -> Iterator[sync.Host]:
    with nothing_left_open(), sync.local() as host:
        yield host


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def is_over(pid: int) -> bool:
    """Whether a process ends, whose end nobody has to wait for."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], PATIENCE)[0])
    finally:
        os.close(fd)


def python(source: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *options, "-c", source], capture_output=True, timeout=15, check=False
    )


def test_a_host_is_opened_and_closed() -> None:
    host = sync.local()
    with pytest.raises(OutOfTurn, match="not open"):
        host.run(["true"])
    with pytest.raises(OutOfTurn, match="not open"):
        host.start(["true"])

    assert host.open().open() is host
    assert host.run(["true"]).returncode == 0

    host.close()
    host.close()
    with pytest.raises(OutOfTurn, match="not open"):
        host.processes()


def test_a_host_that_cannot_be_opened_leaves_nothing() -> None:
    with nothing_left_open(), pytest.raises(holdfast.LinkLost):
        sync.connect("ws://127.0.0.1:1", reconnect_timeout=0.01).open()


def test_an_interrupt_in_the_moment_of_opening_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is open and nobody has been told: what it has begun is ended all the same."""
    call = LoopThread.call
    interrupts = iter([KeyboardInterrupt()])

    def interrupted(thread: LoopThread, coroutine: Coroutine[object, object, object]) -> object:
        result = call(thread, coroutine)
        for interrupt in interrupts:
            raise interrupt
        return result

    monkeypatch.setattr(LoopThread, "call", interrupted)
    with nothing_left_open():
        host = sync.local()
        with pytest.raises(KeyboardInterrupt):
            host.open()

        with pytest.raises(OutOfTurn, match="not open"):
            host.processes()


def test_commands_run_as_with_subprocess(host: sync.Host) -> None:
    completed = host.run(sh("echo out; echo err >&2; exit 2"), capture_output=True, text=True)

    assert (completed.returncode, completed.stdout, completed.stderr) == (2, "out\n", "err\n")
    with pytest.raises(CommandFailed):
        host.run(["false"], check=True)
    with pytest.raises(TimedOut):
        host.run(["sleep", "1000"], timeout=0.05, check=True)
    assert host.run(["sleep", "1000"], timeout=0.05).outcome.kind is Kind.TIMEOUT


def test_processes_are_started_and_found(host: sync.Host) -> None:
    handle = host.start(["cat"], stdin=holdfast.PIPE, name="cat", keep=True)
    shell = host.create_subprocess_shell("echo $((1+2))")
    program = host.create_subprocess_exec("echo", "x")

    assert shell.communicate() == (b"3\n", b"")
    assert program.communicate() == (b"x\n", b"")
    assert [listed.name for listed in host.processes()] == ["cat"]
    assert host.attach("cat").communicate(b"typed") == (b"typed", b"")
    assert handle.wait(5).exit_code == 0
    assert host.info.cwd == os.getcwd()


def test_many_threads_use_one_host(host: sync.Host) -> None:
    said: list[bytes | str | None] = []

    def run(number: int) -> None:
        said.append(host.run(["echo", str(number)], capture_output=True).stdout)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(said, key=str) == sorted((b"%d\n" % number for number in range(16)), key=str)


async def test_it_works_where_a_loop_runs_already() -> None:
    """As in a notebook."""
    with nothing_left_open():
        try:
            assert holdfast.run(["echo", "hi"], capture_output=True).stdout == b"hi\n"
            assert holdfast.run(["echo", "ho"], capture_output=True).stdout == b"ho\n"
        finally:
            _SHARED.close()


def test_an_interrupt_ends_the_command_and_everything_it_has_started(host: sync.Host, tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; kill -INT {os.getpid()}; sleep 1000"

    with pytest.raises(KeyboardInterrupt):
        host.run(sh(script))

    assert host.processes() == []
    assert is_over(int((tmp_path / "pid").read_text()))


def test_a_fork_is_refused_the_host_of_its_parent_and_has_one_of_its_own() -> None:
    source = """
import os, holdfast
holdfast.run(["true"])
host = holdfast.sync.local().open()
if os.fork() == 0:
    try:
        host.run(["true"])
    except holdfast.OutOfTurn as error:
        print(error)
    host.close()
    print(holdfast.run(["echo", "mine"], capture_output=True, text=True).stdout, end="", flush=True)
    os._exit(0)
os.wait()
print(host.run(["echo", "still"], capture_output=True, text=True).stdout, end="")
"""
    done = python(source)

    assert done.stdout.decode().splitlines() == [
        "the host was opened before a fork: open another one in this process",
        "mine",
        "still",
    ]
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "end",
    [
        "",
        "host.close()",
        "raise SystemExit(0)",
        "import threading; threading.Thread(target=handle.wait, daemon=True).start()",
    ],
)
def test_a_program_ends_whatever_it_has_left_open(end: str) -> None:
    source = f"""
import holdfast
host = holdfast.sync.local().open()
handle = host.start(["sleep", "1000"])
holdfast.run(["true"])
print(handle.pid, flush=True)
{end}
"""
    done = python(source)

    assert (done.returncode, done.stderr) == (0, b"")
    assert is_over(int(done.stdout))


def test_nothing_is_loaded_before_it_is_used() -> None:
    """The command line starts with this module."""
    done = python("import sys, holdfast; print([m for m in sys.modules if m in ('asyncio', 'holdfast.api')])")

    assert done.stdout == b"[]\n"


def test_all_names_are_there() -> None:
    assert [name for name in holdfast.__all__ if not hasattr(holdfast, name)] == []
    assert dir(holdfast) == sorted(holdfast.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = holdfast.nothing  # type: ignore[attr-defined]


def test_an_old_name_of_an_option_still_works_and_says_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="^give_up is now called reconnect_timeout$") as told:
        host = sync.connect("ws://127.0.0.1:1", give_up=0.01)

    with pytest.raises(LinkLost):
        host.open()
    assert [each.filename for each in told] == [__file__]
