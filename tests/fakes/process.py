"""Programs to start, a backend to start them, and a look at what they left behind."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.config import EngineLimits
from holdfast.engine.local import LocalBackend
from holdfast.engine.workers import Workers
from holdfast.host.child import ShimChild
from holdfast.host.environ import Environment
from holdfast.host.info import host_info
from holdfast.host.spawn import Spawner
from holdfast.model import PLAIN, ProcessTerms, Size, Spec, Stream
from holdfast.poller import Poller
from holdfast.reports import News, Report
from holdfast.telemetry import Telemetry

PATIENCE = 10.0
"""Seconds after which what should happen has not: far more than a busy host needs."""

PATH = "/usr/bin:/bin"

TERMINAL = Size()


def command(
    *argv: str,
    cwd: str = "/",
    env: Mapping[str, str] | None = None,
    terminal: Size | None = None,
    stdin: bool = False,
    arg0: str | None = None,
    terms: ProcessTerms = PLAIN,
) -> Spec:
    """Start this program."""
    return Spec(
        argv=argv,
        cwd=cwd,
        env={"PATH": PATH} if env is None else env,
        terminal=terminal,
        stdin=stdin,
        arg0=arg0,
        terms=terms,
    )


def sh(
    script: str, *, terminal: Size | None = None, stdin: bool = False, terms: ProcessTerms = PLAIN
) -> Spec:
    """Start a shell with this script."""
    return command("sh", "-c", script, terminal=terminal, stdin=stdin, terms=terms)


def python(
    source: str,
    *arguments: str,
    terminal: Size | None = None,
    stdin: bool = False,
    terms: ProcessTerms = PLAIN,
) -> Spec:
    """Start this interpreter with this source."""
    argv = (sys.executable, "-I", "-S", "-c", source, *arguments)
    return command(*argv, terminal=terminal, stdin=stdin, terms=terms)


@asynccontextmanager
async def running_backend(
    limits: EngineLimits | None = None, *, poller: Poller | None = None, telemetry: Telemetry | None = None
) -> AsyncIterator[LocalBackend]:
    """The backend on this host.  Afterwards nothing of it is left, or the test fails."""
    loop = asyncio.get_running_loop()
    before = open_files()
    spawner = Spawner(Environment({}))
    backend = LocalBackend(spawner, host_info, loop, poller=poller, limits=limits, telemetry=telemetry)
    try:
        yield backend
    finally:
        try:
            async with asyncio.timeout(PATIENCE):
                await backend.aclose()
        finally:
            await nothing_left(before)


async def calls_over(workers: Workers) -> None:
    """Wait until every call that was handed to the threads is over, and what it opened is closed.

    Nobody else waits for that.  A test that did not would leave a file open for a moment, and the
    next one would miss it at its own end.
    """
    await eventually(lambda: workers.busy == 0, lambda: f"calls are not over: {workers.busy}")


async def nothing_left(before: dict[int, str]) -> None:
    """Fail if there is a child, or a descriptor that was not there ``before``, and stays."""
    try:
        await eventually(lambda: not has_children(), lambda: "a child was left behind")
        await eventually(
            lambda: open_files().items() <= before.items(),
            lambda: f"descriptors: {open_files().items() ^ before.items()}",
        )
    finally:
        bury_children()  # One test's failure is not the next one's.


async def eventually(
    holds: Callable[[], bool], complaint: Callable[[], str] = lambda: "it never happened"
) -> None:
    """Wait for something of which there is no event."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, complaint()
        await asyncio.sleep(0.002)


# Without an event loop.


@dataclass(frozen=True)
class Ran:
    """What became of a program."""

    code: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    terminal: bytes = b""


def run(spec: Spec, spawner: Spawner | None = None) -> Ran:
    """Start a program and wait for its end and the end of its output."""
    with started(spec, spawner) as child:
        said = {stream: read_to_end(fd) for stream, fd in child.outputs}
        return Ran(
            wait_exit(child),
            said.get(Stream.STDOUT, b""),
            said.get(Stream.STDERR, b""),
            said.get(Stream.PTY, b""),
        )


