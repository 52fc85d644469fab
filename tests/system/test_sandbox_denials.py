"""What a sandbox has refused is told as it was: not guessed, not forgotten, not invented."""

# house: long because it is one table: what is tried, on which sandbox backend, and what is told of it

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.client import Refusal
from tests.fakes.outsiders import bystander
from tests.fakes.sandboxes import (
    READ_ALL,
    SETUPS,
    ConfiningServer,
    Scene,
    Told,
    confining_server,
    facts,
    policy,
    run,
    scene,
    sh,
    talk,
    uri,
    workspace,
)
from tests.fakes.trees import Host, host_of

pytestmark = pytest.mark.slow

READ_ONLY = policy(READ_ALL)


@pytest.fixture(scope="module", params=SETUPS, ids="-".join)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Host]]:
    """One server for all tests of this module, of each kind and with each user's rights."""
    backend, name = request.param
    with host_of(name, "--sandbox", backend) as host:
        yield backend, host


@pytest.fixture
async def confining(server: tuple[str, Host]) -> ConfiningServer:
    found = await confining_server(*server)
    if found.info["denial"] != "exact":
        pytest.skip("there is no witness here")
    return found


def python(confining: ConfiningServer, script: str) -> list[str]:
    return confining.python("-c", script)


async def done(confining: ConfiningServer, here: Scene, script: str, **options: Any) -> Told:
    """Run a script in the workspace."""
    async with talk(confining.url) as talking:
        return await sh(talking, workspace(here.work), script, cwd=uri(here.work), **options)


# The table: what is refused, and how.

OUTSIDE = {
    "write": ("echo x >../outside/victim", "open", "victim"),
    "append": ("echo x >>../outside/victim", "open", "victim"),
    "create": ("echo x >../outside/new", "open", "new"),
    "by an absolute path": ("echo x >$PWD/../outside/victim", "open", "victim"),
    "through a link": ("echo x >out-file", "open", "victim"),
    "through a linked directory": ("echo x >out/new", "open", "new"),
    "mkdir": ("mkdir ../outside/new", "mkdir", "new"),
    "rm": ("rm -f ../outside/victim", "unlink", "victim"),
    "rmdir": ("rmdir ../outside/empty", "rmdir", "empty"),
    "rename": ("mv -f ../outside/victim ../outside/other", "rename", "victim"),
    "rename over": ("mv -f file ../outside/victim", "rename", "victim"),
    "symlink": ("ln -s x ../outside/new", "symlink", "new"),
    "link": ("ln file ../outside/new", "link", "new"),
    "mkfifo": ("mkfifo ../outside/new", "mknod", "new"),
    "truncate": ("truncate -s 0 ../outside/victim", "open", "victim"),
}


@pytest.mark.parametrize("what", OUTSIDE)
async def test_what_is_refused_outside_is_told(confining: ConfiningServer, what: str) -> None:
    """An agent that knows what was refused can ask for exactly that."""
    script, op, name = OUTSIDE[what]
    with scene(confining.uid) as here:
        before = here.outside_facts()

        told = await done(confining, here, script)

        path = str(here.outside / name)
        assert told.code != 0
        assert told.denied
        assert (op, path) in told.ops
        assert {told_path for _, told_path in told.ops} == {path}
        assert told.exit["denial"] == "exact"
        assert told.exit["outcome"] == {
            "kind": "sandboxDenied",
            "exitCode": told.code,
            "signal": None,
            "by": "sandbox",
            "detail": f"{told.denials[0][0]} {path}",
        }
        words = (
            b"Read-only file system"
            if confining.backend == "bubblewrap"
            else b"Permission denied|cross-device"
        )
        assert re.search(words, told.errors + told.output, re.IGNORECASE)
        assert here.outside_facts() == before


ATTRIBUTES = {
    "chmod": ("os.chmod(path, 0o777)", "chmod"),
    "utime": ("os.utime(path, (1, 1))", "utime"),
    "chown": ("os.chown(path, os.getuid(), -1)", "chown"),
    "setxattr": ("os.setxattr(path, 'user.x', b'x')", "setxattr"),
    "removexattr": ("os.removexattr(path, 'user.before')", "removexattr"),
}


