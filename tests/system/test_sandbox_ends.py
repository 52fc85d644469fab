"""A sandboxed command lives and ends as any other does, and leaves nothing behind."""

# house: long because ends of a command are compared with each other

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import PATH, Client, Message, Refusal, start_params
from tests.fakes.sandboxes import (
    PROJECT,
    PROTECTED,
    READ_ALL,
    SETUPS,
    ConfiningServer,
    Scene,
    confining_server,
    entry,
    facts,
    policy,
    run,
    scene,
    sh,
    talk,
    told_of,
    uri,
    workspace,
)
from tests.fakes.server import PATIENCE, Sighting, commands, eventually, is_same
from tests.fakes.trees import USERS, Host, host_of

pytestmark = pytest.mark.slow

TMPDIR: Message = {"path": {"type": "special", "value": {"kind": "tmpdir"}}, "access": "write"}
SLASH_TMP: Message = {"path": {"type": "special", "value": {"kind": "slash_tmp"}}, "access": "write"}

WAIT = "echo ready; exec sleep 1000"
MIB = 1 << 20


@pytest.fixture(scope="module", params=SETUPS, ids="-".join)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Host]]:
    """One server for all tests of this module, of each kind and with each user's rights."""
    backend, name = request.param
    with host_of(name, "--sandbox", backend) as host:
        yield backend, host


@pytest.fixture
async def confining(server: tuple[str, Host]) -> ConfiningServer:
    return await confining_server(*server)


@pytest.fixture
async def talking(confining: ConfiningServer) -> AsyncIterator[Client]:
    async with talk(confining.url) as client:
        yield client
        # Or what still runs would outlive the test.
        await client.call("session/close")


@pytest.fixture
def here(confining: ConfiningServer) -> Iterator[Scene]:
    """A workspace without any of the protected names, and a directory for temporary files."""
    with workspace_of(confining.uid) as made:
        yield made


@contextlib.contextmanager
def workspace_of(uid: int) -> Iterator[Scene]:
    with scene(uid, git=False) as made:
        temporary(made).mkdir()
        made.give()
        yield made


def temporary(here: Scene) -> Path:
    return here.base / "tmp"


def everyday(here: Scene) -> Message:
    """The profile that most commands have."""
    return policy(READ_ALL, PROJECT, TMPDIR, roots=(here.work,))


def params(here: Scene, script: str, name: str = "p", **options: Any) -> Message:
    env = {"PATH": PATH, "TMPDIR": str(temporary(here))}
    argv = ("/bin/sh", "-c", script)
    return start_params(name, *argv, cwd=uri(here.work), env=env, **{"sandbox": everyday(here), **options})


def strange(here: Scene) -> list[Path]:
    """What is there and was not before."""
    found = [place / name for place in (here.work, temporary(here)) for name in PROTECTED]
    return [path for path in found if os.path.lexists(path)]


async def ready(talking: Client, name: str = "p") -> None:
    """Wait until the command has said so."""
    tale = talking.tale(name)
    await talking.until(lambda: b"ready" in tale.data() or tale.is_closed)
    assert b"ready" in tale.data(), tale.events


def alive(host: Host) -> set[Sighting]:
    """Who runs below the server, but for those who watch.  Numbers of the dead may be kept for a moment."""
    return {found for found in commands(host.program.pid) if is_same(found)}


async def gone(confining: ConfiningServer) -> None:
    """Wait until nobody is left."""
    await eventually(lambda: not alive(confining.host))


# Nothing is left behind.

ENDS = ("exit", "failure", "own signal", "terminate", "grace", "timeout", "idle", "kill", "session")


async def end(talking: Client, how: str) -> None:
    """Have a command end that waits."""
    if how in ("exit", "failure", "own signal"):
        await talking.write("p", b"\n", "w")
    elif how == "terminate":
        await talking.call("process/terminate", {"processId": "p"})
    elif how == "grace":
        await talking.call("process/terminate", {"processId": "p", "graceMs": 20})
    elif how == "kill":
        await talking.call("process/signal", {"processId": "p", "signal": "kill", "tree": True})
    elif how == "session":
        await talking.call("session/close")


LAST = {"exit": "exit 0", "failure": "exit 3", "own signal": "kill -9 $$"}
TERMS: dict[str, Message] = {"timeout": {"timeoutMs": 200}, "idle": {"idleTimeoutMs": 200}}


