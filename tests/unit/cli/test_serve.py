"""``holdfast serve``: before its event loop, and while it runs."""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import subprocess
import weakref
from collections.abc import Iterable
from pathlib import Path

import pytest

from holdfast.cli import serve as module
from holdfast.sandbox import SandboxBackendName
from tests.fakes.client import Client, Refusal, client
from tests.fakes.frames import Wire
from tests.fakes.server import (
    COMMAND,
    PATIENCE,
    descendants,
    eventually_sync,
    program,
    program_at,
    run_to_end,
)
from tests.fakes.trees import knowing

pytestmark = pytest.mark.slow

# Before the event loop.


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


def test_a_fork_server_and_a_shim_are_ready_before_the_first_command_and_end_with_the_server() -> None:
    with program_at("--durability", "off") as (server, _):
        eventually_sync(lambda: len(descendants(server.pid)) == 2)


def test_a_keeper_has_a_spare_a_server_and_a_shim_before_the_first_command() -> None:
    """People and supervisors find them by their names."""

    def names(pids: Iterable[int]) -> list[str]:
        return sorted(Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids)

    with program_at("--durability", "on") as (keeper, _):
        eventually_sync(lambda: len(descendants(keeper.pid)) == 3)

        assert names([keeper.pid]) == ["holdfast-keeper"]
        assert names(each.pid for each in descendants(keeper.pid)) == [
            "holdfast-server",
            "holdfast-shim",
            "holdfast-spare",
        ]


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


# While it runs.


def test_the_bound_url_is_a_line_of_its_own_on_standard_output() -> None:
    """Whoever starts the server with port 0 reads the port from there."""
    with program() as default, program("--listen", "ws://[::1]:0") as other:
        first, second = default.read_url(), other.read_url()

    assert first.startswith("ws://127.0.0.1:")
    assert second.startswith("ws://[::1]:")
    assert int(first.rpartition(":")[2]) > 0


