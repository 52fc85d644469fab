"""Trees of processes as a test sees them from outside, and servers that run as another user."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

import holdfast
from tests.fakes.backends import LONG
from tests.fakes.client import Client, Message
from tests.fakes.server import COMMAND, PATIENCE, Program, Sighting, eventually, is_same

NOBODY = 65534
"""The user and the group who own nothing."""

USERS = ("self", "nobody") if os.getuid() == 0 else ("self",)
"""Whose rights a server is tried with."""

RUNS = int(os.environ.get("HOLDFAST_TREE_RUNS", "10" if LONG else "1"))
"""How often each end of a tree is tried; a race is not seen at once, but there are many ends and users."""

FEWER_RUNS = max(1, RUNS // 3)
"""The same for ends that are another's variant."""

ESCAPES = str(Path(__file__).with_name("escapes.py"))


# Other users.


@dataclass(frozen=True)
class User:
    """Whose rights a server has, and a Python that it can run."""

    name: str
    uid: int | None
    python: str

    @property
    def env(self) -> dict[str, str]:
        """What this Python needs to find the server's parts."""
        own = (str(Path(holdfast.__file__).parents[1]), *(path for path in sys.path if "-packages" in path))
        return {} if self.uid is None else {"PYTHONPATH": ":".join(own), "HOME": "/"}

    def popen(self, *argv: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
        pipe, whole = subprocess.PIPE, {**os.environ, **self.env, **env}
        command, nothing = [self.python, *argv], subprocess.DEVNULL
        if self.uid is None:
            return subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=pipe, env=whole)
        return subprocess.Popen(
            command,
            stdin=nothing,
            stdout=pipe,
            stderr=pipe,
            env=whole,
            cwd="/",
            user=self.uid,
            group=self.uid,
            extra_groups=[],
        )


@cache
def user(name: str) -> User:
    """One of ``USERS``; skips the test if no Python here can be run by them."""
    if name == "self":
        return User(name, None, sys.executable)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        found = User(name, NOBODY, python)
        with contextlib.suppress(OSError):
            trial = found.popen("-c", "import holdfast.cli.main, msgspec", env={})
            trial.communicate(timeout=PATIENCE)
            if trial.returncode == 0:
                return found
    pytest.skip(f"no {version} that user {NOBODY} may run finds holdfast and what it needs")


class ProgramOf(Program):
    """``holdfast serve`` with somebody's rights."""

    def __init__(self, owner: User, *options: str, script: str | None = None) -> None:
        """``script`` is Python that runs first and ends by executing its arguments."""
        before = () if script is None else ("-c", script, owner.python)
        self._process = owner.popen(*before, *COMMAND[1:], *options, env={})
        self._family = set()
        self.errors = b""


@dataclass
class Host:
    """A server, and what can be run there."""

    program: Program
    url: str
    user: User

    @property
    def python(self) -> str:
        return self.user.python


@contextlib.contextmanager
def host_of(name: str, *options: str, script: str | None = None) -> Iterator[Host]:
    """A server with one listener and somebody's rights, stopped and looked after at the end."""
    owner = user(name)
    program = ProgramOf(owner, "--listen", "ws://127.0.0.1:0", *options, script=script)
    try:
        yield Host(program, program.read_url(), owner)
    except BaseException:
        with contextlib.suppress(Exception):
            program.stop()
        raise
    program.stop()


# Clients that know the extensions.


async def greet(talking: Client, **params: object) -> Message:
    """The handshake of a client that knows the extensions."""
    result = await talking.call("initialize", {"clientName": "test", "holdfast": 1, **params})
    talking.session = result["sessionId"]
    talking.notify("initialized")
    return result


@contextlib.asynccontextmanager
async def knowing(url: str, *, resume: str | None = None) -> AsyncIterator[Client]:
    """A client that knows the extensions, closed at the end."""
    talking = await Client.connect(url)
    try:
        await greet(talking, **({} if resume is None else {"resumeSessionId": resume}))
        yield talking
    finally:
        await talking.close()


async def exit_of(talking: Client, name: str) -> Message:
    """Wait until a process has exited; gives what was told of it."""
    tale = talking.tale(name)
    await talking.until(lambda: tale.exit_codes)
    (told,) = (params for kind, params in tale.events if kind == "exited")
    return told


# Those who try to get away.


@dataclass
class Brood:
    """Everybody that ``escapes.py`` has started, and the program itself."""

    mark: str
    reports: dict[Sighting, str] = field(default_factory=dict)
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    """Everybody has reported."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Nobody is left who has the connection."""
    ends: list[asyncio.StreamWriter] = field(default_factory=list)

    def argv(self, python: str) -> list[str]:
        return [python, "-I", "-S", "-Wignore", ESCAPES, self.mark]

    async def follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear what they report."""
        self.ends.append(writer)
        try:
            at_once, last = map(int, (await reader.readline()).split())
            while report := await reader.readline():
                pid, born, way = report.decode().rstrip().split(" ", 2)
                self.reports[Sighting(int(pid), int(born))] = way
                if len(self.reports) == at_once:
                    writer.write(b"!" * last)
                elif len(self.reports) == at_once + last:
                    self.complete.set()
        except (ConnectionError, ValueError):
            pass  # They ended in the middle of something.
        finally:
            self.over.set()
            writer.close()

    async def grown(self) -> None:
        """Wait until everybody has reported."""
        async with asyncio.timeout(PATIENCE):
            await self.complete.wait()
        assert len(self.reports) >= 70

    def left(self) -> dict[Sighting, str]:
        """Who has reported and runs, or has the mark and runs."""
        marked = {sighting: self.reports.get(sighting, "unreported") for sighting in _marked(self.mark)}
        return {sighting: way for sighting, way in {**self.reports, **marked}.items() if is_same(sighting)}

    async def gone(self) -> None:
        """Wait until nobody is left."""
        async with asyncio.timeout(PATIENCE):
            await self.over.wait()
        await eventually(lambda: not self.left())


def _marked(mark: str) -> Iterator[Sighting]:
    """Who has the mark in its arguments or its environment."""
    wanted = mark.encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            texts = (Path(entry.path, name).read_bytes() for name in ("cmdline", "environ"))
            if any(wanted in text for text in texts):
                born = Path(entry.path, "stat").read_text().rpartition(")")[2].split()[19]
                yield Sighting(int(entry.name), int(born))


@contextlib.asynccontextmanager
async def brood() -> AsyncIterator[Brood]:
    """A place where those who escape report; at the end they are killed, should any be left."""
    family = Brood(f"holdfast-escape-{uuid.uuid4().hex}")
    server = await asyncio.start_unix_server(family.follow, f"\0{family.mark}")
    try:
        yield family
    finally:
        for end in family.ends:
            end.close()
        for _ in range(3):
            for sighting in family.left():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(sighting.pid, 9)
        server.close()
        await server.wait_closed()
