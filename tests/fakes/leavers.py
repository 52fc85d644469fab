"""Clients that ask for everything at once and leave in the middle of it, in every way there is."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.client import PATH, start_params, write_params
from tests.fakes.frames import CLOSE, TEXT, Wire, frame_bytes
from tests.fakes.server import PATIENCE

KIB, MIB = 1 << 10, 1 << 20

LIMITS = ["session.detached_seconds=100ms", "session.closed_seconds=100ms", "engine.stdin_bytes=64k"]
"""With these, what outlives a connection does so for a moment, and few bytes fill the input of a process."""

Request = tuple[str, Any]


class Leaver:
    """Makes up clients.  Each has its chance from the same seed."""

    def __init__(self, url: str, web: str, folder: Path, chance: random.Random) -> None:
        """``web`` answers and never ends; ``folder`` is for files."""
        self._url = url
        self._web = web
        self._folder = folder
        self._chance = chance
        (folder / "large").write_bytes(bytes(6 * MIB))

    async def visit(self) -> None:
        """The life of one client."""
        wire = await Wire.open(self._url)
        try:
            if self._chance.random() < 0.7:
                requests = list(self._exec())
                first: Request = ("initialize", {"clientName": "leaver", "holdfast": 1})
            else:
                requests = list(self._app())
                first = (
                    "initialize",
                    {"clientInfo": {"name": "leaver", "version": "1"}, "capabilities": MORE},
                )
            self._chance.shuffle(requests)
            await self._talk(wire, [first, *requests])
        finally:
            wire.abort()
            await wire.close()

    async def _talk(self, wire: Wire, requests: list[Request]) -> None:
        messages = [
            msgspec.json.encode({"id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(requests)
        ]
        messages.insert(1, b'{"method":"initialized"}')
        data = b"".join(frame_bytes(TEXT, message) for message in messages)
        way = self._chance.choice(["reset", "end", "goodbye", "breach", "violation", "torn"])
        if way == "torn":
            data = data[: self._chance.randrange(len(data))]
        wire.writer.write(data + ENDS.get(way, b""))
        if way == "end":
            wire.writer.write_eof()
        if way in ("reset", "end"):
            # Each answer, or piece of output, is another point to leave at; so many come in any case.
            async with asyncio.timeout(PATIENCE):
                for _ in range(self._chance.randrange(6)):
                    await wire.receive()

    def _exec(self) -> Iterator[Request]:
        chance, folder = self._chance, self._folder
        yield "process/start", start_params("full", "sleep", "1000", pipeStdin=True)
        yield "process/start", start_params("tty", "cat", tty=True)
        yield "process/start", start_params("loud", "sh", "-c", "yes | head -c 3000000")
        yield "process/start", start_params("missing", "no such program")
        for number in range(12):
            yield "process/write", write_params("full", bytes(16 * KIB), f"w{number}")
        for name in ("full", "tty", "loud"):
            yield "process/read", {"processId": name, "waitMs": 60_000, "afterSeq": 9}
            yield "process/wait", {"processId": name, "waitMs": 60_000}
            yield "process/waitFor", {"processId": name, "waitMs": 60_000, "port": 1}
            yield "process/snapshot", {"processId": name}
            yield "process/readRange", {"processId": name}
        yield "process/terminate", {"processId": chance.choice(["full", "tty"]), "graceMs": 50}
        yield "process/list", None
        yield "process/usage", {}
        yield "events/subscribe", {}
        for number in range(8):
            path = f"file://{folder}/{chance.choice('abc')}"
            mode = chance.choice(["read", "replace"])
            yield "fs/open", {"handleId": f"h{number % 6}", "path": path, "mode": mode}
            yield "fs/writeFile", {"path": path, "dataBase64": base64.b64encode(bytes(KIB)).decode()}
            yield "fs/readBlock", {"handleId": f"h{number % 6}", "offset": 0, "len": 100}
        yield "fs/readFile", {"path": f"file://{folder}/large"}
        yield "fs/readFile", {"path": f"file://{folder}/large"}
        yield (
            "fs/copy",
            {
                "sourcePath": f"file://{folder}/large",
                "destinationPath": f"file://{folder}/copy",
                "recursive": False,
            },
        )
        yield "capabilityRoots/discoverV1", {"roots": [{"id": "r", "path": f"file://{folder}"}] * 3}
        yield "fs/watchMissing", {"watchId": 1, "missing": [f"file://{folder}/never"]}
        for number, streams in enumerate((True, False)):
            yield (
                "http/request",
                {
                    "method": "GET",
                    "url": self._web,
                    "requestId": f"r{number}",
                    "streamResponse": streams,
                },
            )
        if chance.random() < 0.3:
            yield "session/close", None

    def _app(self) -> Iterator[Request]:
        folder = str(self._folder)
        for number, command in enumerate(("sleep 1000", "cat", "yes | head -c 2000000", "exit 3")):
            command_line = ["sh", "-c", command]
            yield (
                "process/spawn",
                {
                    "processHandle": f"h{number}",
                    "command": command_line,
                    "cwd": folder,
                    "env": {"PATH": PATH},
                    "streamStdin": True,
                    "outputBytesCap": None,
                },
            )
            yield "command/exec", {"command": command_line, "cwd": folder, "disableOutputCap": True}
        for _ in range(10):
            data = base64.b64encode(bytes(16 * KIB)).decode()
            yield "process/writeStdin", {"processHandle": "h0", "deltaBase64": data}
        yield "process/kill", {"processHandle": "h1"}


MORE = {"experimentalApi": True}

ENDS = {
    "goodbye": frame_bytes(CLOSE, b"\x03\xe8"),
    "breach": frame_bytes(TEXT, b'{"method":"no/such/notification"}'),
    "violation": b"\x81\x00",
}
"""What comes behind the requests, in the same packet."""
