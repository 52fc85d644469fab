"""What is measured.  A case takes a running server and gives named figures."""

from __future__ import annotations

import base64
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.client import Client, Process
from bench.figure import GIB, Figure
from bench.servers import Running

TRUE = ["/bin/true"]
ECHO_SIZE = 16
LINE = "a line of some forty characters, or so.."


Case = Callable[[Running, float], Iterator[Figure]]


def _count(full: int, scale: float, least: int = 10) -> int:
    return max(least, int(full * scale))


# Starting.


def startup(server: Running, scale: float) -> Iterator[Figure]:
    yield Figure("start-up to listening", server.startup * 1e3, "ms")


def spawn_pipe(server: Running, scale: float) -> Iterator[Figure]:
    closed, answered = _one_by_one(server.connect(), _count(300, scale), tty=False)
    yield Figure("start to closed, pipe, p50", statistics.median(closed) * 1e3, "ms")
    yield Figure("start answer, p50", statistics.median(answered) * 1e3, "ms")


def spawn_pty(server: Running, scale: float) -> Iterator[Figure]:
    closed, _ = _one_by_one(server.connect(), _count(300, scale), tty=True)
    yield Figure("start to closed, PTY, p50", statistics.median(closed) * 1e3, "ms")


def spawn_sandboxed(server: Running, scale: float) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(dir=os.path.expanduser("~")) as root:
        for name, sandbox in (("read-only", _sandbox()), ("workspace-write", _sandbox(root))):
            closed, answered = _one_by_one(server.connect(), _count(150, scale), tty=False, sandbox=sandbox)
            yield Figure(f"sandboxed ({name}) start to closed, p50", statistics.median(closed) * 1e3, "ms")
            yield Figure(f"sandboxed ({name}) start answer, p50", statistics.median(answered) * 1e3, "ms")


def _sandbox(*roots: str) -> dict[str, Any]:
    """The two policies that most clients use."""
    places: list[tuple[dict[str, str], str]] = [({"kind": "root"}, "read")]
    if roots:
        places += [({"kind": kind}, "write") for kind in ("project_roots", "slash_tmp", "tmpdir")]
    entries = [{"path": {"type": "special", "value": value}, "access": access} for value, access in places]
    return {
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "workspaceRoots": [f"file://{root}" for root in roots],
        "windowsSandboxLevel": "disabled",
    }


def _one_by_one(
    client: Client, count: int, *, tty: bool, sandbox: dict[str, Any] | None = None
) -> tuple[list[float], list[float]]:
    closed, answered = [], []
    for number in range(count + 5):
        process = client.start(TRUE, tty=tty, sandbox=sandbox)
        client.wait_done(process)
        client.forget(process)
        if number >= 5:  # The first ones warm things up.
            closed.append(process.closed_at - process.started)
            answered.append(process.answered - process.started)
    client.close()
    return closed, answered


def flood(server: Running, scale: float) -> Iterator[Figure]:
    client, total = server.connect(), _count(2000, scale, 256)
    live: set[Process] = set()
    asked = 0
    before = time.perf_counter()
    while live or asked < total:
        while len(live) < 128 and asked < total:
            live.add(client.start(TRUE))
            asked += 1
        client.run(lambda: any(process.done for process in live))
        for process in [process for process in live if process.done]:
            live.remove(process)
            client.forget(process)
    yield Figure(
        "128 starts in flight", total / (time.perf_counter() - before), "processes/s", higher_is_better=True
    )
    client.close()


# Echo.


def echo_pipe(server: Running, scale: float) -> Iterator[Figure]:
    yield from _echo(server, scale, tty=False, where="pipe")


def echo_pty(server: Running, scale: float) -> Iterator[Figure]:
    yield from _echo(server, scale, tty=True, where="PTY")


def _echo(server: Running, scale: float, *, tty: bool, where: str) -> Iterator[Figure]:
    client = server.connect()
    echo = Echo(client, 1, tty=tty)
    echo.rounds(50)
    echo.times.clear()
    echo.rounds(_count(2000, scale, 100))
    yield Figure(f"echo through a {where}, one, p50", statistics.median(echo.times) * 1e6, "us")
    echo.stop()
    echo = Echo(client, 64, tty=tty)
    echo.rounds(5)
    each = _count(300, scale, 20)
    before, cpu = time.perf_counter(), server.cpu()
    echo.rounds(each)
    rate = 64 * each / (time.perf_counter() - before)
    yield Figure(f"echo through a {where}, 64 at once", rate, "round trips/s", higher_is_better=True)
    spent = (server.cpu() - cpu) / (64 * each) * 1e6
    yield Figure(f"echo through a {where}, 64 at once, server CPU", spent, "us/round trip")
    echo.stop()
    client.close()