@pytest.mark.parametrize("how", ENDS)
async def test_an_end_leaves_nothing_in_the_workspace(
    confining: ConfiningServer, here: Scene, how: str
) -> None:
    """An empty ``.git`` in a workspace makes a repository of it for every tool that comes by."""
    before = facts(here.base)
    script = f"echo ready; read _; {LAST.get(how, 'exit 0')}"
    async with talk(confining.url) as talking:
        await talking.call("process/start", params(here, script, pipeStdin=True, **TERMS.get(how, {})))
        await ready(talking)
        during = strange(here)

        await end(talking, how)
        if how != "session":
            await talking.closed("p")
        await eventually(lambda: not strange(here))

    if how not in TERMS:  # Such an end may have come before we looked.
        assert bool(during) == (confining.backend == "bubblewrap"), "or there was nothing to take away"
    after = facts(here.base)
    assert {name: fact[:4] for name, fact in after.items()} == {
        name: fact[:4] for name, fact in before.items()
    }
    await gone(confining)


async def test_masks_are_gone_when_the_end_is_told(talking: Client, here: Scene) -> None:
    """Whoever hears of the end goes on in the same directory."""
    found = []
    for number in range(10):
        await talking.call("process/start", params(here, "exit 0", f"p{number}"))
        await talking.closed(f"p{number}")
        found.append(strange(here))
    await eventually(lambda: not strange(here))

    assert found == [[]] * 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(("backend", "name"), SETUPS)
async def test_the_end_of_the_server_leaves_nothing(backend: str, name: str, number: signal.Signals) -> None:
    """However it ends."""
    with host_of(name, "--sandbox", backend) as host:
        confining = await confining_server(backend, host)
        with workspace_of(confining.uid) as here:
            async with talk(confining.url) as talking:
                for each in ("p", "q"):
                    await talking.call("process/start", params(here, f"trap '' TERM; {WAIT}", each))
                    await ready(talking, each)
                running = alive(host)
                during = strange(here)

                host.program.send_signal(number)
                await asyncio.to_thread(host.program.wait)
            await eventually(lambda: not host.program.survivors())
            await eventually(lambda: not strange(here))

    assert len(running) >= 2
    assert bool(during) == (backend == "bubblewrap")


async def test_of_two_in_one_workspace_the_second_keeps_its_protection(
    confining: ConfiningServer, talking: Client, here: Scene
) -> None:
    """What covers a name is there until the last who needs it is gone."""
    attempt = "echo ready; read _; mkdir .git .aws; echo x >.codex; mkdir $TMPDIR/.git; exit 4"
    await talking.call("process/start", params(here, "echo ready; read _", "first", pipeStdin=True))
    await ready(talking, "first")
    await talking.call("process/start", params(here, attempt, "second", pipeStdin=True))
    await ready(talking, "second")

    await talking.write("first", b"\n", "w")
    await talking.closed("first")
    await talking.write("second", b"\n", "w")
    told = await told_of(talking, "second")
    await eventually(lambda: not strange(here))

    assert told.code == 4
    assert told.errors.count(b"\n") == 4, told.errors


async def test_of_two_that_end_in_any_order_nothing_is_left(
    confining: ConfiningServer, talking: Client, here: Scene
) -> None:
    """Whoever is the last takes it away, also if they are two."""
    for turn in range(5):
        names = [f"{turn}-{number}" for number in range(8)]
        for name in names:
            await talking.call("process/start", params(here, "echo ready; read _", name, pipeStdin=True))
            await ready(talking, name)
        posted = talking.post_together(*[("process/terminate", {"processId": name}) for name in names])
        for answer in posted:
            await talking.result(answer)
        await eventually(lambda: not strange(here))

    assert strange(here) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("first", USERS)
async def test_two_users_in_one_place_leave_nothing_for_long(first: str) -> None:
    """``/tmp`` is everybody's; each may only take away what is theirs, with their next command if not now."""
    other = next(name for name in USERS if name != first)
    with (
        host_of(first, "--sandbox", "bubblewrap") as one,
        host_of(other, "--sandbox", "bubblewrap") as two,
        scene(0, git=False) as here,
    ):
        await confining_server("bubblewrap", one)
        await confining_server("bubblewrap", two)
        here.work.chmod(0o1777)
        async with talk(one.url) as early, talk(two.url) as late:
            for talking in (early, late):
                script = ("/bin/sh", "-c", "echo ready; read _; mkdir .git")
                sandbox = workspace(here.work)
                await talking.start("p", *script, cwd=uri(here.work), sandbox=sandbox, pipeStdin=True)
                await ready(talking)
            ends = []
            for talking in (early, late):
                await talking.write("p", b"\n", "w")
                ends.append(await told_of(talking, "p"))
            for talking in (early, late):
                await sh(talking, workspace(here.work), "true", name="next")
        await eventually(lambda: not any((here.work / name).exists() for name in PROTECTED))

        assert [end.code for end in ends] == [1, 1]
        assert [name for name in PROTECTED if (here.work / name).exists()] == []