@contextmanager
def started(spec: Spec, spawner: Spawner | None = None) -> Iterator[ShimChild]:
    """A child that runs; its tree has ended and everything of it is closed at the end."""
    used = spawner or Spawner(Environment({}))
    try:
        child = used.start(spec)
        try:
            report = wait_news(child)
            if report.news is not News.STARTED:
                raise child.failure(report)
            _wait_program(child.pid)
            yield child
        finally:
            child.kill()
            while child.pid and wait_news(child).news not in (News.EMPTY, News.LOST):
                pass
            child.close()
            for fd in descriptors(child):
                os.close(fd)
    finally:
        used.close()


def wait_news(child: ShimChild) -> Report:
    """The next news of a child."""
    while (report := child.receive()) is None:
        wait_readable(child.fileno())
    return report


def wait_exit(child: ShimChild) -> int:
    """The exit code of a child, 128 + n after death by signal n."""
    report = wait_news(child)
    assert report.news is News.EXITED
    return 128 + report.value if report.by_signal else report.value


def _wait_program(pid: int) -> None:
    """Wait until the program is all there.

    The kernel lets the parent go on while it still closes files and lays out the
    arguments; only who looks from outside, as tests do, can see that.
    """
    deadline = time.monotonic() + PATIENCE
    while is_alive(pid) and not Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def descriptors(child: ShimChild) -> set[int]:
    """What whoever takes a child has to close."""
    return {fd for _, fd in child.outputs} | ({child.stdin} if child.stdin is not None else set())


def wait_readable(fd: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert poll.poll(PATIENCE * 1000), "nothing came"


def read_to_end(fd: int) -> bytes:
    """Everything until the other side closes."""
    data = b""
    while piece := read_some(fd):
        data += piece
    return data


def read_until(fd: int, text: bytes) -> bytes:
    """What comes until it contains ``text``."""
    data = b""
    while text not in data:
        piece = read_some(fd)
        assert piece, f"ended after {data!r}"
        data += piece
    return data


def read_some(fd: int) -> bytes:
    """The next piece; empty at the end."""
    wait_readable(fd)
    try:
        return os.read(fd, 65536)
    except OSError:  # How a terminal says that everybody has closed it.
        return b""


# What is there.


def open_files() -> dict[int, str]:
    """The descriptors of this process and what they are."""
    found = {}
    with os.scandir("/proc/self/fd") as entries:
        numbers = [int(entry.name) for entry in entries]
    for number in numbers:
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # The descriptor of the listing itself.
    return found


def has_commands() -> bool:
    """Whether anybody below this process is more than one of those who watch over commands."""
    line = [os.getpid()]
    while line:
        children = children_of(line.pop())
        if any(
            not status(pid).get("Name", "holdfast-").startswith("holdfast-") and not _serves(pid)
            for pid in children
        ):
            return True
        line += children
    return False


def _serves(pid: int) -> bool:
    """Whether a process is a server of ours, which is none of its commands."""
    return b"\0holdfast\0serve\0" in _arguments(pid)


def _arguments(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def anybody_runs(mark: str) -> bool:
    """Whether any process of this host has this among its arguments, whoever started it."""
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdecimal())
    return any(mark.encode() in _arguments(pid).split(b"\0") for pid in pids)


def has_children() -> bool:
    """Whether this process has any child, dead or alive."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def bury_children() -> None:
    """Kill and reap whatever is left of this process's children."""
    if has_children():
        for pid in children_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def is_alive(pid: int | None) -> bool:
    """Whether a process runs; one that ended and waits to be reaped does not."""
    assert pid is not None, "a backend that does not tell"
    return status(pid).get("State", "Z")[0] not in "ZX"


def status(pid: int) -> dict[str, str]:
    """What the kernel says of a process; nothing if there is none."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def ignored_signals(pid: int) -> set[int]:
    """The signals a process ignores."""
    return _signals(pid, "SigIgn")


def blocked_signals(pid: int) -> set[int]:
    """The signals a process does not want now."""
    return _signals(pid, "SigBlk")


def _signals(pid: int, field: str) -> set[int]:
    mask = int(status(pid)[field], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def children_of(pid: int) -> set[int]:
    """The children of any process."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return {number for number in numbers if status(number).get("PPid") == str(pid)}


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """What is done inside leaves as many descriptors as there were, and no child."""
    before = open_files()
    yield
    assert open_files().items() <= before.items()
    assert not has_children()
