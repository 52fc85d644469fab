"""The program on a Unix socket: who may reach it, and what happens to the file."""

from __future__ import annotations

import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.client import client
from tests.fakes.frames import Wire
from tests.fakes.server import Program, program, run_to_end


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


@pytest.fixture
def served(path: Path) -> Iterator[Program]:
    """A server that listens on ``path``."""
    with program("--listen", f"unix://{path}") as started:
        assert started.read_url() == f"unix://{path}"
        yield started


@pytest.mark.slow
async def test_the_whole_protocol_works_on_it(served: Program, path: Path) -> None:
    """Only the address is different."""
    async with client(f"unix://{path}") as talking:
        await talking.start("p", "echo", "hi")
        tale = await talking.closed("p")

    assert tale.data() == b"hi\n"


@pytest.mark.slow
def test_only_the_owner_may_connect(served: Program, path: Path) -> None:
    """Whoever can connect can run programs as this user."""
    found = path.stat()

    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600


@pytest.mark.slow
async def test_an_origin_is_not_refused_there(served: Program, path: Path) -> None:
    """Web pages cannot reach a Unix socket, so the header says nothing."""
    wire = await Wire.open(f"unix://{path}", headers=["Origin: http://example.test"])

    await wire.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_socket_is_removed_on_exit(served: Program, path: Path, number: signal.Signals) -> None:
    """A file that nobody answers on misleads."""
    served.send_signal(number)

    assert served.wait() == 0
    assert not path.exists()


@pytest.mark.slow
async def test_a_stale_socket_is_replaced(path: Path) -> None:
    """A server that was killed leaves its file; the next one must not need help."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert path.exists()

    with program("--listen", f"unix://{path}") as started:
        started.read_url()
        async with client(f"unix://{path}") as talking:
            assert await talking.call("environment/status") == {"status": "ready"}


@pytest.mark.slow
async def test_a_live_socket_is_refused_and_its_server_goes_on(served: Program, path: Path) -> None:
    """Two servers on one path would each get some of the clients."""
    second = run_to_end("--listen", f"unix://{path}")

    assert (second.returncode, second.stdout) == (1, b"")
    assert second.stderr.decode() == f"Error: control socket is already in use at {path}\n"
    async with client(f"unix://{path}") as talking:
        assert await talking.call("environment/status") == {"status": "ready"}


@pytest.mark.slow
def test_a_file_that_is_no_socket_is_refused_and_kept(path: Path) -> None:
    """A slip of the keyboard must not delete somebody's file."""
    path.write_text("precious")

    refused = run_to_end("--listen", f"unix://{path}")

    assert refused.returncode == 1
    assert refused.stderr.startswith(b"Error: ")
    assert str(path) in refused.stderr.decode()
    assert path.read_text() == "precious"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["missing/s", "x" * 200])
def test_a_path_that_cannot_be_bound_is_refused(tmp_path: Path, name: str) -> None:
    """The words name the listener and the system's reason."""
    refused = run_to_end("--listen", f"unix://{tmp_path}/{name}")

    assert (refused.returncode, refused.stdout) == (1, b"")
    assert refused.stderr.decode().startswith(f"Error: cannot listen on unix://{tmp_path}/{name}: ")
    assert b"Traceback" not in refused.stderr
