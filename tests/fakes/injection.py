"""Errors that the system gives at one call: of a server, its fork server, a shim or the start of a command.

``strace`` attaches to the process, and makes its Nth call of a kind fail without being done.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from tests.fakes.client import Client, Message, start_params, write_params
from tests.fakes.server import PATIENCE, SETTLE, Program, commands, eventually, open_files
from tests.fakes.trees import greet

ERRORS = ("EMFILE", "ENFILE", "EAGAIN", "ENOMEM", "EINTR")


class Role(Enum):
    """Whose calls fail."""

    SERVER = "server"
    FORK_SERVER = "fork_server"
    SHIM = "shim"
    START = "start"
    """A shim's child, until it is the command."""


@dataclass(frozen=True)
class Injection:
    """One call that fails."""

    role: Role
    call: str
    error: str
    position: int

    def __str__(self) -> str:
        return f"{self.role.value}-{self.call}-{self.error}-{self.position}"


UNTOUCHED = frozenset(
    {
        "close",  # It would not be done, and what stays open is the injection's.
        "exit", "exit_group", "rt_sigreturn", "restart_syscall",  # They do not come back.
        "futex",  # A thread would not be woken: no kernel interrupts the half of these calls that wakes.
        # These cannot fail, or not with any of these errors.
        "getpid", "getrandom", "gettid", "setsid", "lseek", "rt_sigaction", "rt_sigprocmask",
        "getpgid", "umask",
        "clock_gettime", "prctl", "set_robust_list", "sched_yield", "rseq", "set_tid_address", "arch_prctl",
        "munmap", "madvise", "shutdown", "getpeername", "setsockopt", "getsockopt",
    }
)  # fmt: skip

ONLY_INTERRUPTED = frozenset({"epoll_wait", "ppoll", "poll", "nanosleep", "clock_nanosleep"})
"""Calls that wait: of these errors they can have one."""

ONLY_MEMORY = frozenset(
    {"mmap", "brk", "mprotect", "newfstatat", "faccessat2", "chdir", "kill", "ioctl", "epoll_ctl"}
)
"""Calls that make no descriptor and never wait."""


def errors_of(call: str) -> tuple[str, ...]:
    """The errors with which a call may fail."""
    if call in UNTOUCHED:
        return ()
    if call in ONLY_INTERRUPTED:
        return ("EINTR",)
    if call in ONLY_MEMORY:
        return ("ENOMEM",)
    return ERRORS


WAKE_LOST = re.compile(
    rb"ERROR asyncio: Exception in callback \w+\._read_from_self\(\)\n"
    rb"handle: .*\nTraceback .*\n(?:  .*\n)+\w*Error: .*\n"
)
"""What asyncio logs if the pipe that wakes it cannot be read; it reads it again in its next turn."""


