"""Who is outside of a sandbox, and can tell whether anybody has got there."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.client import Message
from tests.fakes.sandboxes import ConfiningServer


class Bystander:
    """Somebody outside who has nothing to do with it."""

    def __init__(self, confining: ConfiningServer) -> None:
        owner = {} if os.getuid() else {"user": confining.uid, "group": confining.uid, "extra_groups": []}
        self._process = subprocess.Popen(
            confining.python(str(Path(__file__).with_name("bystander.py"))),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            **owner,  # type: ignore[call-overload]
        )
        self.reach = self._read()
        self.before = self.state()

    def _read(self) -> Message:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"somebody has ended it: {self._process.wait()}"
        said: Message = json.loads(line)
        return said

    def state(self) -> Message:
        """What others have done to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def bystander(confining: ConfiningServer) -> Iterator[Bystander]:
    one = Bystander(confining)
    try:
        yield one
    finally:
        one.close()


class Ears:
    """Sockets outside that hear of whoever gets there."""

    def __init__(self, base: Path) -> None:
        self.stream_path, self.datagram_path = str(base / "stream"), str(base / "datagram")
        self.tcp, self.udp = socket.create_server(("127.0.0.1", 0)), socket.socket(type=socket.SOCK_DGRAM)
        self.udp.bind(self.tcp.getsockname())
        self.port: int = self.tcp.getsockname()[1]
        self.stream, self.datagram = (
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        )
        self.abstract = socket.socket(socket.AF_UNIX)
        self.stream.bind(self.stream_path)
        self.datagram.bind(self.datagram_path)
        self.abstract.bind("\0" + self.stream_path)
        for path in (self.stream_path, self.datagram_path):
            os.chmod(path, 0o666)  # noqa: S103  (or permissions would keep it, and not the sandbox)
        for one in (self.stream, self.abstract):
            one.listen()

    @property
    def all(self) -> dict[str, socket.socket]:
        names = ("tcp", "udp", "stream", "datagram", "abstract")
        return {name: getattr(self, name) for name in names}

    def heard(self) -> list[str]:
        """Where somebody is, or has been."""
        sockets = {one: name for name, one in self.all.items()}
        return sorted(sockets[one] for one in select.select(list(sockets), [], [], 0)[0])

    def close(self) -> None:
        for one in self.all.values():
            one.close()


@contextlib.contextmanager
def ears(base: Path) -> Iterator[Ears]:
    made = Ears(base)
    try:
        yield made
    finally:
        made.close()
