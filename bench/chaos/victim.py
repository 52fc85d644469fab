"""A server whose processes outlive it, and whoever kills it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

_GLANCE = 0.002
"""Seconds between two looks at what sends no event: who is there, and what is in the log."""

_EARLY_MOST = 3
"""Servers in a row that are killed before they serve: the keeper gives up after five."""

_EARLY = 0.1
"""The share of servers that are killed at any time, also before they serve."""

LEAST, MOST = 0.08, 0.2
"""Seconds that a server serves before it is killed."""


class Gone(Exception):
    """The server is gone for good."""


class Victim:
    """``holdfast serve``, with what is needed to look at it.  A context manager: it is stopped at the end."""

    def __init__(self, *options: str, durability: str = "on") -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server has ended
        command = (sys.executable, "-m", "holdfast", "serve", "--durability", durability)
        self._process = subprocess.Popen(
            [*command, "--metrics", "--log-level", "info", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().strip()
        if not self.url:
            raise Gone(self.said())
        self._spare = 0

    @property
    def pid(self) -> int:
        """The process that was started."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def said(self) -> str:
        """What is in its log."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def count(self, words: str) -> int:
        """How often its log says so."""
        return self.said().count(words)

    def server(self) -> int | None:
        """The pid of the server of now; None if there is none."""
        if name_of(self._spare) != "holdfast-spare":
            spares = [pid for pid in children(self.pid) if name_of(pid) == "holdfast-spare"]
            self._spare = spares[0] if spares else 0
        # The spare reaps a server when it makes the next one.
        found = [
            pid
            for pid in children(self._spare)
            if name_of(pid) == "holdfast-server" and state_of(pid) not in "ZX"
        ]
        return found[-1] if found else None

    def figure(self, name: str) -> float:
        """One of its figures, by the whole name."""
        with urllib.request.urlopen(self.url.replace("ws:", "http:") + "/metrics", timeout=30) as page:  # noqa: S310
            for line in page.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.rpartition(" ")[2])
        raise KeyError(name)

    def commands(self) -> list[int]:
        """Everybody below the keeper who is no part of the server."""
        return [pid for pid in below(self.pid) if not name_of(pid).startswith("holdfast-")]

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


class Killer:
    """Kills the server again and again, once it serves, and now and then before."""

    def __init__(self, victim: Victim, draw: Random) -> None:
        self._victim = victim
        self._draw = draw
        self._early_in_a_row = 0
        self.kills = self.early = 0
        self.times: list[float] = []

    async def run(self, kills: int) -> None:
        """Kill so many servers."""
        while self.kills < kills:
            server = await self._next_server()
            waits = self._draw.random() >= _EARLY or self._early_in_a_row >= _EARLY_MOST
            if waits:
                await self._until(lambda: self._serves() >= self.kills + 1 - self.early)
            await asyncio.sleep(self._draw.uniform(LEAST, MOST) if waits else self._draw.uniform(0, MOST))
            is_early = self._serves() < self.kills + 1 - self.early
            with contextlib.suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
                self.kills += 1
                self.times.append(time.monotonic())
                self.early += is_early
                self._early_in_a_row = self._early_in_a_row + 1 if is_early else 0
            await self._until(partial(_has_ended, server))

    def _serves(self) -> int:
        return self._victim.count("listening on")

    async def _next_server(self) -> int:
        server: int | None = None

        def is_there() -> bool:
            nonlocal server
            server = self._victim.server()
            return server is not None

        await self._until(is_there)
        assert server is not None
        return server

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._victim.code is not None:
                raise Gone(f"the keeper ended with {self._victim.code}: {self._victim.said()[-2000:]}")
            await asyncio.sleep(_GLANCE)


def _has_ended(pid: int) -> bool:
    return state_of(pid) in "ZX"


# What the system shows of processes.


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def state_of(pid: int) -> str:
    """The letter of its state; X if there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "X"


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def below(root: int) -> Iterator[int]:
    """Everybody whose parents lead to that process."""
    for child in children(root):
        yield child
        yield from below(child)
