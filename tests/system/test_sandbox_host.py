"""What a sandboxed command does to the host without writing a file: pipes, groups, the server, locks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.fakes.client import Refusal
from tests.fakes.sandboxes import (
    BACKENDS,
    READ_ALL,
    ConfiningServer,
    confining_server,
    entry,
    json_of,
    policy,
    run,
    scene,
    sh,
    talk,
    uri,
    workspace,
)
from tests.fakes.server import eventually, serving
from tests.fakes.trees import NOBODY, USERS, Host, host_of

pytestmark = pytest.mark.slow

READ_ONLY = policy(READ_ALL)


@pytest.fixture(scope="module", params=list(product(BACKENDS, USERS)), ids="-".join)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Host]]:
    backend, name = request.param
    with host_of(name, "--sandbox", backend) as host:
        yield backend, host


@pytest.fixture
async def confining(server: tuple[str, Host]) -> ConfiningServer:
    return await confining_server(*server)


# Named pipes.


@contextlib.contextmanager
def pipe(confining: ConfiningServer) -> Iterator[tuple[Path, int]]:
    """A pipe that anybody may write to, and its other end."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # noqa: S103  (the sandbox is to keep it, not its permissions)
        path = Path(place) / "control"
        os.mkfifo(path)
        path.chmod(0o666)
        os.chown(path, confining.uid, confining.uid)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield path, reader
        finally:
            os.close(reader)


async def test_a_command_that_may_write_nothing_writes_to_no_pipe_of_the_host(
    confining: ConfiningServer,
) -> None:
    """Whoever listens there does what it is told.  A mount that is read-only lets it pass."""
    with pipe(confining) as (path, reader):
        async with talk(confining.url) as talking:
            told = await sh(talking, READ_ONLY, f"echo taken >{path}")
            appended = await sh(talking, READ_ONLY, f"echo taken 1<>{path}", name="q")

        assert os.read(reader, 100) == b""
    assert (told.code, appended.code) == (2, 2)
    assert told.ops == {("open", str(path))}


async def test_a_pipe_in_a_protected_name_is_kept_or_the_server_says_so(confining: ConfiningServer) -> None:
    """Mounts let it pass, and Landlock inside of them only ever allows more further down."""
    with scene(confining.uid) as here:
        path = here.work / ".git" / "control"
        os.mkfifo(path)
        here.give()
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            async with talk(confining.url) as talking:
                await sh(talking, workspace(here.work), f"echo taken >{path}")
            heard = os.read(reader, 100)
        finally:
            os.close(reader)

    assert confining.admits("below writable ones") is (confining.backend == "bubblewrap")
    assert heard == (b"taken\n" if confining.backend == "bubblewrap" else b"")


async def test_pipes_in_a_writable_place_work(confining: ConfiningServer) -> None:
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            told = await sh(
                talking, workspace(here.work), "mkfifo p; (echo x >p) & cat p; wait", cwd=uri(here.work)
            )

    assert (told.code, told.output, told.denials) == (0, b"x\n", [])


# Namespaces, and with them the host's control groups.

