"""The guardian: children end with their server, however the server ends.

The server here is a small program of its own, because a guardian is forked
before anything else and because it takes a server that can be killed.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.fakes.gate import Gate, gone
from tests.fakes.process import PATIENCE, children_of, eventually, ignored_signals, is_alive, status

# Starts what its arguments say, "pipe" or "pty" and a script in turn; tells the pids of the children, and
# does what it reads from stdin.
SERVER = """if True:
    import os, select, sys
    from holdfast.host.guardian import Guardian
    guardian = Guardian()
    from holdfast.host.environ import Environment
    from holdfast.host.spawn import Spawner
    from holdfast.model import Size, Spec

    spawner = Spawner(Environment({}), guardian=guardian)
    children = []
    def start(kind, script):
        size = Size() if kind == "pty" else None
        spec = Spec(["sh", "-c", script], "/", {"PATH": "/usr/bin:/bin"}, terminal=size)
        children.append(spawner.start(spec))
        return children[-1]

    def reap(child):
        select.select([child.exit_fd], [], [])
        child.reap()

    for kind, script in zip(sys.argv[1::2], sys.argv[2::2]):
        start(kind, script)
    print(*(child.pid for child in children), flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
"""


class Server:
    """A server with a guardian."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def pids(self) -> list[int]:
        return [int(word) for word in (await self._line()).split()]

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

    def guardian(self) -> int:
        """Its one child that has no other program."""
        (pid,) = [pid for pid in children_of(self.pid) if status(pid)["Name"] == status(self.pid)["Name"]]
        return pid


@asynccontextmanager
async def running_server(*scripts: str) -> AsyncIterator[Server]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, *scripts, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    server = Server(process)
    try:
        yield server
    finally:
        await server.end()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "pty"])
@pytest.mark.parametrize("trap", [":", "trap '' TERM HUP INT QUIT"])
async def test_a_killed_server_leaves_no_child_behind(gate: Gate, kind: str, trap: str) -> None:
    """Not even one that is deaf to everything a parent's death could send it."""
    async with running_server(kind, f"{trap}; {gate.shell}", kind, f"{trap}; {gate.shell}") as server:
        children = await server.pids()
        await gate.reached(2)

        await server.end(signal.SIGKILL)

        for child in children:
            await gone(child)


@pytest.mark.slow
async def test_a_killed_server_leaves_no_grandchild_of_a_group_behind(gate: Gate) -> None:
    async with running_server("pipe", f"({gate.shell}) & wait") as server:
        (child,) = await server.pids()
        await gate.reached()
        (grandchild,) = children_of(child)

        await server.end(signal.SIGKILL)

        await gone(child)
        await gone(grandchild)


@pytest.mark.slow
async def test_the_guardian_ends_with_its_server() -> None:
    async with running_server() as server:
        await server.pids()
        guardian = server.guardian()

        await server.end(signal.SIGKILL)

        await gone(guardian)


@pytest.mark.slow
async def test_a_server_that_closes_its_guardian_takes_its_children_with_it(gate: Gate) -> None:
    async with running_server("pipe", gate.shell) as server:
        (child,) = await server.pids()
        guardian = server.guardian()
        await gate.reached()

        await server.do("guardian.close()")

        await gone(child)
        assert not is_alive(guardian)
        assert await server.close_stdin() == 0


@pytest.mark.slow
async def test_a_reaped_child_is_no_longer_noted_and_its_place_is_used_again(gate: Gate) -> None:
    """Its number may be a stranger's by then, whom the guardian must not touch."""
    async with running_server("pipe", "exit 0", "pipe", gate.shell) as server:
        _, second = await server.pids()
        await gate.reached()

        await server.do("reap(children[0])")
        await server.do("assert list(guardian._pids[:3]) == [0, children[1].pid, 0]")
        await server.do(f"start('pipe', {gate.shell!r})")
        await server.do("assert list(guardian._pids[:3]) == [children[2].pid, children[1].pid, 0]")
        await gate.reached()
        await server.end(signal.SIGKILL)

        await gone(second)


@pytest.mark.slow
async def test_the_guardian_is_out_of_reach_of_signals_to_the_servers_group() -> None:
    """Ctrl-C on a server's terminal must not take away what protects its children."""
    async with running_server() as server:
        await server.pids()
        guardian = server.guardian()
        # The server may speak before the guardian has settled.
        deaf_to = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
        await eventually(lambda: deaf_to <= ignored_signals(guardian))

        assert (status(guardian)["NSsid"], status(guardian)["NSpgid"]) == (str(guardian), str(guardian))