@pytest.mark.parametrize("what", ATTRIBUTES)
async def test_attributes_outside_are_refused_and_told_or_neither(
    confining: ConfiningServer, what: str
) -> None:
    """Landlock has no such right: then it worked, and nothing was refused."""
    line, op = ATTRIBUTES[what]
    with scene(confining.uid) as here:
        os.setxattr(here.victim, "user.before", b"x")
        before = here.outside_facts()

        script = f"import os; path = {str(here.victim)!r}; {line}"
        async with talk(confining.url) as talking:
            told = await run(talking, workspace(here.work), *python(confining, script))

        if confining.backend == "bubblewrap":
            assert told.denials == [(op, str(here.victim), 1)]
            assert (told.code, told.denied, told.kind) == (1, True, "sandboxDenied")
            assert b"Read-only file system" in told.errors
            assert here.outside_facts() == before
        else:
            assert confining.admits("attributes")
            assert (told.code, told.denied, told.denials) == (0, False, [])


PROTECTED = {
    "write": ("echo x >.git/config", "open", ".git/config"),
    "create": ("echo x >.git/new", "open", ".git/new"),
    "remove": ("rm -f .git/config", "unlink", ".git/config"),
    "move away": ("mv .git other", "rename", ".git"),
    "make": ("mkdir .codex", "mkdir", ".codex"),
    "make inside": ("mkdir -p .codex/x", "mkdir", ".codex"),
}


@pytest.mark.parametrize("what", PROTECTED)
async def test_what_is_refused_inside_is_told(confining: ConfiningServer, what: str) -> None:
    """A ``.git`` that cannot be written in a directory that can is a surprise worth a word."""
    script, op, name = PROTECTED[what]
    with scene(confining.uid) as here:
        told = await done(confining, here, script)

        assert told.code != 0
        assert told.denied
        assert told.kind == "sandboxDenied"
        if not (
            what == "make inside" and confining.backend == "bubblewrap"
        ):  # There it seems to be there already.
            assert (op, str(here.work / name)) in told.ops
        assert all(path.startswith(str(here.work / ".")) for _, path in told.ops)


NETWORK = {
    "socket": ("socket.socket(socket.AF_INET)", "socket", "AF_INET"),
    "inet6": ("socket.socket(socket.AF_INET6)", "socket", "AF_INET6"),
    "netlink": ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "socket", "AF_NETLINK"),
    "datagrams": ("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "socket", "AF_UNIX"),
    "pair": ("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", "socketpair", "AF_UNIX"),
    "abstract": ("socket.socket(socket.AF_UNIX).connect('\\0nobody')", "connect", "AF_UNIX"),
}


@pytest.mark.parametrize("what", NETWORK)
async def test_the_network_is_refused_and_told(confining: ConfiningServer, what: str) -> None:
    """The commonest refusal of all: a package manager that wants to download."""
    line, op, subject = NETWORK[what]
    async with talk(confining.url) as talking:
        told = await run(talking, READ_ONLY, *python(confining, f"import socket; {line}"))

    assert told.denials == [(op, subject, 1)]
    assert (told.code, told.denied, told.kind) == (1, True, "sandboxDenied")
    assert b"Operation not permitted" in told.errors


async def test_with_the_network_allowed_nothing_is_refused(confining: ConfiningServer) -> None:
    """Or the table above would hold for everybody."""
    async with talk(confining.url) as talking:
        sandbox = policy(READ_ALL, network=True)
        told = await run(talking, sandbox, *python(confining, "import socket; socket.socket(); 1 / 0"))

    assert (told.code, told.denied, told.denials) == (1, False, [])


async def test_signals_outside_are_refused(confining: ConfiningServer) -> None:
    """Not by a file's rule: no path is named."""
    with bystander(confining) as other:
        async with talk(confining.url) as talking:
            told = await sh(talking, READ_ONLY, f"kill -USR1 {other.reach['pid']}")

        assert other.state() == other.before
    assert told.code != 0
    words = (
        b"No such process"
        if confining.backend == "bubblewrap"
        else b"Operation not permitted|Permission denied"
    )
    assert re.search(words, told.errors)
    assert told.denials == []