async def test_nothing_is_left_in_the_hosts_temporary_directory(
    confining: ConfiningServer, talking: Client, here: Scene
) -> None:
    """The place that nearly every profile can write to."""
    before = {name for name in PROTECTED if os.path.lexists(f"/tmp/{name}")}
    sandbox = policy(READ_ALL, PROJECT, SLASH_TMP, roots=(here.work,))
    told = await sh(talking, sandbox, "mkdir /tmp/.agents; exit 3")

    assert told.code == 3
    assert told.denied
    # Somebody else's sandbox may need one of them at this moment.
    await eventually(lambda: {name for name in PROTECTED if os.path.lexists(f"/tmp/{name}")} <= before)


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o555])
async def test_an_empty_directory_of_the_users_survives(talking: Client, here: Scene, mode: int) -> None:
    """It was there before, whatever it is good for."""
    for name in PROTECTED:
        (here.work / name).mkdir()
        (here.work / name).chmod(mode)
    here.give()
    before = facts(here.work)

    for number in range(3):
        await talking.call("process/start", params(here, "touch .git/x; rmdir .aws; exit 0", f"p{number}"))
        await talking.closed(f"p{number}")
    await eventually(lambda: not [path for path in strange(here) if path.parent == temporary(here)])

    assert facts(here.work) == before


async def test_a_place_that_is_not_ours_can_be_worked_in(confining: ConfiningServer, talking: Client) -> None:
    """Nobody could make those names there, so nobody need be kept from it."""
    with scene(0, git=False) as here:
        told = await sh(talking, workspace(here.work), "cat file; mkdir .git; exit 5", cwd=uri(here.work))

        assert told.output == b"of the command\n"
        assert told.code == 5
        await eventually(lambda: not here.has_masks())


# Signals and terminals.


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_an_interrupt_runs_the_commands_handler(talking: Client, here: Scene, tty: bool) -> None:  # noqa: FBT001
    """In the reference's sandbox it kills everything instead."""
    script = "trap 'echo handled; exit 7' INT; echo ready; while :; do sleep 0.05; done"
    await talking.call("process/start", params(here, script, tty=tty))
    await ready(talking)

    await talking.call("process/signal", {"processId": "p", "signal": "interrupt"})
    told = await told_of(talking, "p")

    assert b"handled" in told.output
    assert (told.code, told.kind) == (7, "exit")


async def test_a_grace_lets_the_command_end_itself(talking: Client, here: Scene) -> None:
    """SIGTERM first, and it is heard."""
    script = "trap 'echo handled; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    await talking.call("process/start", params(here, script))
    await ready(talking)

    answer = await talking.call("process/terminate", {"processId": "p", "graceMs": 8000})
    told = await told_of(talking, "p")

    assert answer == {"running": True, "survivors": [], "treeExact": True}
    assert b"handled" in told.output
    assert told.code == 9


async def test_a_typed_interrupt_reaches_the_command(talking: Client, here: Scene) -> None:
    """The terminal is the command's own, also inside."""
    script = "trap 'echo handled; exit 7' INT; echo ready; while :; do sleep 0.05; done"
    await talking.call("process/start", params(here, script, tty=True))
    await ready(talking)

    await talking.write("p", b"\x03", "w")
    told = await told_of(talking, "p")

    assert b"handled" in told.output
    assert told.code == 7


async def test_a_terminal_can_be_opened_and_resized(talking: Client, here: Scene) -> None:
    """Editors and pagers ask for both."""
    script = (
        "trap 'stty size; exit 0' WINCH; stty size </dev/tty; echo ready >/dev/tty;"
        " while :; do sleep 0.05; done"
    )
    await talking.call("process/start", params(here, script, tty=True, size={"rows": 11, "cols": 22}))
    await ready(talking)

    await talking.call("process/resize", {"processId": "p", "size": {"rows": 33, "cols": 44}})
    told = await told_of(talking, "p")

    assert told.output.replace(b"\r", b"").split(b"\n") == [b"11 22", b"ready", b"33 44", b""]
    assert told.code == 0


