"""Everything that a server has started ends with it, however the server ends.

The server here is a small program of its own, because it takes one that can be killed.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.fakes.gate import Gate, SlowProgram, gone
from tests.fakes.process import PATIENCE, eventually, is_alive

# Starts what its arguments say, "pipe" or "pty" and a script in turn; tells the pids of the fork server and
# of the children, and does what it reads from stdin.
SERVER = """if True:
    import os, select, sys
    from holdfast.host.environ import Environment
    from holdfast.host.spawn import Spawner
    from holdfast.host.shim import ForkServer
    from holdfast.model import Size, Spec

    fork_server = ForkServer()
    spawner = Spawner(Environment({}), fork_server)
    fork_server.open()
    children = []
    def start(kind, *argv):
        size = Size() if kind == "pty" else None
        children.append(spawner.start(Spec(argv, "/", {"PATH": "/usr/bin:/bin"}, terminal=size)))

    for kind, script in zip(sys.argv[1::2], sys.argv[2::2]):
        start(kind, "sh", "-c", script)
    for child in children:
        while not child.pid:
            select.select([child], [], [])
            child.receive()
    with open("/proc/thread-self/children") as file:
        print(file.read(), *(child.pid for child in children), flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
"""

# A process that nobody finds by session, group or parent.
DAEMON = "(setsid sh -c '({door}) & :' >/dev/null 2>&1 &)"


class Server:
    """A server, its fork server and its children."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.fork_server = 0
        self.children: list[int] = []

    async def begin(self) -> None:
        self.fork_server, *self.children = [int(word) for word in (await self._line()).split()]

    async def do(self, statement: str) -> None:
        """Have it execute a line of Python."""
        assert self._process.stdin is not None
        self._process.stdin.write(statement.encode() + b"\n")
        assert await self._line() == b"done\n"

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return await self._process.stdout.readline()

    async def end(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        await self._process.wait()

    async def close_stdin(self) -> int:
        """Let it come to its end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self._process.wait()

    def shims(self) -> set[int]:
        return children_of(self.fork_server)


def children_of(pid: int) -> set[int]:
    """The children of a process with one thread; none if it has ended."""
    with suppress(OSError):
        return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return set()


def below(pid: int) -> set[int]:
    """Everybody below a process."""
    return {pid for child in children_of(pid) for pid in (child, *below(child))}


@asynccontextmanager
async def running_server(*scripts: str) -> AsyncIterator[Server]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, *scripts, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    server = Server(process)
    try:
        await server.begin()
        yield server
    finally:
        await server.end()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "pty"])
@pytest.mark.parametrize("trap", [":", "trap '' TERM HUP INT QUIT"])
async def test_a_killed_server_leaves_no_child_behind(gate: Gate, kind: str, trap: str) -> None:
    """Not even one that is deaf to everything a parent's death could send it."""
    async with running_server(kind, f"{trap}; {gate.shell}", kind, f"{trap}; {gate.shell}") as server:
        await gate.reached(2)

        await server.end(signal.SIGKILL)

        assert len(server.children) == 2
        for child in server.children:
            await gone(child)


@pytest.mark.slow
async def test_a_killed_server_leaves_nobody_behind_whom_its_children_started(gate: Gate) -> None:
    """One stays in the group of its parent; the other has left session, group and parent."""
    scripts = f"({gate.shell}) & wait", DAEMON.format(door=gate.shell)
    async with running_server("pipe", scripts[0], "pipe", scripts[1]) as server:
        await gate.reached(2)
        started = {pid for shim in server.shims() for pid in below(shim)}
        assert len(started - set(server.children)) >= 2

        await server.end(signal.SIGKILL)

        for pid in started:
            await gone(pid)


@pytest.mark.slow
async def test_fork_server_and_shims_end_with_their_server(gate: Gate) -> None:
    async with running_server("pipe", gate.shell) as server:
        await gate.reached()
        await eventually(lambda: len(server.shims()) == 1)
        shims = server.shims()

        await server.end(signal.SIGKILL)

        for pid in (server.fork_server, *shims):
            await gone(pid)


@pytest.mark.slow
async def test_a_start_that_is_under_way_when_the_server_is_killed_leaves_nobody(tmp_path: Path) -> None:
    """The program runs only when nobody is left to be told of it."""
    slow = SlowProgram("/bin/sleep", tmp_path)
    try:
        async with running_server() as server:
            await server.do(f"start('pipe', {slow.path!r}, '1000')")
            await slow.reached()
            await eventually(lambda: any(map(children_of, server.shims())))
            starting = {pid for shim in server.shims() for pid in children_of(shim)}
            shims = server.shims()

            await server.end(signal.SIGKILL)
            slow.release()

            for pid in starting | shims:
                await gone(pid)
    finally:
        slow.close()


@pytest.mark.slow
@pytest.mark.parametrize("close", ["children[0].close()", "os.close(children[0].fileno())"])
async def test_a_child_that_its_server_gives_up_ends_alone(gate: Gate, close: str) -> None:
    """Nobody could end it later; the others have nothing to do with it."""
    async with running_server("pipe", gate.shell, "pipe", gate.shell) as server:
        first, second = server.children
        await gate.reached(2)

        await server.do(close)

        await gone(first)
        assert is_alive(second)


@pytest.mark.slow
async def test_children_outlive_a_server_that_only_closed_its_fork_server_until_it_ends(gate: Gate) -> None:
    """To close comes first, so that nothing new begins; what runs is then ended one by one."""
    async with running_server("pipe", gate.shell) as server:
        (child,) = server.children
        await gate.reached()

        await server.do("spawner.close()")

        assert is_alive(child)
        await gone(server.fork_server)
        assert await server.close_stdin() == 0
        await gone(child)