NAMESPACES = """if True:
    import ctypes, errno, json, os, signal
    libc = ctypes.CDLL(None, use_errno=True)
    KINDS = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
             "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
    USER, told = KINDS["user"], {}
    for name, flag in KINDS.items():
        for way, flags in ((name, flag), (f"user and {name}", flag | USER)):
            pid = os.fork()
            if pid == 0:
                os._exit(errno.EPERM if libc.unshare(flags) and ctypes.get_errno() == errno.EPERM else 0)
            told[f"unshare {way}"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if name != "time":
            pid = libc.syscall(56, flag | USER | signal.SIGCHLD, 0, 0, 0, 0)
            if pid == 0:
                os._exit(0)
            told[f"clone {name}"] = ctypes.get_errno() if pid < 0 else 0
            if pid > 0:
                os.waitpid(pid, 0)
    for kind in (b"cgroup2", b"cgroup", b"tmpfs", b"proc", b"sysfs"):
        failed = libc.mount(b"none", b"/mnt", kind, 0, None)
        told[f"mount {kind.decode()}"] = ctypes.get_errno() if failed else 0
    print(json.dumps({what: number for what, number in told.items() if number != errno.EPERM}))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of clone is that of another machine")
async def test_there_are_no_further_namespaces_inside(confining: ConfiningServer) -> None:
    """A command that is root in one of its own mounts the control groups of the host.

    From there it can lift its own limits, and kill the server.
    """
    async with talk(confining.url) as talking:
        told = await run(talking, READ_ONLY, *confining.python("-c", NAMESPACES))

    assert json_of(told) == {}


GROUPS = """if True:
    import json, os
    paths = set()
    for line in open("/proc/self/cgroup"):
        kinds, place = line.rstrip().split(":", 2)[1:]
        for top in (f"/sys/fs/cgroup/{kinds}", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
            names = ("memory.limit_in_bytes", "memory.max", "cgroup.freeze", "cgroup.kill", "cgroup.procs")
            paths |= {top + place + "/" + name for name in names} | {top + "/cgroup.procs"}
    def opens(path):
        try: os.close(os.open(path, os.O_WRONLY))
        except OSError: return False
        return True
    print(json.dumps(sorted(filter(opens, paths))))
"""


async def test_control_groups_are_out_of_reach(confining: ConfiningServer) -> None:
    """They are files: who could write them would lift its own limits, leave its group, or end another."""
    async with talk(confining.url) as talking:
        argv = confining.python("-c", GROUPS)
        told = await run(talking, READ_ONLY, *argv, limits={"memoryBytes": 256 << 20})
        control = await run(talking, None, *argv, name="control")

    assert json_of(told) == []
    if json_of(control) == []:
        pytest.skip("nobody here can write to control groups")


# The server itself.


async def test_the_server_is_out_of_reach(confining: ConfiningServer) -> None:
    """Its variables and its memory, to a command and to who asks for files in the same sandbox."""
    places = [
        f"/proc/{who}/{what}" for who in ("self", confining.host.program.pid) for what in ("environ", "mem")
    ]
    outside = f"/proc/{serving(confining.host.program.pid)}/environ"
    async with talk(confining.url) as talking:
        told = await sh(talking, READ_ONLY, f"cat {outside} /proc/{serving(confining.host.program.pid)}/maps")
        for place in places:
            with pytest.raises(Refusal) as refusal:
                await talking.call("fs/readFile", {"path": uri(place), "sandbox": READ_ONLY})
            assert refusal.value.code == -32004
        plain = await talking.call("fs/readFile", {"path": uri("/proc/self/environ")})

    assert told.output == b""
    assert told.code != 0
    assert plain["dataBase64"]


# What is denied, and not there.


async def test_a_denied_name_below_a_missing_directory_stays_missing(confining: ConfiningServer) -> None:
    """It cannot be mounted over, and must not be made by another way; nothing of it is left behind."""
    with scene(confining.uid, git=False) as here:
        there = sorted(path.name for path in here.work.iterdir())
        sandbox = policy(READ_ALL, entry(here.work, "write"), entry(here.work / "a/b/secret", "deny"))
        script = (
            "mkdir -p a/b; echo x >a/b/secret; mv a c; mkdir -p a/b; echo y >a/b/secret;"
            " mkdir d; mv -T d a; ln -sT sub a; touch made; cat a/b/secret c/b/secret"
        )
        async with talk(confining.url) as talking:
            told = await sh(talking, sandbox, script, cwd=uri(here.work))
        await eventually(lambda: not os.path.lexists(here.work / "a"))

        assert told.output == b""
        assert sorted(path.name for path in here.work.iterdir()) == sorted([*there, "d", "made"])


async def test_threads_and_processes_are_made_as_ever(confining: ConfiningServer) -> None:
    """The newest call for it is said not to exist, and everybody takes the one before."""
    source = (
        "import subprocess, threading; t = threading.Thread(target=print, args=('thread',));"
        " t.start(); t.join(); subprocess.run(['echo', 'process'], check=True)"
    )
    async with talk(confining.url) as talking:
        told = await run(talking, READ_ONLY, *confining.python("-u", "-c", source))

    assert (told.code, told.output, told.denials) == (0, b"thread\nprocess\n", [])


# Locks on what the sandbox has put into the workspace.

LOCK = """if True:
    import fcntl, os, sys
    path, make = sys.argv[1:]
    if make:
        os.mkdir(path); os.chmod(path, 0o1555)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    print("locked", flush=True)
    sys.stdin.readline()
    fcntl.flock(fd, fcntl.LOCK_EX)
    print("alone", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="another user is needed")
async def test_a_lock_of_another_user_holds_up_nobody(confining: ConfiningServer) -> None:
    """Everybody who can read a directory can lock it.  What looks like a mask may be a stranger's."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o1777)  # noqa: S103  (as /tmp is)
        mask = os.path.join(place, ".git")
        other = subprocess.Popen(
            ["/usr/bin/python3", "-c", LOCK, mask, "make"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            user=NOBODY if confining.uid == 0 else 0,
        )
        try:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == b"locked\n"
            other.stdin.write(b"\n")
            other.stdin.flush()
            assert other.stdout.readline() == b"alone\n"

            async with talk(confining.url) as talking:
                sandbox = policy(READ_ALL, entry(place, "write"))
                told = await sh(talking, sandbox, f"touch {place}/made; mkdir {mask}/x")

            assert told.code != 0
            assert os.listdir(mask) == []
            assert os.path.exists(f"{place}/made")
        finally:
            other.kill()
            other.communicate()


async def test_a_lock_of_a_command_that_may_only_read_holds_up_nobody(confining: ConfiningServer) -> None:
    """It locks the mask of another command; that one ends, and others begin."""
    if confining.backend != "bubblewrap":
        pytest.skip("there are no masks")
    with scene(confining.uid, git=False) as here:
        mask, own = str(here.work / ".git"), workspace(here.work)
        async with talk(confining.url) as talking:
            holder = ["sh", "-c", "echo ready; read x"]
            await talking.start("first", *holder, cwd=uri(here.work), sandbox=own, pipeStdin=True)
            await talking.until(lambda: talking.tale("first").data() == b"ready\n")
            locker = confining.python("-c", LOCK, mask, "")
            await talking.start("reader", *locker, sandbox=READ_ONLY, pipeStdin=True)
            await talking.until(lambda: b"locked\n" in talking.tale("reader").data())

            await talking.write("first", b"\n", "1")
            await talking.closed("first")
            await talking.write("reader", b"\n", "1")
            await talking.until(lambda: b"alone\n" in talking.tale("reader").data())
            told = await sh(talking, own, "touch made; mkdir .git/x", name="second", cwd=uri(here.work))

            assert told.code != 0
            assert (here.work / "made").exists()
            await talking.terminate("reader")
            again = await sh(talking, own, "true", name="third", cwd=uri(here.work))
            assert again.code == 0
        await eventually(lambda: not os.path.lexists(mask))


async def test_masks_are_gone_after_many_commands_at_once(confining: ConfiningServer) -> None:
    """Some take them up while others take them away; the name is protected all the time."""
    with scene(confining.uid, git=False) as here:
        script = "mkdir .git 2>/dev/null && echo made; touch $1; mkdir .codex 2>/dev/null && echo made; true"
        async with talk(confining.url) as talking:

            async def one(number: int) -> bytes:
                argv = ("sh", "-c", script, "sh", f"file{number}")
                told = await run(talking, workspace(here.work), *argv, name=f"c{number}", cwd=uri(here.work))
                assert told.code == 0
                return told.output

            said = await asyncio.gather(*map(one, range(40)))

        assert set(said) == {b""}
        assert len(list(here.work.glob("file?*"))) == 40
        await eventually(lambda: not here.has_masks() and not os.path.lexists(here.work / ".git"))