async def test_each_is_counted(confining: ConfiningServer) -> None:
    """One line for what was tried a hundred times."""
    with scene(confining.uid) as here:
        script = "for i in $(seq 100); do echo x >../outside/victim; done; mkdir ../outside/new; exit 3"
        told = await done(confining, here, script)

        assert told.denials == [
            ("open", str(here.victim), 100),
            ("mkdir", str(here.outside / "new"), 1),
        ]
        assert (told.code, told.denied) == (3, True)


async def test_what_was_told_can_be_read_later(confining: ConfiningServer) -> None:
    """A client that comes back asks for it."""
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            told = await sh(talking, workspace(here.work), f"echo x >{here.victim}")
            page = await talking.read("p")

    assert page["sandboxDenied"] is True
    assert page["denials"] == told.exit["denials"]
    assert page["denial"] == "exact"
    assert page["outcome"] == told.exit["outcome"]


# Where guessing from words is wrong.


@pytest.mark.parametrize(
    "words", ["sandbox", "Permission denied", "Operation not permitted", "Read-only file system", "seccomp"]
)
async def test_words_are_no_denial(confining: ConfiningServer, words: str) -> None:
    """A failing test of a program that is about sandboxes has failed, and that is all."""
    async with talk(confining.url) as talking:
        told = await sh(talking, READ_ONLY, f"echo '{words}'; echo '{words}' >&2; exit 1")

    assert (told.code, told.denied, told.denials) == (1, False, [])
    assert told.exit["outcome"]["kind"] == "exit"


async def test_the_exit_code_of_a_bad_call_is_no_denial(confining: ConfiningServer) -> None:
    """159 is what a shell says of a program that was killed for a call; anybody can say it."""
    async with talk(confining.url) as talking:
        told = await sh(talking, READ_ONLY, "exit 159")

    assert (told.code, told.denied, told.denials) == (159, False, [])


async def test_a_silenced_denial_is_one(confining: ConfiningServer) -> None:
    """Nothing was said, and still it failed of it."""
    with scene(confining.uid) as here:
        told = await done(confining, here, "exec 2>/dev/null; echo x >../outside/victim; exit 4")

        assert told.errors == told.output == b""
        assert told.denials == [("open", str(here.victim), 1)]
        assert (told.code, told.denied, told.kind) == (4, True, "sandboxDenied")


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_a_missing_program_is_a_start_that_failed(confining: ConfiningServer, tty: bool) -> None:  # noqa: FBT001
    """It would be missing without a sandbox, too."""
    async with talk(confining.url) as talking:
        with pytest.raises(Refusal) as unsandboxed:
            await talking.start("p", "/no/such/program", tty=tty)
        with pytest.raises(Refusal) as refusal:
            await talking.start("p", "/no/such/program", tty=tty, sandbox=READ_ONLY)

    assert refusal.value.error == unsandboxed.value.error


async def test_a_success_is_no_denial_but_what_was_refused_is_listed(confining: ConfiningServer) -> None:
    """Who has coped with it has not failed of it."""
    with scene(confining.uid) as here:
        told = await done(confining, here, "echo x >../outside/victim; exit 0")

        assert told.denials == [("open", str(here.victim), 1)]
        assert (told.code, told.denied, told.kind) == (0, False, "exit")


async def test_what_would_fail_anyway_is_not_listed(confining: ConfiningServer) -> None:
    """Who may not write a file has its permissions against it, and not the sandbox."""
    if confining.uid == 0:
        pytest.skip("root may everything")
    with scene(confining.uid) as here:
        for path in (here.victim, here.outside, here.outside / "empty"):
            os.chown(path, 0, 0)
        script = (
            "echo x >../outside/victim; echo x >../outside/new; mkdir ../outside/new;"
            " rm -f ../outside/victim; mv ../outside/victim x; rmdir ../outside/empty;"
            " ln -s x ../outside/new; exit 1"
        )
        told = await done(confining, here, script)

    assert told.denials == []
    assert (told.code, told.denied, told.kind) == (1, False, "exit")


