"""Calls that the system refuses to a server whose processes outlive it, to its keeper and to its spare."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import holdfast
from holdfast.errors import HoldfastError
from holdfast.model import Size, Stream
from tests.fakes.injection import tracing
from tests.fakes.mortal import await_part, kill_server
from tests.fakes.server import PATIENCE, Program, commands, eventually

ERRORS = ("ENOMEM", "ENOSPC", "EAGAIN", "EMFILE")

CALLS = {
    "splice": ("holdfast-server",),
    "sendfile": ("holdfast-server",),
    "lseek": ("holdfast-server",),
    "fallocate": ("holdfast-server",),
    "sendmsg": ("holdfast-server", "holdfast-keeper", "holdfast-spare"),
    "fork": ("holdfast-keeper", "holdfast-spare"),
}
"""Calls, and the processes to which they are refused."""

_FORK = "/fork|clone"
"""Whatever the libraries use to fork, as a pattern of strace."""

SAYS = """
import os, sys, tty
if os.isatty(1):
    tty.setraw(1)
os.write(1, b"!")
for number in range(12):
    for fd in (1, 2):
        data = b"%d.%04d" % (fd, number) * 3000
        while data:
            data = data[os.write(fd, data):]
    os.write(1, sys.stdin.buffer.readline())
sys.exit(23)
"""


def said(fd: int) -> bytes:
    """What such a process says on one of its outputs, but for what it was given."""
    return b"".join(b"%d.%04d" % (fd, number) * 3000 for number in range(12))


class DurableScene:
    """A server, and one of everything that it does while a call fails."""

    def __init__(self, program: Program, url: str) -> None:
        self.program = program
        self.url = url

    def pid_of(self, name: str) -> int:
        return self.program.pid if name == "holdfast-keeper" else await_part(self.program, name)

    async def inject(self, name: str, call: str, error: str, position: int) -> str:
        """Have a call of a process fail, once; say what became of the work meanwhile."""
        pattern = _FORK if call == "fork" else call
        fault = f"inject={pattern}:error={error}:when={position}"
        async with tracing([self.pid_of(name)], "-e", f"trace={pattern}", "-e", fault):
            if name == "holdfast-spare":
                kill_server(self.program)
            found = await self.work()
        assert await self.work() == "done"
        await eventually(lambda: not commands(self.program.pid))
        await self.idles()
        return found

    async def work(self) -> str:
        """Two processes that talk and listen, one in a terminal; everything must come, or nothing start."""
        async with holdfast.connect(self.url, reconnect_timeout=PATIENCE) as host:
            found = await asyncio.gather(self._talk(host, tty=False), self._talk(host, tty=True))
        return next((each for each in found if each != "done"), "done")

    async def _talk(self, host: holdfast.Host, *, tty: bool) -> str:
        argv = [sys.executable, "-I", "-S", "-c", SAYS]
        options = {"terminal": Size(24, 80)} if tty else {"stdin": -1}
        try:
            handle = await host.start(argv, **options)
        except HoldfastError as error:
            return f"refused: {error}"
        async with asyncio.timeout(2 * PATIENCE):
            output = handle.chunks()
            chunks = [await anext(output)]  # A terminal is raw from here on.
            assert handle.stdin is not None
            for number in range(12):
                handle.stdin.write(b"line %d %d\n" % (number, number * 1000))
            chunks += [chunk async for chunk in handle.chunks()]
            outcome = await handle.wait()
        assert outcome.exit_code == 23, outcome
        assert [chunk.seq for chunk in chunks] == list(range(1, len(chunks) + 1))
        data = {fd: b"".join(c.data for c in chunks if c.stream is stream) for fd, stream in _OUTPUTS.items()}
        lines = [b"line %d %d\n" % (number, number * 1000) for number in range(12)]
        if tty:
            both = b"".join(
                b"1.%04d" % number * 3000 + b"2.%04d" % number * 3000 + lines[number] for number in range(12)
            )
            assert data[1] == b"!" + both
        else:
            rest = data[1]
            for line in lines:
                assert rest.count(line) == 1
                rest = rest.replace(line, b"")
            assert rest == b"!" + said(1)
            assert data[2] == said(2)
        return "done"

    async def idles(self) -> None:
        """See that nobody is busy while there is nothing to do."""
        pids = [self.pid_of(name) for name in ("holdfast-keeper", "holdfast-spare", "holdfast-server")]

        async def rests() -> bool:
            before = [_used(pid) for pid in pids]
            await asyncio.sleep(0.5)
            return all(_used(pid) - used < 0.15 for pid, used in zip(pids, before, strict=True))

        for _ in range(6):  # A server that has just begun has something to do.
            if await rests():
                return
        raise AssertionError("somebody is busy though there is nothing to do")


_OUTPUTS = {1: Stream.STDOUT, 2: Stream.STDERR}


def _used(pid: int) -> float:
    """Seconds of processor time."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return 0.0