async def test_what_is_written_to_stdin_arrives(talking: Client, here: Scene) -> None:
    """To its end."""
    await talking.call("process/start", params(here, "cat; echo over", pipeStdin=True))
    data = b"0123456789abcdef" * 10_000

    for number in range(4):
        await talking.write("p", data, f"w{number}")
    await talking.call("process/closeStdin", {"processId": "p"})
    told = await told_of(talking, "p")

    assert told.output == data * 4 + b"over\n"
    assert told.code == 0


OWN_ENDS = {
    "exit 0": (0, "exit"),
    "exit 3": (3, "exit"),
    "exit 255": (255, "exit"),
    "exit 137": (137, "exit"),
    "kill -9 $$": (137, "signal"),
    "kill -15 $$": (143, "signal"),
    "kill -SEGV $$": (139, "signal"),
}


async def test_an_end_is_told_as_it_was(talking: Client, here: Scene) -> None:
    """The command's own, and not that of whoever is around it."""
    ends = {}
    for script in OWN_ENDS:
        await talking.call("process/start", params(here, script, script))
        told = await told_of(talking, script)
        ends[script] = told.code, told.kind
        assert not told.denied

    assert ends == OWN_ENDS


# Trees.

FAMILY = (
    "(setsid sh -c 'sleep 1000' &) ; (sh -c 'sh -c \"sleep 1000 & sleep 1000\" & sleep 1000' &) ;"
    " setsid sh -c 'trap \"\" TERM INT HUP; sleep 1000 & sleep 1000' & (nohup sleep 1000 >/dev/null 2>&1 &) ;"
    " sleep 1000 & echo ready; wait"
)


@pytest.mark.parametrize("how", ["terminate", "grace", "kill", "session"])
async def test_nobody_of_a_tree_is_left(confining: ConfiningServer, here: Scene, how: str) -> None:
    """However far it has moved away."""
    async with talk(confining.url) as talking:
        await talking.call("process/start", params(here, FAMILY))
        await ready(talking)
        await eventually(lambda: len(alive(confining.host)) >= 9)

        await end(talking, how)
        left = alive(confining.host) if how in ("terminate", "grace", "session") else set()
        if how != "session":
            await talking.closed("p")
        await gone(confining)

    assert left == set(), "the answer came before the end"


async def test_what_a_command_leaves_behind_can_still_be_ended(
    confining: ConfiningServer, talking: Client, here: Scene
) -> None:
    """Whether it lives on is another question; it must not be out of reach."""
    script = "setsid sh -c 'exec >/dev/null 2>&1; sleep 1000' & echo ready; exit 6"
    await talking.call("process/start", params(here, script))
    told = await told_of(talking, "p")

    answer = await talking.call("process/terminate", {"processId": "p", "graceMs": 0})
    await gone(confining)
    await eventually(lambda: not strange(here))

    assert told.code == 6
    assert answer["survivors"] == []


# Limits.


async def test_a_limit_on_memory_is_kept(confining: ConfiningServer, talking: Client, here: Scene) -> None:
    """A sandbox is no way around it."""
    take = f"b = bytearray({512 * MIB}); b[::4096] = b'x' * len(b[::4096]); import signal; signal.pause()"
    told = await run(talking, everyday(here), *confining.python("-c", take), limits={"memoryBytes": 96 * MIB})

    assert told.code == 137
    assert (told.kind, told.exit["outcome"]["by"]) == ("oom", "limit")


async def test_a_limit_on_processes_is_kept(confining: ConfiningServer, talking: Client, here: Scene) -> None:
    """Neither is it one around this."""
    forks = (
        "import os, signal\nmade = 0\nfor _ in range(100):\n"
        "  try:\n    pid = os.fork()\n  except OSError: break\n"
        "  if not pid: signal.pause()\n  made += 1\nprint('made', made, flush=True)\nsignal.pause()"
    )
    answer = await talking.start(
        "p", *confining.python("-c", forks), sandbox=everyday(here), limits={"processes": 20}
    )
    tale = talking.tale("p")
    if answer["limits"]["processes"] == "cgroup":
        # The kernel refuses one too many; where it cannot, the tree is ended.
        await talking.until(lambda: b"made" in tale.data() or tale.is_closed)
        await talking.call("process/terminate", {"processId": "p"})
    told = await told_of(talking, "p")

    if answer["limits"]["processes"] == "cgroup":
        assert 0 < int(told.output.split()[1]) < 20
    else:
        assert (told.kind, told.exit["outcome"]["by"]) == ("terminated", "limit")
    await gone(confining)