async def test_what_is_not_there_is_not_listed(confining: ConfiningServer) -> None:
    """The same for a directory that is missing, and for looking."""
    with scene(confining.uid) as here:
        script = (
            "echo x >../outside/no/such; mkdir ../outside/no/such; cat ../outside/nothing;"
            " rm ../outside/nothing; mv ../outside/nothing x; rmdir ../outside/nothing;"
            " mkdir ../outside/empty; cat ../outside/victim; exit 1"
        )
        told = await done(confining, here, script)

    assert told.denials == []
    assert (told.code, told.denied) == (1, False)


async def test_what_is_allowed_is_not_listed(confining: ConfiningServer) -> None:
    """The daily bread of a build."""
    with scene(confining.uid) as here:
        script = (
            "mkdir d && echo x >d/f && mv d/f d/g && ln d/g d/h && ln -s g d/i && rm d/g && chmod 600 d/h"
            " && echo x >/dev/null && touch d/h && cat <d/h >/dev/null; exit 1"
        )
        told = await done(confining, here, script)

    assert told.denials == []
    assert (told.code, told.denied) == (1, False)


async def test_what_a_grandchild_was_refused_is_told(confining: ConfiningServer) -> None:
    """A build is a tree of programs, and the one that fails is far below."""
    with scene(confining.uid) as here:
        told = await done(
            confining, here, "sh -c 'sh -c \"echo x >../outside/victim; exit 5\"; exit $?'; exit $?"
        )

        assert told.denials == [("open", str(here.victim), 1)]
        assert (told.code, told.denied) == (5, True)


async def test_what_was_refused_in_another_session_is_told(confining: ConfiningServer) -> None:
    """The same for whoever has moved away."""
    with scene(confining.uid) as here:
        told = await done(confining, here, "setsid -w sh -c 'echo x >../outside/victim'; exit 6")

        assert told.denials == [("open", str(here.victim), 1)]
        assert (told.code, told.denied) == (6, True)


async def test_a_late_denial_is_told(confining: ConfiningServer) -> None:
    """The last thing before the end."""
    with scene(confining.uid) as here:
        code = f"import os\ntry: os.mkdir({str(here.outside / 'new')!r})\nexcept OSError: os._exit(9)"
        async with talk(confining.url) as talking:
            tales = []
            for number in range(10):
                argv = python(confining, code)
                tales.append(await run(talking, workspace(here.work), *argv, name=f"p{number}"))

        assert [(told.code, told.denied, told.ops) for told in tales] == [
            (9, True, {("mkdir", str(here.outside / "new"))})
        ] * 10


async def test_a_denial_on_a_terminal_is_told(confining: ConfiningServer) -> None:
    """The same with the one stream that carries everything."""
    with scene(confining.uid) as here:
        told = await done(confining, here, "echo x >../outside/victim", tty=True)

        assert told.denials == [("open", str(here.victim), 1)]
        assert told.denied
        assert told.kind == "sandboxDenied"


async def test_a_python_that_cannot_keep_what_it_compiled_succeeds(confining: ConfiningServer) -> None:
    """It does not mind; whoever reads the list sees it."""
    with scene(confining.uid) as here:
        (here.outside / "module.py").write_text("x = 1\n")
        here.give()
        argv = [
            confining.host.python,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path[:0] = [{str(here.outside)!r}]; import module",
        ]
        async with talk(confining.url) as talking:
            told = await run(talking, workspace(here.work), *argv)

        assert (told.code, told.denied, told.kind) == (0, False, "exit")
        assert told.ops == {("mkdir", str(here.outside / "__pycache__"))}


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
async def test_a_git_status_in_a_tree_that_cannot_be_written_succeeds(confining: ConfiningServer) -> None:
    """It would like to refresh its index, and does without."""
    with scene(confining.uid, git=False) as here:
        async with talk(confining.url) as talking:
            script = "git init -q . && git add file && touch -d 2001-01-01 file"
            made = await sh(talking, None, script, cwd=uri(here.work), name="made")
            before = facts(here.work / ".git")
            told = await sh(talking, workspace(here.work), "git status --short", cwd=uri(here.work))

        assert made.code == 0, made.errors
        assert (told.code, told.denied) == (0, False)
        assert b"A  file" in told.output
        assert {path for _, path in told.ops} <= {str(here.work / ".git" / "index.lock")}
        assert facts(here.work / ".git") == before


