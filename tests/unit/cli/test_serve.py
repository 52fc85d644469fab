"""``holdfast serve`` before its event loop: descriptors, limits and who guards the children."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.client import client
from tests.fakes.server import COMMAND, PATIENCE, descendants, eventually_sync, program_at

pytestmark = pytest.mark.slow


def test_closed_standard_streams_do_no_harm() -> None:
    """A daemon is often started without any; their numbers must not be given to a child's pipe."""
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" <&- 2>&-', "sh", *COMMAND, "--listen", "ws://127.0.0.1:0"], stdout=writer
    )
    os.close(writer)
    with os.fdopen(reader) as lines:
        url = lines.readline()
        server.send_signal(signal.SIGTERM)
        code = server.wait(PATIENCE)

    assert url.startswith("ws://127.0.0.1:")
    assert code == 0


async def test_the_server_raises_its_own_limit_of_files_and_children_keep_the_old_one() -> None:
    """Thousands of processes need thousands of descriptors; programs that use select() must not get them."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    command = ["/bin/sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh", *COMMAND, "--listen", "ws://127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert server.stdout is not None
    with server, server.stdout:
        url = server.stdout.readline().decode().strip()
        own = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        async with client(url) as talking:
            # The limit is set right after the start; a child that looks later sees it.
            await talking.start("p", "sh", "-c", "read go; ulimit -Sn", pipeStdin=True)
            await talking.write("p", b"\n", "w")
            tale = await talking.closed("p")
        server.send_signal(signal.SIGTERM)

    assert own == (hard, hard)
    assert tale.data() == b"256\n"


def test_a_nursery_and_a_warden_are_ready_before_the_first_command_and_end_with_the_server() -> None:
    with program_at() as (server, _):
        eventually_sync(lambda: len(descendants(server.pid)) == 2)


def test_for_programs_each_listener_is_a_line_of_json(tmp_path: Path) -> None:
    """Whoever starts a server reads where it is, and should not have to guess what a line is."""
    path = tmp_path / "socket"
    command = [
        *COMMAND,
        "-o",
        "json",
        "--hint",
        "x",
        "--listen",
        "ws://127.0.0.1:0",
        "--listen",
        f"unix://{path}",
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert server.stdout is not None
    with server, server.stdout:
        first, second = (json.loads(server.stdout.readline()) for _ in range(2))
        server.send_signal(signal.SIGTERM)
        rest = server.stdout.read()

    assert first.keys() == {"url"}
    assert first["url"].startswith("ws://127.0.0.1:")
    assert (second, rest) == ({"url": f"unix://{path}"}, b"")