@cache
def why_not() -> str:
    """Why no process can be traced here; empty if one can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    code = os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "strace -qq -e trace=none true 2>/dev/null")
    return "" if code == 0 else "no process may be traced here"


class Gone(Exception):
    """The connection was lost."""


# Tracing.


@contextlib.asynccontextmanager
async def tracing(pids: Sequence[int], *options: str, log: str = "/dev/null") -> AsyncIterator[None]:
    """Trace processes while the body runs."""
    targets = [option for pid in pids for option in ("-p", str(pid))]
    tracer = await asyncio.create_subprocess_exec(
        "strace", "-o", log, *options, *targets, stderr=asyncio.subprocess.PIPE
    )
    assert tracer.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            for _ in pids:
                line = await tracer.stderr.readline()
                assert b"attached" in line, line
        yield
    finally:
        # It lets go of everybody, who live on.
        if tracer.returncode is None:
            tracer.send_signal(signal.SIGINT)
        await tracer.communicate()


_CALL = re.compile(r"(?:(\d+) +)?([a-z0-9_]+)\(")


def calls_in(log: Path) -> dict[int, Counter[str]]:
    """How often each process made which call; of a new program only what came before it."""
    found: dict[int, Counter[str]] = {}
    over = set()
    for line in log.read_text(errors="replace").splitlines():
        if (match := _CALL.match(line)) is not None:
            pid, call = int(match[1] or 0), match[2]
            if pid not in over:
                found.setdefault(pid, Counter())[call] += 1
            if call == "execve" and "ENOENT" not in line:
                over.add(pid)
    return found


# What is traced: a server with as many processes as make it ask for another shim.


def children_of(pid: int) -> list[int]:
    """The children of a process without threads that have some: quicker than looking at everybody."""
    with contextlib.suppress(OSError):
        return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


class Scene:
    """A server, a client that uses it while calls fail, and others that keep shims busy."""

    def __init__(self, program: Program, url: str) -> None:
        self.program = program
        self.url = url
        self.fillers = 0
        self.count = 0

    async def open(self) -> None:
        self.filler = await Client.connect(self.url)
        await greet(self.filler)
        await self.more()
        for tty in (False, True):
            await self.cycle(tty=tty)
        await asyncio.sleep(SETTLE)

    async def close(self) -> None:
        await self.filler.call("session/close")
        await self.filler.close()
        self.program.forgive(WAKE_LOST)

    async def more(self) -> None:
        """Start processes until one shim is left without."""
        while len(self.idle()) != 1 or self.fillers < 2:
            await self.filler.start(f"f{self.fillers}", "sleep", "1000")
            self.fillers += 1
            await eventually(lambda: self.fillers < 2 or self.idle())

    def fork_server(self) -> int:
        (found,) = [pid for pid in children_of(self.program.pid) if name_of(pid).startswith("holdfast-fork")]
        return found

    def idle(self) -> list[int]:
        """Shims without a command."""
        return [pid for pid in children_of(self.fork_server()) if not children_of(pid)]

    async def targets(self, role: Role) -> tuple[list[int], list[str]]:
        """Whom to trace, and with which options."""
        match role:
            case Role.SERVER:
                return [self.program.pid], []
            case Role.FORK_SERVER:
                await eventually(self._end_idle)  # Or it would be asked for the next command only.
                return [self.fork_server()], []
            case Role.SHIM:
                return self.idle(), []
            case Role.START:
                return self.idle(), ["-f"]

    def _end_idle(self) -> bool:
        """Kill the shims without a command; say whether there is none any more."""
        idle = self.idle()
        for pid in idle:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not idle

    async def calls(self, role: Role, log: Path, *, tty: bool) -> Counter[str]:
        """The calls that a cycle makes, and how often."""
        await self.more()
        pids, options = await self.targets(role)
        async with tracing(pids, *options, log=str(log)):
            await self.cycle(tty=tty)
        counted = calls_in(log)
        if role is Role.START:
            counted = {pid: calls for pid, calls in counted.items() if pid not in pids}
        total: Counter[str] = Counter()
        for each in counted.values():
            total |= each  # Each process counts for itself.
        return total

    # One cycle.

    async def cycle(self, *, tty: bool) -> str:
        """Start, write, hear, exit; say what became of it.  Fails if anything is left open."""
        self.count += 1
        talking = await Client.open(self.url)
        try:
            said = await self._cycle(talking, f"p{self.count}", tty=tty)
            await _answer(talking, "session/close")
            return said
        finally:
            await talking.close()

    async def inject(self, injection: Injection, *, tty: bool) -> str:
        """A cycle in which a call fails; say what became of it."""
        await self.more()
        before = open_files(self.program.pid)
        self.count += 1
        pids, options = await self.targets(injection.role)
        fault = f"inject={injection.call}:error={injection.error}:when={injection.position}"
        async with tracing(pids, *options, "-e", f"trace={injection.call}", "-e", fault):
            said = await self._try(tty=tty)
        await self.cycle(tty=tty)
        await self._nothing_left(before)
        return said

    async def _try(self, *, tty: bool) -> str:
        try:
            talking = await Client.open(self.url)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return "no connection"
        try:
            said = await self._cycle(talking, f"p{self.count}", tty=tty)
        except Gone:
            return await self._find(talking)
        else:
            with contextlib.suppress(Gone):
                await _answer(talking, "session/close")
            return said
        finally:
            await talking.abort()

    async def _cycle(self, talking: Client, name: str, *, tty: bool) -> str:
        """Raises ``Gone`` if the connection was lost."""
        script = "read x; echo got $x; exit 3"
        asked = start_params(name, "sh", "-c", script, pipeStdin=True, tty=tty)
        answer = await _answer(talking, "process/start", asked)
        if "error" in answer:
            _check_typed(answer["error"])
            return f"refused: {answer['error']['message']}"
        answer = await _answer(talking, "process/write", write_params(name, b"hello\n", "w"))
        if answer.get("result") != {"status": "accepted"}:
            await _answer(talking, "process/terminate", {"processId": name})
        tale = talking.tale(name)
        await eventually(lambda: tale.is_closed or talking.over)
        if not tale.is_closed:
            raise Gone
        assert tale.seqs == list(range(1, len(tale.seqs) + 1))
        assert tale.kinds[-2:] == ["exited", "closed"]
        (code,) = tale.exit_codes
        if "error" in answer:
            _check_typed(answer["error"])
            return f"refused to write: {answer['error']['message']}"
        if answer["result"] != {"status": "accepted"}:
            return "stdin closed"
        assert code == 3, tale.events
        assert tale.data().replace(b"\r", b"").endswith(b"got hello\n"), tale.events
        return "done"

    async def _find(self, lost: Client) -> str:
        """The connection was lost: come back, and find the process or none."""
        again = await Client.open(self.url, resume=lost.session)
        try:
            listed: Message = await again.call("process/list")
            for one in listed["processes"]:
                await again.terminate(one["processId"])
            await again.call("session/close")
        finally:
            await again.close()
        return f"lost the connection: {len(listed['processes'])} found"

    async def _nothing_left(self, before: int) -> None:
        pid = self.program.pid
        await eventually(lambda: len(commands(pid)) == self.fillers)
        # Between two cycles a shim more or less may be ready, each with one socket.
        await eventually(lambda: open_files(pid) <= before + 3)


def _check_typed(error: Message) -> None:
    assert error["code"] == -32603, error
    assert "internal error" not in error["message"], error


async def _answer(talking: Client, method: str, params: object = None) -> Message:
    """The one answer to a request.  Raises ``Gone`` if the connection was lost before it."""
    if talking.over:
        raise Gone
    asked = talking.post(method, params)
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([asked])
    if asked.cancelled():
        raise Gone
    return asked.result()


def strerror(name: str) -> str:
    return os.strerror(getattr(errno, name))