class Echo:
    """Some processes that give back what they are given, and a ping-pong with each."""

    def __init__(self, client: Client, count: int, *, tty: bool) -> None:
        self._client = client
        self._left = 0
        self.times: list[float] = []
        self._sent = [0.0] * count
        self._missing = [0] * count
        self._to_go = [0] * count
        self._writes = 0
        argv = ["/bin/sh", "-c", "stty raw -echo; printf ready; exec cat"] if tty else ["/bin/cat"]
        self._processes = [
            client.start(argv, tty=tty, stdin=True, on_output=self._on_output(index))
            for index in range(count)
        ]
        client.wait_started(*self._processes)
        if tty:
            client.run(lambda: all(process.received >= 5 for process in self._processes))
        chunk = base64.b64encode(b"x" * ECHO_SIZE).decode()
        self._texts = [
            json.dumps({"processId": process.name, "chunk": chunk, "writeId": "@"}).encode()
            for process in self._processes
        ]

    def rounds(self, count: int) -> None:
        """So many round trips with each process, all processes at once."""
        self._left = count * len(self._processes)
        self._to_go = [count] * len(self._processes)
        for index in range(len(self._processes)):
            self._ping(index)
        self._client.run(lambda: not self._left, timeout=300)

    def _ping(self, index: int) -> None:
        self._writes += 1
        self._missing[index] = ECHO_SIZE
        self._sent[index] = time.perf_counter()
        params = self._texts[index].replace(b'"@"', b'"%d"' % self._writes)
        self._client.send_write(params)

    def _on_output(self, index: int) -> Callable[[int], None]:
        def got(size: int) -> None:
            if not self._missing[index]:
                return  # The word that a terminal is ready.
            self._missing[index] -= size
            if self._missing[index] > 0:
                return
            self._missing[index] = 0
            self.times.append(time.perf_counter() - self._sent[index])
            self._left -= 1
            self._to_go[index] -= 1
            if self._to_go[index]:
                self._ping(index)

        return got

    def stop(self) -> None:
        self._client.terminate(self._processes)


# Output.


def stream(server: Running, scale: float) -> Iterator[Figure]:
    size = int(GIB * scale)
    yield from _stream(server, size, ["head", "-c", str(size), "/dev/zero"], "1 GiB")


def lines(server: Running, scale: float) -> Iterator[Figure]:
    size = int(GIB * scale)
    yield from _stream(server, size, ["/bin/sh", "-c", f"yes '{LINE}' | head -c {size}"], "short lines")


def _stream(server: Running, size: int, argv: list[str], what: str) -> Iterator[Figure]:
    client = server.connect()
    before, cpu, own = time.perf_counter(), server.cpu(), time.process_time()
    process = client.start(argv)
    client.wait_done(process, timeout=600)
    took = time.perf_counter() - before
    if process.received != size:
        raise AssertionError(f"{process.received} bytes came, {size} were written")
    yield Figure(f"output of {what}", size / took / 1e6, "MB/s", higher_is_better=True)
    yield Figure(f"output of {what}, server CPU", (server.cpu() - cpu) * GIB / size, "s/GiB")
    yield Figure(
        f"output of {what}, share of a core the driver needs", (time.process_time() - own) / took, ""
    )
    client.close()


# Waiting.


def longpoll(server: Running, scale: float) -> Iterator[Figure]:
    client = server.connect()
    process = client.start(["sleep", "600"])
    client.wait_started(process)
    times = [_behind_a_poll(client, process) for _ in range(5)]
    yield Figure("request behind a long poll of 300 ms", statistics.median(times) * 1e3, "ms")
    client.terminate([process])
    client.close()


def _behind_a_poll(client: Client, process: Process) -> float:
    ended: list[object] = []
    client.request("process/read", {"processId": process.name, "waitMs": 300}, ended.append)
    before = time.perf_counter()
    client.call("environment/status")
    took = time.perf_counter() - before
    client.run(lambda: bool(ended))
    return took


# Memory.


def idle_processes(server: Running, scale: float) -> Iterator[Figure]:
    client, count = server.connect(), _count(1000, scale, 300)
    client.terminate(_sleepers(client, 20))
    before = server.memory()
    sleepers = _sleepers(client, count)
    grown = server.memory() - before
    yield Figure("memory per 1,000 idle processes", grown / count * 1000 / (1 << 20), "MiB")
    client.terminate(sleepers)
    client.close()


def _sleepers(client: Client, count: int) -> list[Process]:
    sleepers: list[Process] = []
    while len(sleepers) < count:
        more = [client.start(["sleep", "600"]) for _ in range(min(50, count - len(sleepers)))]
        client.wait_started(*more)
        sleepers += more
    return sleepers


def idle_connections(server: Running, scale: float) -> Iterator[Figure]:
    count = _count(1000, scale, 300)
    clients = [server.connect() for _ in range(20)]
    before = server.memory()
    clients += [server.connect() for _ in range(count)]
    grown = server.memory() - before
    yield Figure("memory per 1,000 idle connections", grown / count * 1000 / (1 << 20), "MiB")
    for client in clients:
        client.close()


CASES: dict[str, Case] = {
    "startup": startup,
    "spawn_pipe": spawn_pipe,
    "spawn_pty": spawn_pty,
    "spawn_sandboxed": spawn_sandboxed,
    "flood": flood,
    "echo_pipe": echo_pipe,
    "echo_pty": echo_pty,
    "stream": stream,
    "lines": lines,
    "longpoll": longpoll,
    "idle_processes": idle_processes,
    "idle_connections": idle_connections,
}
