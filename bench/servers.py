"""The servers under test: start one, see what it costs, stop it."""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

from bench.client import Client, Failed

_URL = re.compile(rb"ws://[0-9.]+:[1-9][0-9]*(?=\s)")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Server:
    """How to start one."""

    name: str
    commands: dict[str, list[str]]
    """Per endpoint.  Must print a URL like ``ws://127.0.0.1:1234``, on whichever output."""
    quickack: bool = False
    home: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)

    def start(self, endpoint: str) -> Running:
        return Running(self, self.commands[endpoint])


class Running:
    """A server that runs.  A context manager: it is stopped at the end."""

    def __init__(self, server: Server, command: list[str]) -> None:
        self._server = server
        self.quickack = server.quickack
        environment = dict(os.environ, CODEX_HOME=server.home.name)
        before = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
        self.url = self._find_url()
        self.startup = time.perf_counter() - before
        """Seconds until the URL was printed."""
        # What it says later must not fill the pipe.
        threading.Thread(target=self._process.stdout.read, daemon=True).start()  # type: ignore[union-attr]

    def _find_url(self) -> str:
        assert self._process.stdout is not None
        fd, said = self._process.stdout.fileno(), b""
        deadline = time.monotonic() + 30
        while (url := _URL.search(said)) is None:
            if not select.select([fd], [], [], deadline - time.monotonic())[0]:
                raise Failed(f"{self._server.name} does not say where it listens")
            more = os.read(fd, 4096)
            if not more:
                raise Failed(f"{self._server.name} did not start")
            said += more
        return url[0].decode()

    def connect(self) -> Client:
        return Client(self.url, quickack=self._server.quickack)

    def cpu(self) -> float:
        """Seconds of processor time so far, of the server alone."""
        with open(f"/proc/{self._process.pid}/stat", encoding="utf-8") as file:
            after_name = file.read().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / _TICKS

    def memory(self) -> int:
        """Resident bytes of the server alone."""
        with open(f"/proc/{self._process.pid}/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def highest_memory(self) -> int:
        """The most bytes that were ever resident, of the server alone."""
        with open(f"/proc/{self._process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
