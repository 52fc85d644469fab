"""The app endpoint: its client, and what is measured of it."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from bench.client import Client, Failed
from bench.figure import GIB, Figure
from bench.servers import Running

_DELTA = re.compile(
    rb'\{"method":"(?:process|command/exec)/outputDelta","params":\{"process(?:Handle|Id)":"([^"\\]*)",'
    rb'"stream":"\w+","deltaBase64":"'
)
_TAIL = re.compile(rb'","capReached":\w+\},"emittedAtMs":\d+\}')
_LONGEST_TAIL = 80


class AppClient(Client):
    """One connection in the app dialects."""

    greeting: ClassVar[dict[str, Any]] = {
        "clientInfo": {"name": "bench", "version": "1"},
        "capabilities": {"experimentalApi": True},
    }

    def __init__(self, url: str, *, quickack: bool = False) -> None:
        self.received = 0
        self.exited: dict[str, float] = {}
        """When the end of a process was told."""
        super().__init__(url, quickack=quickack)

    def spawn(self, name: str, command: list[str]) -> tuple[float, float, float]:
        """Run a process; return when it was asked for, answered and over."""
        answered: list[float] = []
        began = time.perf_counter()
        params = {"processHandle": name, "command": command, "cwd": "/"}
        self.request("process/spawn", params, lambda result: answered.append(time.perf_counter()))
        self.run(lambda: bool(answered) and name in self.exited)
        return began, answered[0], self.exited.pop(name)

    def execute(self, **params: Any) -> dict[str, Any]:
        """Run a command; return its result."""
        result: dict[str, Any] = self.call(
            "command/exec", {**params, "sandboxPolicy": {"type": "dangerFullAccess"}}, timeout=600
        )
        return result

    def _message(self, start: int, end: int) -> None:
        delta = _DELTA.match(self._buffer, start, min(end, start + 300))
        if delta is None:
            super()._message(start, end)
            return
        tail = _TAIL.search(self._buffer, max(delta.end(), end - _LONGEST_TAIL), end)
        if tail is None:
            raise Failed("a notification of output does not end as expected")
        last = tail.start()
        padding = (self._buffer[last - 1] == 0x3D) + (self._buffer[last - 2] == 0x3D)
        self.received += (last - delta.end()) // 4 * 3 - padding

    def _told(self, method: str, params: Any) -> None:
        if method == "process/exited":
            self.exited[params["processHandle"]] = time.perf_counter()


def _connect(server: Running) -> AppClient:
    return AppClient(server.url, quickack=server.quickack)


def spawn(server: Running, scale: float) -> Iterator[Figure]:
    client, count = _connect(server), max(10, int(300 * scale))
    times = [client.spawn(f"p{number}", ["/bin/true"]) for number in range(count + 5)][5:]
    over = statistics.median(over - began for began, _, over in times)
    answer = statistics.median(answered - began for began, answered, _ in times)
    yield Figure("app: process/spawn to process/exited, p50", over * 1e3, "ms")
    yield Figure("app: process/spawn answer, p50", answer * 1e3, "ms")
    client.close()


def command(server: Running, scale: float) -> Iterator[Figure]:
    client, count = _connect(server), max(10, int(300 * scale))
    times = []
    for _ in range(count + 5):
        before = time.perf_counter()
        client.execute(command=["/bin/true"])
        times.append(time.perf_counter() - before)
    yield Figure("app: command/exec, p50", statistics.median(times[5:]) * 1e3, "ms")
    client.close()


def stream(server: Running, scale: float) -> Iterator[Figure]:
    client, size = _connect(server), int(GIB * scale)
    before, cpu, own = time.perf_counter(), server.cpu(), time.process_time()
    client.execute(
        command=["head", "-c", str(size), "/dev/zero"],
        processId="stream",
        streamStdoutStderr=True,
        disableOutputCap=True,
        disableTimeout=True,
    )
    took = time.perf_counter() - before
    if client.received != size:
        raise Failed(f"{client.received} bytes came, {size} were written")
    yield Figure("app: 1 GiB streamed by a command", size / took / 1e6, "MB/s", higher_is_better=True)
    yield Figure("app: 1 GiB streamed by a command, server CPU", (server.cpu() - cpu) * GIB / size, "s/GiB")
    share = (time.process_time() - own) / took
    yield Figure("app: 1 GiB streamed by a command, share of a core the driver needs", share, "")
    client.close()


CASES: dict[str, Callable[[Running, float], Iterator[Figure]]] = {
    "app_spawn": spawn,
    "app_command": command,
    "app_stream": stream,
}
