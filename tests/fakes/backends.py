"""Every backend there is, for the suite that they all have to pass."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from holdfast.client.remote import RemoteBackend
from tests.fakes.process import PATIENCE, wait_readable

from .server import COMMAND

KINDS = ("local", "ws", "unix", "stdio")
STDIO = "stdio:" + shlex.join((*COMMAND, "--listen", "stdio"))

LONG = bool(os.environ.get("HOLDFAST_LONG"))
"""Whether tests that have a long form are run in it."""

REFERENCE = os.environ.get("HOLDFAST_REFERENCE")
"""The path of the reference's program; without it nothing is run against that."""


@contextmanager
def serving(directory: Path) -> Iterator[dict[str, str]]:
    """The real server, at all its addresses: kind to URL."""
    path = directory / "control.sock"
    command = (*COMMAND, "--listen", "ws://127.0.0.1:0", "--listen", f"unix://{path}")
    with stranger(command, directory / "urls", lines=2) as urls:
        yield {url.partition(":")[0]: url for url in urls} | {"stdio": STDIO}


@contextmanager
def stranger(command: Sequence[str], output: Path, *, lines: int) -> Iterator[list[str]]:
    """A program that is not our child, because tests look at those; give the first lines it says."""
    script = f"{shlex.join(command)} >{shlex.quote(str(output))} </dev/null & echo $!"
    pid = int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout)
    fd = os.pidfd_open(pid)
    try:
        deadline = time.monotonic() + PATIENCE
        while len(said := output.read_text().splitlines()) < lines:
            assert time.monotonic() < deadline, "it does not begin"
            time.sleep(0.005)
        yield said
    finally:
        signal.pidfd_send_signal(fd, signal.SIGTERM)
        wait_readable(fd)
        os.close(fd)


@asynccontextmanager
async def remote(url: str) -> AsyncIterator[RemoteBackend]:
    """A client of the server at this address."""
    backend = RemoteBackend(url, reconnect_timeout=PATIENCE)
    await backend.open()
    try:
        yield backend
    finally:
        await backend.aclose()