async def test_whoever_cannot_be_seen_is_not_believed(confining: ConfiningServer) -> None:
    """A program that hides its memory is refused all the same, and what is told is not invented."""
    with scene(confining.uid) as here:
        code = f"import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); open({str(here.victim)!r}, 'w')"
        async with talk(confining.url) as talking:
            told = await run(talking, workspace(here.work), *python(confining, code))

        assert told.code == 1
        assert {path for _, path in told.ops} <= {str(here.victim), ""}
        assert here.victim.read_text() == "whole\n"


# Without a witness.


WITHOUT_LISTENERS = """
import ctypes, os, struct, sys
SECCOMP = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
steps = [
    struct.pack("HBBI", 0x20, 0, 0, 0),  # The number of the call,
    struct.pack("HBBI", 0x15, 0, 3, SECCOMP),
    struct.pack("HBBI", 0x20, 0, 0, 24),  # and its second argument, the flags.
    struct.pack("HBBI", 0x45, 0, 1, 8),  # SECCOMP_FILTER_FLAG_NEW_LISTENER
    struct.pack("HBBI", 6, 0, 0, 0x00050000 | 22),
    struct.pack("HBBI", 6, 0, 0, 0x7FFF0000),
]
code = ctypes.create_string_buffer(b"".join(steps))
program = ctypes.create_string_buffer(struct.pack("H6xQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
for option in ((38, 1), (22, 2, program)):
    assert libc.prctl(*option, *(0,) * (5 - len(option))) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a program on a kernel that hands no system calls over, as those before Linux 5.0 do not."""


@pytest.fixture(scope="module")
def plain() -> Iterator[Host]:
    """A server whose kernel lets nobody be a witness."""
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("the number of the call is not known here")
    with host_of("self", script=WITHOUT_LISTENERS) as host:
        yield host


async def test_without_a_witness_it_is_said_that_it_is_a_guess(plain: Host) -> None:
    """Whoever relies on it must be able to know."""
    confining = await confining_server("landlock", plain)

    assert confining.info["denial"] == "guess"
    assert confining.info["protectsSubpaths"] == "none"


@pytest.mark.parametrize(
    ("script", "denied"),
    [
        ("echo x >../outside/victim; exit 1", True),
        ("echo 'about a sandbox'; exit 1", True),
        ("exec 2>/dev/null; echo x >../outside/victim; exit 1", False),
        ("echo x >../outside/victim; exit 0", False),
        ("exit 159", True),
        ("exit 3", False),
    ],
)
async def test_without_a_witness_the_words_decide(plain: Host, script: str, denied: bool) -> None:  # noqa: FBT001
    """The reference's guess, right or wrong, and labelled so."""
    confining = await confining_server("landlock", plain)
    with scene(confining.uid) as here:
        before = here.outside_facts()
        async with talk(confining.url) as talking:
            sandbox = workspace(here.work, protectsSubpaths="none")
            told = await sh(talking, sandbox, script, cwd=uri(here.work))

        assert told.denied is denied
        assert told.denials == []
        assert told.exit["denial"] == "guess"
        assert told.kind == ("sandboxDenied" if denied else "exit")
        assert here.outside_facts() == before


async def test_without_a_witness_nothing_less_is_started_than_asked_for(plain: Host) -> None:
    """By default a client wants its ``.git`` to be guarded, and nobody is there to do it."""
    confining = await confining_server("landlock", plain)
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            with pytest.raises(Refusal, match="not as well as was asked for") as refusal:
                await sh(talking, workspace(here.work), "true")

    assert refusal.value.code == -32602