async def test_a_limit_on_files_is_kept(confining: ConfiningServer, talking: Client, here: Scene) -> None:
    """The same, for what is a limit of each process."""
    told = await sh(talking, everyday(here), "ulimit -n", limits={"openFiles": 50})

    assert told.output == b"50\n"


async def test_a_limit_on_time_is_kept(talking: Client, here: Scene) -> None:
    """And this one is ours."""
    await talking.call("process/start", params(here, WAIT, timeoutMs=200))
    told = await told_of(talking, "p")

    assert told.kind == "timeout"
    assert not told.denied


# Many, again, and none.


@pytest.mark.stress
@pytest.mark.parametrize(
    "server", [setup for setup in SETUPS if setup[1] == USERS[-1]], ids="-".join, indirect=True
)
async def test_many_at_once(confining: ConfiningServer, talking: Client, here: Scene) -> None:
    """Two hundred in one workspace, each with its own end, and no trace of any."""
    names = [f"p{number}" for number in range(200)]
    script = "echo ready; read n; echo x >$TMPDIR/f$n; mkdir .git 2>/dev/null; exit $n"
    started = talking.post_together(
        *[("process/start", params(here, script, name, pipeStdin=True)) for name in names]
    )
    for answer in started:
        await talking.result(answer, within=2 * PATIENCE)
    for name in names:
        await ready(talking, name)
    running = len(alive(confining.host))
    for number, name in enumerate(names):
        await talking.write(name, f"{number}\n".encode(), "w")
    ends = [await told_of(talking, name) for name in names]
    await eventually(lambda: not strange(here))
    await gone(confining)

    assert running >= 200
    assert [told.code for told in ends] == list(range(200))
    assert len(list(temporary(here).iterdir())) == 200
    assert all(told.denials for told in ends)


async def test_the_same_start_finds_the_same_process(talking: Client, here: Scene) -> None:
    """A start that is repeated is the same only with the same sandbox."""
    first = await talking.call("process/start", params(here, WAIT, idempotent=True))
    second = await talking.call("process/start", params(here, WAIT, idempotent=True))
    other = policy(READ_ALL, PROJECT, TMPDIR, entry(here.outside, "write"), roots=(here.work,))
    for sandbox in (other, None):
        with pytest.raises(Refusal, match="already exists"):
            await talking.call("process/start", params(here, WAIT, idempotent=True, sandbox=sandbox))

    pid = first.pop("pid")
    assert first == {"processId": "p", "sandboxType": "linuxSeccomp", "existing": False}
    assert second == {**first, "existing": True, "pid": pid}


BAD_STARTS: dict[str, Message] = {
    "no program": {"argv": ["/no/such/program"]},
    "not found": {"argv": ["no-such-program"]},
    "no file": {"argv": ["/tmp"]},
    "no program at all": {"argv": ["/etc/passwd"]},
    "no directory": {"cwd": "file:///no/such/directory"},
    "a file as directory": {"cwd": "file:///etc/passwd"},
}


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_a_start_that_fails_fails_as_without_a_sandbox(
    confining: ConfiningServer,
    talking: Client,
    here: Scene,
    tty: bool,  # noqa: FBT001
) -> None:
    """The sandbox has nothing to do with it, and leaves nothing."""
    answers: dict[str, list[Message]] = {what: [] for what in BAD_STARTS}
    for what, bad in BAD_STARTS.items():
        whole = {**params(here, "true", tty=tty), **bad}
        for start in (whole, {**whole, "sandbox": None}):
            with pytest.raises(Refusal) as refusal:
                await talking.call("process/start", start)
            answers[what].append(refusal.value.error)

    assert {what: sandboxed for what, (sandboxed, _) in answers.items()} == {
        what: plain for what, (_, plain) in answers.items()
    }
    await eventually(lambda: not strange(here))
    await gone(confining)


async def test_a_program_that_cannot_be_seen_is_not_started(
    confining: ConfiningServer, talking: Client, here: Scene
) -> None:
    """It is there, but not for this command; and that is not the program's fault."""
    with pytest.raises(Refusal) as refusal:
        await talking.call("process/start", params(here, "true", sandbox=policy(PROJECT, roots=(here.work,))))

    assert refusal.value.code == -32603
    assert refusal.value.data["fault"] == "sandbox"
    await eventually(lambda: not strange(here))
    await gone(confining)
