"""``holdfast fetch``: an HTTP request from the host of a server, its body passed on as it comes."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from http import HTTPStatus
from typing import Protocol

from holdfast.api.host import Host
from holdfast.api.http import MOST_SENT, WebResponse

from .copy_sides import FileWriter, LocalSide
from .interrupts import cancelled_by_signals
from .report import Failure, plain, say
from .spool import SpooledOutput
from .streams import DescriptorWriter
from .target import perform, url_of

_REFUSED = 22
"""The exit code of curl for a status that ``--fail`` refuses."""

_FIRST_ERROR = 400
"""The least status that is one."""


def fetch(arguments: argparse.Namespace) -> int:
    """Make a request and pass on the response; return the exit code.

    Raises:
        Failure: There is no response, or not all of it.
    """
    body = _body(arguments.data)
    method = arguments.method or ("GET" if arguments.data is None else "POST")

    async def work(host: Host) -> int:
        try:
            with cancelled_by_signals() as received:
                return await _fetch(host, arguments, method, body)
        except asyncio.CancelledError:
            number = received[0] if received else signal.SIGINT
            raise Failure(
                f"interrupted: {arguments.target} is not fetched completely", 128 + number
            ) from None

    return perform(arguments, work, embedded=True)


async def _fetch(host: Host, arguments: argparse.Namespace, method: str, body: bytes) -> int:
    asking = host.http.request(
        method,
        arguments.target,
        headers=arguments.header,
        body=body,
        timeout=arguments.timeout,
        follow=not arguments.no_follow,
    )
    async with await asking as response:
        if arguments.fail and response.status >= _FIRST_ERROR:
            if not arguments.quiet:
                say(f"the response has the status {_status(response.status)}")
            return _REFUSED
        await _pass_on(response, arguments)
        return 0


def _body(data: str | None) -> bytes:
    """Return what to send.

    Raises:
        Failure: It cannot be read, or is too large to be sent.
    """
    if data is None:
        return b""
    if not data.startswith("@"):
        body = os.fsencode(data)
    elif not data[1:]:
        raise Failure("--data: @ needs the name of a file behind it, or - for standard input")
    else:
        source: str | int = 0 if data == "@-" else data[1:]
        try:
            with open(source, "rb", closefd=source != 0) as file:
                # One byte more tells that it is too large, however long the file goes on.
                body = file.read(MOST_SENT + 1)
        except OSError as error:
            where = "standard input" if source == 0 else data[1:]
            raise Failure(f"--data: cannot read {where}: {error.strerror}") from None
    if len(body) > MOST_SENT:
        raise Failure(f"--data: no more than {MOST_SENT} bytes can be sent in one request")
    return body


class _Sink(Protocol):
    async def write(self, data: bytes) -> None: ...

    async def complete(self) -> None:
        """All is written."""

    async def discard(self) -> None:
        """Something failed.  May be called after ``complete``, and does nothing then."""


class _Standard(_Sink):
    """Standard output."""

    def __init__(self) -> None:
        self._out = DescriptorWriter(1, asyncio.get_running_loop())

    async def write(self, data: bytes) -> None:
        await self._out.write(data)

    async def complete(self) -> None:
        self._out.close()

    async def discard(self) -> None:
        self._out.close()


class _File(_Sink):
    """A file that gets its name when it is complete."""

    def __init__(self, file: FileWriter) -> None:
        self._file: FileWriter | None = file
        self._size = 0

    async def write(self, data: bytes) -> None:
        assert self._file is not None
        await self._file.write(self._size, data)
        self._size += len(data)

    async def complete(self) -> None:
        assert self._file is not None
        await self._file.complete(self._size)
        self._file = None

    async def discard(self) -> None:
        if self._file is not None:
            await self._file.discard()


async def _pass_on(response: WebResponse, arguments: argparse.Namespace) -> None:
    sink = await _sink(arguments)
    try:
        if arguments.include:
            await sink.write(_head(response))
        async for piece in response:
            await sink.write(piece)
        await sink.complete()
    finally:
        await sink.discard()


async def _sink(arguments: argparse.Namespace) -> _Sink:
    path = arguments.output
    if path is not None and path != "-":
        return _File(await LocalSide().writer(path))
    # What comes from a server cannot be slowed down.
    return _Standard() if url_of(arguments) is None else SpooledOutput(1)


def _head(response: WebResponse) -> bytes:
    """Return status and headers as lines, with an empty one behind them."""
    lines = [f"HTTP {_status(response.status)}", *(f"{name}: {value}" for name, value in response.headers)]
    return "".join(f"{plain(line)}\n" for line in (*lines, "")).encode(errors="backslashreplace")


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
