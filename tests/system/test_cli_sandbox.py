"""``holdfast run --sandbox`` and ``exec --sandbox`` as people meet them: near and far, root and others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.fakes.sandboxes import EVERY_SETUP, ConfiningServer, Scene, confining_server, scene
from tests.fakes.server import PATIENCE
from tests.fakes.terminal import SILENT, holdfast
from tests.fakes.trees import USERS, Host, host_of, user

pytestmark = pytest.mark.slow

Done = subprocess.CompletedProcess[bytes]


@pytest.fixture(scope="module", params=EVERY_SETUP, ids="-".join)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Host]]:
    """A server of each kind and with each user's rights."""
    backend, name = request.param
    with host_of(name, "--sandbox", backend) as host:
        yield backend, host


@pytest.fixture
async def confining(server: tuple[str, Host]) -> ConfiningServer:
    return await confining_server(*server)


def far(confining: ConfiningServer, here: Scene, *arguments: str) -> Done:
    return holdfast("exec", "-H", confining.url, "-w", str(here.work), *arguments)


def near(name: str, here: Scene, *arguments: str) -> Done:
    """What a user gets who has no server."""
    command = ("-m", "holdfast", "run", "-w", str(here.work), *arguments)
    process = user(name).popen(*command, env=SILENT)
    out, err = process.communicate(timeout=PATIENCE)
    return Done(command, process.returncode, out, err)


async def test_a_workspace_far_away_can_be_written_and_nothing_else(confining: ConfiningServer) -> None:
    def run(*arguments: str) -> Done:
        return far(confining, here, "--sandbox", "--no-tmp", *arguments)

    with scene(confining.uid) as here:
        await asyncio.to_thread(_check_workspace, run, here, exact=confining.info["denial"] == "exact")


@pytest.mark.parametrize("name", USERS)
def test_a_workspace_here_can_be_written_and_nothing_else(name: str) -> None:
    with scene(_uid(name)) as here:

        def run(*arguments: str) -> Done:
            return near(name, here, "--sandbox", "--no-tmp", *arguments)

        _skip_without_sandbox(run("--", "true"))
        _check_workspace(run, here, exact=b'"exactDenials":true' in _doctor())


def _uid(name: str) -> int:
    return os.getuid() if (uid := user(name).uid) is None else uid


def _doctor() -> bytes:
    return holdfast("doctor", "-o", "json").stdout


def _skip_without_sandbox(done: Done) -> None:
    if b"cannot be kept on this host" in done.stderr:
        pytest.skip(done.stderr.decode())
    assert (done.returncode, done.stderr) == (0, b"")


def _check_workspace(run: Callable[..., Done], here: Scene, *, exact: bool) -> None:
    """Write inside, outside, and at what is protected; read; use the network."""
    before, kept = here.outside_facts(), here.protected_facts()

    inside = run("--", "sh", "-c", "echo new >made && cat made /etc/passwd")
    outside = run("--", "sh", "-c", "echo x >../outside/victim; exit 3")
    protected = run("--", "sh", "-c", "echo x >.git/config; mkdir .agents; exit 4")
    network = run("--", "python3", "-c", "import socket; socket.socket()")

    assert (inside.returncode, inside.stderr, inside.stdout[:4]) == (0, b"", b"new\n")
    assert (here.work / "made").read_text() == "new\n"
    assert (outside.returncode, protected.returncode, network.returncode) == (3, 4, 1)
    assert here.outside_facts() == before
    assert {key: fact for key, fact in here.protected_facts().items() if key != "."} == {
        key: fact for key, fact in kept.items() if key != "."
    }
    if exact:
        told = b"holdfast: the sandbox refused it: "
        assert told + b"write %b\n" % str(here.victim).encode() in outside.stderr
        paths = [str(here.work / name).encode() for name in (".git/config", ".agents")]
        assert told + b"write %b, mkdir %b\n" % tuple(paths) in protected.stderr
        assert told + b"network socket AF_INET\n" in network.stderr


async def test_more_can_be_allowed_and_less(confining: ConfiningServer) -> None:
    with scene(confining.uid) as here:
        outside = str(here.outside)

        def script(text: str, *options: str) -> Done:
            return far(confining, here, *options, "--", "sh", "-c", text)

        write = "echo x >../outside/new"
        allowed = await asyncio.to_thread(script, write, "--sandbox", "--no-tmp", "--writable", outside)
        (here.outside / "new").unlink()
        relative = await asyncio.to_thread(script, write, "--sandbox", "--no-tmp", "--writable", "../outside")
        nothing = await asyncio.to_thread(script, "echo x >new", "--sandbox", "read-only")
        network = "python3 -c 'import socket; socket.socket()'"
        with_network = await asyncio.to_thread(script, network, "--sandbox", "read-only", "--network")
        cut_off = await asyncio.to_thread(script, network, "--sandbox", "danger-full-access", "--no-network")
        hidden = await asyncio.to_thread(script, "cat file", "--sandbox", "--deny", "f*")

        assert (allowed.returncode, relative.returncode) == (0, 0)
        assert (here.outside / "new").exists()
        assert nothing.returncode != 0
        assert not (here.work / "new").exists()
        assert (with_network.returncode, cut_off.returncode) == (0, 1)
        if confining.backend == "bubblewrap":
            assert (hidden.returncode, hidden.stdout) == (1, b"")
        else:
            assert hidden.returncode == 125
            assert b"Landlock cannot deny" in hidden.stderr
            assert b"sandboxes are kept by landlock here" in hidden.stderr
            assert b"'holdfast doctor' on the host of the server says what is kept there" in hidden.stderr


@pytest.mark.parametrize("name", USERS)
def test_a_writable_directory_that_is_not_there_is_refused(name: str) -> None:
    """A typing error would else show as a program that cannot write, far from its cause."""
    with host_of(name) as host, scene(_uid(name)) as here:
        argv = ("--sandbox", "--writable", "../none", "--", "sh", "-c", "echo x >made")

        near_by = near(name, here, *argv)
        far_away = holdfast("exec", "-H", host.url, "-w", str(here.work), *argv)

        words = b"holdfast: --writable ../none: No such file or directory; it has to exist before the start\n"
        assert (near_by.returncode, near_by.stderr) == (125, words)
        assert (far_away.returncode, far_away.stderr) == (125, words)
        assert not (here.work / "made").exists()


async def test_the_end_as_json_has_every_refusal(confining: ConfiningServer) -> None:
    if confining.info["denial"] != "exact":
        pytest.skip("there is no witness here")
    with scene(confining.uid) as here:
        script = "mkdir a; mkdir b; mkdir c; mkdir d; mkdir d; exit 1"
        argv = ("--sandbox", "read-only", "-o", "json", "--", "sh", "-c", script)

        done = await asyncio.to_thread(far, confining, here, *argv)

        end = json.loads(done.stdout.splitlines()[-1])
        assert end["denials"] == [
            {"op": "mkdir", "path": str(here.work / name), "count": count}
            for name, count in {"a": 1, "b": 1, "c": 1, "d": 2}.items()
        ]


def test_a_server_without_sandboxes_says_so_and_runs_nothing() -> None:
    with host_of("self", "--sandbox", "off") as host, scene(_uid("self")) as here:
        argv = ("--sandbox", "--", "sh", "-c", "echo x >made")
        done = holdfast("exec", "-H", host.url, "-w", str(here.work), *argv)

        assert done.returncode == 125
        assert b"cannot be kept on this host: sandboxes are switched off" in done.stderr
        assert not (here.work / "made").exists()
