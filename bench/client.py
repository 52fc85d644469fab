"""A client of the exec dialect that costs little, so that the server is what is measured.

Output notifications, which are nearly everything, are taken apart without
decoding JSON or base64.  Payloads are masked with zeros, which is legal and free.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import socket
import time
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import urlsplit

Answer = Callable[[Any], None]

_TCP_QUICKACK = 12
_OUTPUT = re.compile(
    rb'\{"method":"process/output","params":\{"processId":"([^"\\]*)","seq":\d+,"stream":"\w+","chunk":"'
)
_ACCEPTED = re.compile(rb'\{"id":(\d+),"result":\{"status":"accepted"\}\}')


class Failed(Exception):
    """The server did not do what a case needs."""


class Process:
    """One process, as far as a case wants to know of it."""

    __slots__ = ("_events", "_last", "answered", "closed_at", "name", "on_output", "received", "started")

    def __init__(self, name: str, on_output: Callable[[int], None] | None) -> None:
        self.name = name
        self.on_output = on_output
        self.started = time.perf_counter()
        self.answered = 0.0
        self.closed_at = 0.0
        self.received = 0
        self._events = 0
        self._last = 0

    @property
    def done(self) -> bool:
        return bool(self.closed_at and self.answered)

    def event(self, closed: int | None = None) -> None:
        """Count an event.  Events may come in any order; the last one has the highest number."""
        self._events += 1
        if closed is not None:
            self._last = closed
        if self._last and self._events >= self._last:
            self.closed_at = time.perf_counter()


class Client:
    """One connection."""

    greeting: ClassVar[dict[str, Any]] = {"clientName": "bench"}
    room: ClassVar[int] = 1 << 20
    """Bytes for what has come, in the beginning."""

    def __init__(self, url: str, *, quickack: bool = False) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._quickack = quickack
        self._socket = socket.create_connection((parts.hostname, parts.port or 80), 20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(self.room))
        self._filled = 0
        self._out: list[bytes] = []
        self._answers: dict[int, Answer] = {}
        self._processes: dict[bytes, Process] = {}
        self._next_id = 0
        self._fragments: list[bytes] = []
        self._upgrade(parts.netloc)
        self._socket.setblocking(False)
        self.call("initialize", self.greeting)
        self.send({"method": "initialized"})
        self.flush()

    def _upgrade(self, host: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            more = self._socket.recv(4096)
            if not more:
                raise Failed("the server closed during the upgrade")
            head += more
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise Failed(f"no upgrade: {head!r}")

    # Out.

    def send(self, message: dict[str, Any]) -> None:
        """Queue a message; ``flush`` sends it."""
        self.send_text(json.dumps(message, separators=(",", ":")).encode())

    def send_text(self, text: bytes) -> None:
        size = len(text)
        if size < 126:
            head = bytes((0x81, 0x80 | size))
        elif size < 65_536:
            head = b"\x81\xfe" + size.to_bytes(2, "big")
        else:
            head = b"\x81\xff" + size.to_bytes(8, "big")
        self._out.append(head + b"\0\0\0\0" + text)

    def flush(self) -> None:
        """Send what was queued."""
        left = memoryview(b"".join(self._out))
        self._out.clear()
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                _is_ready(self._socket, select.POLLOUT, 20)

    def request(self, method: str, params: Any, answer: Answer) -> None:
        self._next_id += 1
        self._answers[self._next_id] = answer
        self.send({"id": self._next_id, "method": method, "params": params})

    def send_write(self, params: bytes) -> None:
        """Queue a ``process/write`` whose params are encoded already; nobody waits for its answer."""
        self._next_id += 1
        self._answers[self._next_id] = _ignore
        self.send_text(b'{"id":%d,"method":"process/write","params":%b}' % (self._next_id, params))

    def call(self, method: str, params: Any = None, *, timeout: float = 30) -> Any:
        """Send a request and wait for its result."""
        results: list[Any] = []
        self.request(method, params, results.append)
        self.run(lambda: bool(results), timeout=timeout)
        return results[0]

    # Processes.

    def start(
        self,
        argv: list[str],
        *,
        tty: bool = False,
        stdin: bool = False,
        on_output: Callable[[int], None] | None = None,
        sandbox: dict[str, Any] | None = None,
    ) -> Process:
        """Ask for a process; it has a name of its own."""
        process = Process(f"p{self._next_id}", on_output)
        self._processes[process.name.encode()] = process

        def started(result: Any) -> None:
            process.answered = time.perf_counter()

        params: dict[str, Any] = {
            "processId": process.name,
            "argv": argv,
            "cwd": "file:///",
            "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            "tty": tty,
            "pipeStdin": stdin,
        }
        if sandbox is not None:
            params["sandbox"] = sandbox
        self.request("process/start", params, started)
        return process

    def wait_started(self, *processes: Process) -> None:
        self.run(lambda: all(process.answered for process in processes))

    def wait_done(self, *processes: Process, timeout: float = 60) -> None:
        self.run(lambda: all(process.done for process in processes), timeout=timeout)

    def forget(self, process: Process) -> None:
        del self._processes[process.name.encode()]

    def terminate(self, processes: list[Process]) -> None:
        """End them and wait for it."""
        for process in processes:
            self.request("process/terminate", {"processId": process.name}, _ignore)
        self.wait_done(*processes, timeout=120)

    # In.

    def run(self, until: Callable[[], bool], *, timeout: float = 60) -> None:
        """Receive until the condition holds."""
        deadline = time.monotonic() + timeout
        sock = self._socket
        while not until():
            if self._out:
                self.flush()
            if self._quickack:
                sock.setsockopt(socket.IPPROTO_TCP, _TCP_QUICKACK, 1)
            wait = deadline - time.monotonic()
            if wait <= 0 or not _is_ready(sock, select.POLLIN, wait):
                raise Failed(f"nothing more came within {timeout:g} s")
            self.receive()

    def receive(self) -> None:
        """Take what has come, without waiting."""
        try:
            count = self._socket.recv_into(self._buffer[self._filled :])
        except BlockingIOError:
            return
        if not count:
            raise Failed("the server closed the connection")
        end = self._filled + count
        at = self._frames(end)
        rest = end - at
        if at and rest:
            self._buffer[:rest] = bytes(self._buffer[at:end])
        self._filled = rest
        if rest == len(self._buffer):
            grown = memoryview(bytearray(2 * rest))
            grown[:rest] = self._buffer
            self._buffer = grown

    def _frames(self, end: int) -> int:
        """Handle the whole frames in the buffer; return where the rest begins."""
        buffer, at = self._buffer, 0
        while end - at >= 2:
            first, size, start = buffer[at], buffer[at + 1], at + 2
            if size == 126:
                if end - at < 4:
                    break
                size, start = int.from_bytes(buffer[at + 2 : at + 4], "big"), at + 4
            elif size == 127:
                if end - at < 10:
                    break
                size, start = int.from_bytes(buffer[at + 2 : at + 10], "big"), at + 10
            if start + size > end:
                break
            at = start + size
            self._frame(first, start, at)
        return at

    def _frame(self, first: int, start: int, end: int) -> None:
        op = first & 0x0F
        if op == 9:
            self._out.append(bytes((0x8A, 0x80 | end - start)) + b"\0\0\0\0" + bytes(self._buffer[start:end]))
        elif op == 8:
            raise Failed(f"the server closed: {bytes(self._buffer[start:end])!r}")
        elif first == 0x81:
            self._message(start, end)
        elif op <= 2:
            self._fragments.append(bytes(self._buffer[start:end]))
            if first & 0x80:
                text, self._fragments = b"".join(self._fragments), []
                self._decoded(json.loads(text))

    def _message(self, start: int, end: int) -> None:
        output = _OUTPUT.match(self._buffer, start, min(end, start + 300))
        if output is None:
            accepted = _ACCEPTED.match(self._buffer, start, end)
            if accepted is not None:
                self._answers.pop(int(accepted[1]))(None)
                return
            self._decoded(json.loads(bytes(self._buffer[start:end])))
            return
        process = self._processes.get(output[1])
        if process is None:
            return
        # `"}}` ends the message; before it base64, four characters for three bytes.
        last = end - 3
        padding = (self._buffer[last - 1] == 0x3D) + (self._buffer[last - 2] == 0x3D)
        size = (last - output.end()) // 4 * 3 - padding
        process.received += size
        process.event()
        if process.on_output is not None:
            process.on_output(size)

    def _decoded(self, message: dict[str, Any]) -> None:
        if "id" in message:
            if "error" in message:
                raise Failed(f"refused: {message['error']}")
            self._answers.pop(message["id"])(message["result"])
            return
        self._told(message["method"], message.get("params"))

    def _told(self, method: str, params: Any) -> None:
        process = self._processes.get(params["processId"].encode())
        if process is not None:
            closed = method == "process/closed"
            process.event(params["seq"] if closed else None)

    def close(self) -> None:
        self._socket.close()


def _is_ready(sock: socket.socket, events: int, seconds: float) -> bool:
    """Wait for a socket of any number: ``select`` knows 1,024."""
    poll = select.poll()
    poll.register(sock, events)
    return bool(poll.poll(seconds * 1000))


def _ignore(result: Any) -> None:
    """Nobody waits for this answer."""
