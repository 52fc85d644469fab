"""Real servers for tests: the program as a process of its own, or its parts inside the test's own loop.

Both end everything they began and complain if anything of it is still there.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.soaking import fence
from holdfast.config import ConnectionLimits, EngineLimits, SessionLimits
from holdfast.dialects.exec.conversation import ExecEndpoint
from holdfast.dialects.exec.methods import METHODS
from holdfast.engine.local import LocalBackend
from holdfast.host.environ import Environment
from holdfast.host.info import host_info, own_environment
from holdfast.host.sandbox.confinement import Confiner
from holdfast.host.spawn import Spawner
from holdfast.poller import Poller
from holdfast.server.app import Server
from holdfast.server.listen import Listen, TcpListen
from holdfast.server.routes import Route, Routes
from holdfast.telemetry import Silent, Telemetry
from tests.fakes.app_talk import AppLoop
from tests.fakes.dialects import HandTimer
from tests.fakes.process import calls_over

PATIENCE = 10.0
"""Seconds any wait in a test may take: far beyond what is needed, so that a loaded machine passes too."""

SETTLE = 1.0
"""Seconds after which a server has loaded what it does not need for its start; nothing tells when."""

_GLANCE = 0.005
"""Seconds between two looks at something that sends no event."""

COMMAND = (sys.executable, "-m", "holdfast", "serve")


# Looking at what sends no events.


async def eventually(condition: Callable[[], object], *, within: float = PATIENCE) -> None:
    """Look again and again until ``condition`` holds; fail when the time is over."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {within} s: {condition}"
        await asyncio.sleep(_GLANCE)


def eventually_sync(condition: Callable[[], object], *, within: float = PATIENCE) -> None:
    """The same for tests without a loop."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {within} s: {condition}"
        time.sleep(_GLANCE)


@dataclass(frozen=True)
class Sighting:
    """A process as the kernel shows it; the start time tells two owners of one number apart."""

    pid: int
    born: int


@dataclass(frozen=True)
class Stat:
    """The fields of /proc/PID/stat that tests ask for."""

    state: str
    parent: int
    born: int


def stat_of(pid: int) -> Stat | None:
    """What the kernel says of a process; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return Stat(state=fields[0], parent=int(fields[1]), born=int(fields[19]))


def is_running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    stat = stat_of(pid)
    return stat is not None and stat.state not in "ZX"


def is_same(sighting: Sighting) -> bool:
    """Whether exactly this process still runs."""
    stat = stat_of(sighting.pid)
    return stat is not None and stat.born == sighting.born and stat.state not in "ZX"


def commands(root: int) -> set[Sighting]:
    """All processes below one, at this moment, but for those who only watch over others."""
    return {found for found in descendants(root) if not _name(found.pid).startswith("holdfast-")}


def starts_under_way(root: int) -> set[Sighting]:
    """Processes below one that are about to become a command: a shim's child that still has its name."""
    family = {found for found in descendants(root) if _name(found.pid).startswith("holdfast-shim")}
    shims = {found.pid for found in family}
    return {found for found in family if (stat := stat_of(found.pid)) is not None and stat.parent in shims}


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def descendants(root: int) -> set[Sighting]:
    """All processes below one, at this moment."""
    stats = {pid: stat for pid in _pids() if (stat := stat_of(pid)) is not None}
    family = {root}
    while more := {pid for pid, stat in stats.items() if stat.parent in family} - family:
        family |= more
    return {Sighting(pid, stats[pid].born) for pid in family - {root} if pid in stats}


def zombies(parent: int) -> list[int]:
    """Children that nobody has reaped."""
    stats = ((pid, stat_of(pid)) for pid in _pids())
    return [pid for pid, stat in stats if stat is not None and stat.parent == parent and stat.state == "Z"]


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def serving(pid: int) -> int:
    """The process that serves: the one that was started, or the server below it if that is a keeper."""
    if not _name(pid).startswith("holdfast-keeper"):
        return pid
    found = [one.pid for one in descendants(pid) if _name(one.pid).startswith("holdfast-server")]
    return found[0] if found else pid


