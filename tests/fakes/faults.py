"""A bad network: a proxy that does something to a connection after so many bytes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit


class Way(Enum):
    """Which way the bytes go."""

    THERE = "to the server"
    BACK = "to the client"


class Trouble(Enum):
    CUT = "cut"
    """Both ends find the connection broken."""
    HALF_CLOSE = "half-close"
    """Nothing more goes this way, and its reader is told so."""
    DUPLICATE = "duplicate"
    """The last byte comes twice."""
    DELAY = "delay"
    """What follows comes later, after whatever goes the other way."""
    SWALLOW = "swallow"
    """What follows never comes, and nobody is told."""


@dataclass(frozen=True)
class Fault:
    """What happens, and when."""

    trouble: Trouble
    way: Way
    at: int
    """Bytes that have gone this way before."""


Plan = Callable[[int], Fault | None]
"""The fault of each connection, by its number from 0."""

_A_WHILE = 0.02
"""Seconds of a delay: anything longer than the answer takes."""


class Network:
    """What happened."""

    def __init__(self) -> None:
        self.connections = 0
        self.faults = 0
        """How many faults took place: a connection may be over before its fault is due."""
        self.passed = {Way.THERE: 0, Way.BACK: 0}
        """Bytes that went through the first connection."""


@asynccontextmanager
async def bad_network(url: str, plan: Plan) -> AsyncIterator[tuple[str, Network]]:
    """A proxy to the server at ``url``; gives its own URL."""
    network = Network()
    lines: set[asyncio.Task[None]] = set()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        lines.add(task)
        number, network.connections = network.connections, network.connections + 1
        target = urlsplit(url)
        there: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError, asyncio.CancelledError):
                back, there = await asyncio.open_connection(target.hostname, target.port)
                fault = plan(number)
                line = _Line(network, fault, (writer, there), counted=number == 0)
                await asyncio.gather(line.carry(Way.THERE, reader, there), line.carry(Way.BACK, back, writer))
        finally:
            for each in (writer, there):
                if each is not None:
                    each.transport.abort()
            lines.discard(task)

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"ws://{host}:{port}", network
    finally:
        server.close()
        for task in list(lines):
            task.cancel()
        if lines:
            await asyncio.wait(lines)
        await server.wait_closed()


class _Line:
    """One connection, with its fault."""

    def __init__(
        self,
        network: Network,
        fault: Fault | None,
        ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        *,
        counted: bool,
    ) -> None:
        self._network = network
        self._fault = fault
        self._ends = ends
        self._counted = counted
        for end in ends:
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def carry(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes one way until there are no more."""
        fault = self._fault if self._fault is not None and self._fault.way is way else None
        passed = 0
        while data := await reader.read(65_536):
            if fault is not None and passed + len(data) >= fault.at:
                before, data = data[: fault.at - passed], data[fault.at - passed :]
                passed += len(before)
                writer.write(before)
                trouble, fault = fault.trouble, None
                if not await self._make(trouble, before, reader, writer):
                    return
            passed += len(data)
            if self._counted:
                self._network.passed[way] = passed
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def _make(
        self, trouble: Trouble, before: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Make the fault; say whether the line goes on."""
        self._network.faults += 1
        match trouble:
            case Trouble.CUT:
                await writer.drain()
                for end in self._ends:
                    end.transport.abort()
                return False
            case Trouble.HALF_CLOSE:
                writer.write_eof()
                while await reader.read(65_536):
                    pass
                return False
            case Trouble.SWALLOW:
                while await reader.read(65_536):
                    pass
                return False
            case Trouble.DUPLICATE:
                writer.write(before[-1:])
            case Trouble.DELAY:
                await writer.drain()
                await asyncio.sleep(_A_WHILE)
        return True
