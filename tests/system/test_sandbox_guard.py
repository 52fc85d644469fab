"""The guard of protected names: nothing gets past it, and a guarded command notices nothing else of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.backends import LONG
from tests.fakes.sandboxes import (
    PROTECTED,
    READ_ALL,
    ConfiningServer,
    Scene,
    Told,
    confining_server,
    entry,
    policy,
    run,
    scene,
    sh,
    talk,
    uri,
    workspace,
)
from tests.fakes.trees import USERS, Host, host_of

pytestmark = pytest.mark.slow

FILE_CALLS = Path(__file__).parents[1] / "fakes" / "file_calls.py"
SEEDS = range(300 if LONG else 6)
CALLS = 600


@pytest.fixture(scope="module", params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Where protected names are kept by the guard and not by the kernel."""
    with host_of(request.param, "--sandbox", "landlock") as host:
        yield host


@pytest.fixture
async def confining(server: Host) -> ConfiningServer:
    found = await confining_server("landlock", server)
    if found.info["protectsSubpaths"] != "soft":
        pytest.skip("there is no guard here")
    return found


@pytest.fixture(scope="module", params=USERS)
def mounting(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Where only links are kept by the guard."""
    with host_of(request.param, "--sandbox", "bubblewrap") as host:
        yield host


@pytest.fixture
async def mounted(mounting: Host) -> ConfiningServer:
    return await confining_server("bubblewrap", mounting)


async def done(confining: ConfiningServer, here: Scene, script: str, **options: Any) -> Told:
    async with talk(confining.url) as talking:
        return await sh(talking, workspace(here.work), script, cwd=uri(here.work), **options)


async def ran(confining: ConfiningServer, here: Scene, source: str, *, network: bool = False) -> Told:
    """Run Python in the workspace."""
    async with talk(confining.url) as talking:
        sandbox = workspace(here.work, network=network)
        return await run(talking, sandbox, *confining.python("-c", source), cwd=uri(here.work))


# Ways past it.

PAST = {
    "through the network's view of a process": """if True:
        import os
        open("/proc/net/../../.." + os.getcwd() + "/.git/config", "a").write("taken")""",
    "through the directory of another thread": """if True:
        import ctypes, os, threading
        work = os.getcwd()
        os.chdir(".git")
        def other():
            assert ctypes.CDLL(None).unshare(0x200) == 0  # A directory of its own.
            os.chdir(work)
            open("/proc/self/cwd/config", "a").write("taken")
        thread = threading.Thread(target=other); thread.start(); thread.join()""",
    "below a directory that nobody may search": """if True:
        import os
        inner = os.open(".git", os.O_RDONLY)
        os.chmod(".", 0)
        try:
            os.write(os.open("config", os.O_WRONLY | os.O_APPEND, dir_fd=inner), b"taken")
        finally:
            os.chmod(f"/proc/self/fd/{inner}/..", 0o755)""",
    "by a socket": """if True:
        import socket
        socket.socket(socket.AF_UNIX).bind(".codex")""",
    "by a socket inside": """if True:
        import socket
        socket.socket(socket.AF_UNIX).bind(".git/socket")""",
    "from a directory that is gone": """if True:
        import os
        os.mkdir("gone"); gone = os.open("gone", os.O_PATH); os.rmdir("gone")
        open(f"/proc/self/fd/{gone}/../.git/config", "a").write("taken")""",
    "from a directory that is gone, by its descriptor": """if True:
        import os
        os.mkdir("gone"); gone = os.open("gone", os.O_PATH); os.rmdir("gone")
        os.write(os.open("../.git/config", os.O_WRONLY, dir_fd=gone), b"taken")""",
    "by way of the one who guards": """if True:
        import os
        for pid in (os.getppid(), 1):
            try: open(f"/proc/{pid}/root{os.getcwd()}/.git/config", "a").write("taken")
            except OSError: pass""",
}


@pytest.mark.parametrize("way", PAST)
async def test_nothing_leads_past_the_guard(confining: ConfiningServer, way: str) -> None:
    """None of these needs a race: each of them worked once."""
    with scene(confining.uid) as here:
        before = here.protected_facts()

        await ran(confining, here, PAST[way], network="socket" in way)

        assert here.protected_facts() == before
        assert not here.has_masks()


RACE = """if True:
    import ctypes, os, threading
    here = os.getcwd()
    path = ctypes.create_string_buffer(4096)
    libc = ctypes.CDLL(None, use_errno=True)
    good, bad = f"{here}/file".encode() + b"\\0", f"{here}/.git/config".encode() + b"\\0"
    over = False
    def swap():
        while not over:
            ctypes.memmove(path, bad, len(bad)); ctypes.memmove(path, good, len(good))
    thread = threading.Thread(target=swap); thread.start()
    for _ in range(4000):
        fd = libc.open(path, os.O_WRONLY)
        if fd >= 0:
            os.write(fd, b"taken"); os.close(fd)
    over = True; thread.join()"""


async def test_no_race_leads_past_it(confining: ConfiningServer) -> None:
    """What is opened is what was judged, whatever the caller writes into its memory meanwhile."""
    with scene(confining.uid) as here:
        before = here.protected_facts()

        await ran(confining, here, RACE)

        assert here.protected_facts() == before
        assert (here.work / "file").read_text().startswith("taken")


# What a guarded command does not notice.


def world(here: Scene, name: str, *, linked: bool) -> Path:
    """A directory with protected names in it; one of them may be a link."""
    made = here.work / name
    for protected in PROTECTED:
        (made / protected).mkdir(parents=True)
    if linked:
        (made / ".git").rename(made / ".real")
        (made / ".git").symlink_to(".real")
    here.give()
    return made


POWERLESS = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.getuid() == 0 else []
"""Before a command: root without what only root may, which a sandboxed command has not, either."""


async def calls(
    confining: ConfiningServer, top: Path, seed: int, *without: str, sandboxed: bool
) -> list[Any]:
    """What came of the calls, of which some may be left out."""
    program = confining.python(str(FILE_CALLS), str(seed), str(CALLS), *without)
    sandbox = policy(READ_ALL, entry(top, "write")) if sandboxed else None
    async with talk(confining.url) as talking:
        before = [] if sandboxed or confining.uid else POWERLESS
        told = await run(talking, sandbox, *before, *program, cwd=uri(top), within=60)
    assert told.errors == b""
    return [json.loads(line) for line in told.output.splitlines()]


@pytest.mark.parametrize("seed", SEEDS)
async def test_calls_come_out_as_the_kernel_would_have_them(confining: ConfiningServer, seed: int) -> None:
    """The same calls, made by the guard and by the kernel: same answers, same files."""
    with scene(confining.uid) as here:
        by_the_guard = await calls(confining, world(here, "one", linked=False), seed, sandboxed=True)
        by_the_kernel = await calls(confining, world(here, "two", linked=False), seed, sandboxed=False)

    assert len(by_the_kernel) == CALLS + 1
    assert by_the_guard == by_the_kernel


@pytest.mark.parametrize("seed", SEEDS)
async def test_so_they_do_where_a_link_is_guarded(mounted: ConfiningServer, seed: int) -> None:
    """Under bubblewrap the guard acts on the mounts of the sandbox, from outside.

    Without openat2, which no command under bubblewrap has.
    """
    with scene(mounted.uid) as here:
        by_the_guard = await calls(mounted, world(here, "one", linked=True), seed, "openat2", sandboxed=True)
        by_the_kernel = await calls(
            mounted, world(here, "two", linked=False), seed, "openat2", sandboxed=False
        )

    assert len(by_the_kernel) == CALLS + 1
    assert by_the_guard == by_the_kernel


NOTICED = {
    "pipes wait for each other": "mkfifo p; (echo through >p) & cat p; wait",
    "pipes both ways": "mkfifo p; exec 3<>p; echo x >&3; head -n1 p",
    "descriptors by name": "echo one >/dev/stdout; echo two >/dev/stderr; echo three 3>&1 >/dev/fd/3",
    "appending": "echo 1 >>a; echo 2 >>a; (echo 3; echo 4) >>a; cat a",
    "umask": "umask 077; touch private; mkdir secret; umask 0; touch open; stat -c '%a %n' private open",
    "links": "echo x >t; ln -s t l; echo y >l; cat t; ln t h; stat -c %h t",
    "links that lead nowhere": "ln -s new dangling; echo z >dangling; cat new",
    "moves": "mkdir -p m/n; touch m/n/x; mv m k; ls k/n; mv k/n/x k/; rm -r k; ls",
    "devices": "echo x >/dev/null; head -c 3 /dev/zero | wc -c; echo x >/dev/full 2>/dev/null || echo full",
    "no noise": "set -C; echo a >f; echo b >f; cat f",
}


@pytest.mark.parametrize("what", NOTICED)
async def test_shells_work_as_they_do_elsewhere(confining: ConfiningServer, what: str) -> None:
    with scene(confining.uid) as here, scene(confining.uid) as there:
        told = await done(confining, here, NOTICED[what])
        async with talk(confining.url) as talking:
            model = await sh(talking, None, NOTICED[what], cwd=uri(there.work))

    assert (told.code, told.output) == (model.code, model.output)
    assert told.denials == []


async def test_sockets_work_as_they_do_elsewhere(confining: ConfiningServer) -> None:
    """Their names are told to others as they were given."""
    source = """if True:
        import os, socket
        for address in ("s", os.getcwd() + "/t", "\\0abstract-%d" % os.getpid()):
            with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
                one.bind(address); one.listen(); two.connect(address)
                told = one.getsockname()
                assert told == (address.encode() if address[0] == "\\0" else address), told
        try: socket.socket(socket.AF_UNIX).bind("s")
        except OSError as error: print(error.errno)
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0)); print(one.getsockname()[1] > 0)"""
    with scene(confining.uid) as here:
        told = await ran(confining, here, source, network=True)

    assert (told.code, told.output, told.denials) == (0, b"98\nTrue\n", [])


async def test_a_terminal_is_the_commands_own(confining: ConfiningServer) -> None:
    """``/dev/tty`` is another for everybody who opens it."""
    with scene(confining.uid) as here:
        told = await done(confining, here, "exec >/dev/null 2>&1; echo typed >/dev/tty", tty=True)
        without = await done(confining, here, "echo typed >/dev/tty")

    assert (told.code, told.output) == (0, b"typed\r\n")
    assert without.code != 0
    assert b"No such device" in without.errors


async def test_a_pipe_that_nobody_reads_holds_up_nothing_else(confining: ConfiningServer) -> None:
    """One process waits in its open; the others of the command go on."""
    script = "mkfifo p; (echo late >p) & touch made; mkdir d; cat p; wait; ls"
    with scene(confining.uid) as here:
        told = await done(confining, here, script)

    assert told.output.split() == b"late d file made out out-file p sub".split()


async def test_a_command_that_is_killed_while_it_waits_for_a_pipe_is_gone(confining: ConfiningServer) -> None:
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            await talking.start(
                "p",
                "sh",
                "-c",
                "mkfifo p; echo ready; echo x >p",
                cwd=uri(here.work),
                sandbox=workspace(here.work),
            )
            await talking.until(lambda: talking.tale("p").data() == b"ready\n")
            answer = await talking.call("process/terminate", {"processId": "p"})

    assert answer["running"] is True
    assert answer.get("survivors", []) == []


async def test_what_may_only_be_read_is_opened_to_read(confining: ConfiningServer) -> None:
    """A flag that would make a file changes nothing where there is one, and opens nothing that is hidden."""
    source = """if True:
        import os
        for path in ("../outside/victim", ".git/config"):
            print(os.read(os.open(path, os.O_RDONLY | os.O_CREAT), 5))
        new = [(".git/new", os.O_CREAT), ("../outside/new", os.O_CREAT)]
        for path, flags in [*new, (".git/config", os.O_TRUNC)]:
            try: os.open(path, os.O_RDONLY | flags); print("opened", path)
            except OSError as error: print(error.errno)"""
    with scene(confining.uid) as here:
        told = await ran(confining, here, source)

        assert told.output.split() == b"b'whole' b'[core' 30 13 30".split()

        hidden = policy(
            entry("/usr", "read"), entry("/lib", "read"), entry("/lib64", "read"), entry(here.work, "write")
        )
        reading = f"import os; os.open({str(here.victim)!r}, os.O_RDONLY | os.O_CREAT)"
        async with talk(confining.url) as talking:
            blind = await run(
                talking, hidden, "/usr/bin/python3", "-I", "-S", "-c", reading, cwd=uri(here.work)
            )
        assert blind.code != 0
        assert b"PermissionError" in blind.errors