def resident_bytes(pid: int) -> int:
    """The memory that the process occupies now which serves."""
    pages = int(Path(f"/proc/{serving(pid)}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files(pid: int) -> int:
    """How many descriptors the process holds that serves."""
    return len(os.listdir(f"/proc/{serving(pid)}/fd"))


# A start that takes as long as the test wants.


class HeldProgram:
    """A copy of a program that cannot be started before it is released.

    The kernel makes everybody who opens a file wait while another holds a write
    lease on it, so that whoever starts this program is stuck in ``execve``.
    """

    def __init__(self, original: str, path: Path) -> None:
        shutil.copy(original, path)
        self.path = str(path)
        # The kernel asks the holder to let go with this signal, which would end us.
        self._before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self._fd: int | None = os.open(path, os.O_RDONLY)
        fcntl.fcntl(self._fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def release(self) -> None:
        """Let it start.  May be called twice."""
        fd, self._fd = self._fd, None
        if fd is not None:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            os.close(fd)
            signal.signal(signal.SIGIO, self._before)

    def runs(self) -> bool:
        """Whether any process of this program exists, or one that is about to become it."""
        return any(_runs_program(pid, self.path) for pid in _pids())


def _runs_program(pid: int, path: str) -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe") == path
    return False


@contextlib.contextmanager
def held_program(original: str, path: Path) -> Iterator[HeldProgram]:
    """A program that starts when the test says so, or at the end of it."""
    held = HeldProgram(original, path)
    try:
        yield held
    finally:
        held.release()


# The program.


class Program:
    """``holdfast serve`` as a process of its own."""

    _forgiven: tuple[re.Pattern[bytes], ...] = ()

    def __init__(
        self, *options: str, env: Mapping[bytes, bytes] | None = None, within: Path | None = None
    ) -> None:
        """``env`` is laid over the test's own variables; ``within`` is the one place that can be written."""
        fenced = () if within is None else (*fence.COMMAND, str(within))
        self._process = subprocess.Popen(
            [*fenced, *COMMAND, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environb, **(env or {})},
        )
        self._family: set[Sighting] = set()
        self.errors = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def read_url(self) -> str:
        """Wait for the next line on standard output: the URL of a listener."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        if not line:
            self.wait()
        assert line.endswith("\n"), f"no URL; the program said: {self.errors.decode()}"
        return line.rstrip("\n")

    def forgive(self, complaint: re.Pattern[bytes]) -> None:
        """Leave out of ``errors`` what a test has caused on purpose."""
        self._forgiven = (*self._forgiven, complaint)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the program; what it has started is remembered for the end."""
        self._family |= descendants(self.pid)
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for the program's end; return its exit code.

        The end of its output is not waited for: a child that is stuck in its start
        may hold it open longer.
        """
        code = self._process.wait(PATIENCE)
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        self.errors += without_stalls(self._process.stderr.read() or b"")
        for complaint in self._forgiven:
            self.errors = complaint.sub(b"", self.errors)
        return code

    def survivors(self) -> set[Sighting]:
        """What the program had started before it got its signal, and still runs."""
        return {sighting for sighting in self._family if is_same(sighting)}

    def stop(self) -> None:
        """End the program the gentle way, and see that nothing of it is left."""
        if self._process.returncode is None:
            self.send_signal(signal.SIGTERM)
            try:
                code = self.wait()
            except BaseException:
                self._process.kill()
                self._process.wait()
                raise
            finally:
                self._close()
            assert code == 0, f"exit code {code}: {self.errors.decode()}"
        self._close()
        try:
            eventually_sync(lambda: not self.survivors())
        finally:
            for stray in self.survivors():
                os.kill(stray.pid, signal.SIGKILL)
        assert b"Traceback" not in self.errors, self.errors.decode()

    def _close(self) -> None:
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def program(
    *options: str, env: Mapping[bytes, bytes] | None = None, within: Path | None = None
) -> Iterator[Program]:
    """Run the program; at the end it is stopped, cleanly if the test went well."""
    started = Program(*options, env=env, within=within)
    try:
        yield started
    except BaseException:
        with contextlib.suppress(Exception):
            started.stop()
        raise
    started.stop()


@contextlib.contextmanager
def program_at(
    *options: str, env: Mapping[bytes, bytes] | None = None, within: Path | None = None
) -> Iterator[tuple[Program, str]]:
    """Run the program with one WebSocket listener on a free port; gives the program and its URL."""
    with program("--listen", "ws://127.0.0.1:0", *options, env=env, within=within) as started:
        url = started.read_url()
        assert re.fullmatch(r"ws://127\.0\.0\.1:[1-9]\d*", url)
        yield started, url


@contextlib.contextmanager
def hangup(disposition: signal.Handlers) -> Iterator[None]:
    """What is started meanwhile does this at SIGHUP, unless it decides otherwise; ``nohup`` ignores it."""
    before = signal.signal(signal.SIGHUP, disposition)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def run_to_end(*options: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the program with all its input at once, until it ends by itself."""
    done = subprocess.run(
        [*COMMAND, *options], input=data, capture_output=True, timeout=PATIENCE, check=False
    )
    done.stderr = without_stalls(done.stderr)
    return done


def without_stalls(log: bytes) -> bytes:
    """What a server has logged, but for how long its loop was held: an overloaded machine holds any."""
    return b"".join(line for line in log.splitlines(keepends=True) if b"holdfast.stalls" not in line)


def serve_stdio(*messages: str) -> Sequence[str]:
    """Talk to the program on standard input and output; give its lines, without their ends."""
    done = run_to_end("--listen", "stdio", data="".join(f"{message}\n" for message in messages).encode())
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


# Its parts inside the test's loop.


class ServerLoop(AppLoop):
    """The times of connections and sessions, moved by hand.

    Sockets, threads and processes stay with the running loop: a busy machine is slow to do what a
    test waits for, and no deadline passes meanwhile.
    """

    def call_later(self, seconds: float, callback: Callable[..., object], *facts: object) -> HandTimer:
        return self.call_at(self.now + seconds, partial(callback, *facts))


@dataclass
class Inside:
    """A server in this loop, and what it is made of."""

    server: Server
    endpoint: ExecEndpoint
    backend: LocalBackend
    url: str


@contextlib.asynccontextmanager
async def inside(
    *,
    where: Listen | None = None,
    connections: ConnectionLimits | None = None,
    sessions: SessionLimits | None = None,
    engine: EngineLimits | None = None,
    telemetry: Telemetry | None = None,
    environment: Mapping[str, str] | None = None,
    healthz: bool = True,
    any_path: bool = False,
    table: tuple[Route, ...] = (),
    times: ServerLoop | None = None,
    confiner: Confiner | None = None,
) -> AsyncIterator[Inside]:
    """Serve on real sockets with limits and telemetry of the test's choice.

    With ``times``, those of connections and sessions pass when the test says so.
    """
    loop = asyncio.get_running_loop()
    timing = loop if times is None else times.loop
    telemetry = telemetry or Silent()
    poller = Poller()
    poller.attach(loop)
    variables = own_environment() if environment is None else environment
    spawner = Spawner(Environment(variables), confiner=confiner)
    backend = LocalBackend(spawner, host_info, loop, poller=poller, limits=engine, telemetry=telemetry)
    endpoint = ExecEndpoint(backend, METHODS, loop=timing, limits=sessions)
    server = Server(
        endpoint,
        routes=Routes(healthz=healthz, any_path=any_path, table=table),
        telemetry=telemetry,
        loop=timing,
        poller=poller,
        limits=connections,
    )
    try:
        url = await server.listen(where or TcpListen("127.0.0.1", 0))
        yield Inside(server, endpoint, backend, url)
    finally:
        try:
            async with asyncio.timeout(PATIENCE):
                await server.stop()
                endpoint.close()
                await backend.aclose()
                # In the program its end closes what is still open; here peers get the time to say goodbye.
                await eventually(lambda: not poller._sources)
            await calls_over(backend.files.workers)
        finally:
            poller.close()