async def test_several_listeners_serve_the_same_sessions(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A client may lose one way in and come back by another."""
    path = tmp_path_factory.mktemp("sockets") / "s"
    with program("--listen", "ws://127.0.0.1:0", "--listen", f"unix://{path}") as server:
        tcp, unix = server.read_url(), server.read_url()
        async with client(tcp) as first:
            await first.start("p", "sleep", "1000")
        async with client(unix, resume=first.session) as second:
            running = await second.terminate("p")

    assert running


def test_a_port_in_use_is_refused_in_one_line() -> None:
    """The system's own word for it, and which listener it was."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}"

        refused = run_to_end("--listen", url)

    assert (refused.returncode, refused.stdout) == (1, b"")
    assert refused.stderr.decode() == f"Error: cannot listen on {url}: Address already in use\n"


def test_a_listener_that_fails_takes_the_others_with_it() -> None:
    """Half a server is worse than none: the operator must see the failure."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = run_to_end(
            "--listen", "ws://127.0.0.1:0", "--listen", f"ws://127.0.0.1:{taken.getsockname()[1]}"
        )

    assert refused.returncode == 1
    assert b"Address already in use" in refused.stderr
    assert b"Traceback" not in refused.stderr


def test_standard_input_can_be_served_only_once() -> None:
    """Two clients cannot share one stream."""
    refused = run_to_end("--listen", "stdio", "--listen", "stdio://")

    assert refused.returncode == 1
    assert refused.stderr == b"Error: standard input and output can be served only once\n"


@pytest.mark.parametrize("options", [(), ("--endpoint", "exec"), ("--concurrent-requests", "8")])
async def test_the_options_for_compatibility_are_accepted(options: tuple[str, ...]) -> None:
    """Command lines written for the reference work unchanged."""
    with program_at(*options) as (_, url):
        async with client(url) as talking:
            assert await talking.call("environment/status") == {"status": "ready"}


APP = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {"experimentalApi": True}}


async def test_the_app_endpoint_speaks_the_app_dialects() -> None:
    """And nothing else: a client of the exec dialect is told so in its words."""
    with program_at("--endpoint", "app") as (_, url):
        talking = await Client.connect(url)
        with pytest.raises(Refusal, match="missing field `clientInfo`"):
            await talking.call("initialize", {"clientName": "test"})
        hello = await talking.call("initialize", APP)
        result = await talking.call("command/exec", {"command": ["echo", "hello"]})
        await talking.close()

    assert hello["userAgent"].startswith("holdfast/")
    assert result == {"exitCode": 0, "stdout": "hello\n", "stderr": ""}


UPGRADE = (
    b"GET /any/path HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize(
    ("endpoint", "path", "health"),
    [("app", b"101", b"200"), ("auto", b"404", b"200"), ("exec", b"404", b"404")],
)
async def test_an_endpoint_is_found_where_its_clients_look_for_it(
    endpoint: str, path: bytes, health: bytes
) -> None:
    """Those of the app dialects take any path, and look after its health."""
    heads = []
    with program_at("--endpoint", endpoint) as (_, url):
        for asked in (UPGRADE, b"GET /healthz HTTP/1.1\r\n\r\n"):
            wire = await Wire.dial(url)
            wire.writer.write(asked)
            heads.append(await wire.reader.readuntil(b"\r\n\r\n"))
            wire.writer.close()
            await wire.writer.wait_closed()

    assert [head.split()[1] for head in heads] == [path, health]


async def test_by_default_the_first_message_decides_which_endpoint_is_meant() -> None:
    with program_at() as (_, url):
        app = await Client.connect(url)
        await app.call("initialize", APP)
        result = await app.call("command/exec", {"command": ["echo", "hello"]})
        async with client(url) as other:
            status = await other.call("environment/status")
        await app.close()

    assert (result["stdout"], status) == ("hello\n", {"status": "ready"})


async def test_the_exec_endpoint_knows_nothing_of_the_app_dialects() -> None:
    with program_at("--endpoint", "exec") as (_, url):
        talking = await Client.connect(url)
        with pytest.raises(Refusal, match="missing field `clientName`"):
            await talking.call("initialize", APP)
        await talking.close()


@pytest.mark.parametrize(
    ("choice", "tried"),
    [
        ("auto", set(SandboxBackendName)),
        ("bubblewrap", {SandboxBackendName.BUBBLEWRAP}),
        ("landlock", {SandboxBackendName.LANDLOCK}),
        ("off", set()),
    ],
)
def test_only_the_sandboxes_that_the_command_line_allows_are_tried(
    choice: str, tried: set[SandboxBackendName]
) -> None:
    """Off is off, even where one would work: whoever asks for a sandbox is then refused."""
    confiner = module.make_confiner(choice, 10.0)

    assert set(confiner.findings) == tried
    assert confiner.guarantees.backend in {*tried, None}
    confiner.close()


async def test_a_bubblewrap_that_hangs_holds_up_no_client(tmp_path: Path) -> None:
    """Its trial is given up before anybody can connect, and clients are told so."""
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\nexec sleep 1000\n")
    bwrap.chmod(0o755)
    path = os.fsencode(f"{tmp_path}:{os.environ['PATH']}")

    with program_at("--limit=sandbox.trial_seconds=300ms", env={b"PATH": path}) as (_, url):
        async with knowing(url) as talking:
            info = await talking.call("environment/info")

    found = info["capabilities"]["holdfast"]["sandbox"]
    assert found["backend"] != "bubblewrap"
    assert f"bubblewrap: {bwrap} hangs: it did not end within 0.3 s" in found["reason"]


def test_the_hint_follows_each_url() -> None:
    """Whoever wraps the program can tell its users what to try."""
    with program("--listen", "ws://127.0.0.1:0", "--hint", "try {url} now") as server:
        url, hint = server.read_url(), server.read_url()

    assert hint == f"try {url} now"


class Linked:
    """Refers to itself, as a connection does by way of what belongs to it."""

    def __init__(self) -> None:
        self.link = self


def test_a_client_that_is_there_before_the_server_settles_can_be_forgotten() -> None:
    """What is frozen while it lives is never freed, nor is what it leads to."""
    before = gc.get_threshold()
    early = weakref.ref(linked := Linked())
    try:
        module._settle()
        del linked
        gc.collect()

        assert early() is None
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
