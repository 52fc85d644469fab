"""Starting: what can be started, what is said when it cannot, and what is left then."""

from __future__ import annotations

import asyncio
import errno
import random

import pytest

from holdfast.backend import Backend
from holdfast.errors import Fault, SpawnFailed
from holdfast.model import EnvironmentPolicy, Inherit, Size, Spec
from tests.fakes.process import (
    PATH,
    TERMINAL,
    anybody_runs,
    command,
    eventually,
    has_commands,
    open_files,
    sh,
)
from tests.fakes.recorder import finished

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])


async def test_a_backend_tells_what_its_host_is_like(backend: Backend) -> None:
    assert backend.info.shell.startswith("/")
    assert backend.info.cwd.startswith("/")


async def test_a_process_gets_its_arguments_directory_and_variables(backend: Backend) -> None:
    spec = Spec(argv=["sh", "-c", 'echo "$1|$PWD|$A"', "sh", "a b"], cwd="/usr", env={"PATH": PATH, "A": "é"})

    recorder = await finished(await backend.start(spec))

    assert recorder.said() == "a b|/usr|é\n".encode()


async def test_a_process_inherits_what_the_policy_says(backend: Backend) -> None:
    policy = EnvironmentPolicy(
        Inherit.NONE, True, exclude=(), set=(("A", "1"), ("PATH", PATH)), include_only=()
    )
    spec = Spec(argv=["env"], cwd="/", env={"B": "2"}, env_policy=policy)

    recorder = await finished(await backend.start(spec))

    assert recorder.said() == f"A=1\nB=2\nPATH={PATH}\n".encode()


@pytest.mark.parametrize("size", [Size(), Size(rows=3, cols=200)])
async def test_a_terminal_has_its_size(backend: Backend, size: Size) -> None:
    recorder = await finished(await backend.start(command("stty", "size", terminal=size)))

    assert recorder.said() == b"%d %d\r\n" % (size.rows, size.cols)


@BOTH
async def test_its_name_changes_nothing_about_the_program(backend: Backend, terminal: Size | None) -> None:
    spec = command("sh", "-c", "echo $0", arg0="other", terminal=terminal)

    recorder = await finished(await backend.start(spec))

    assert recorder.said().split() == [b"other"]


@BOTH
@pytest.mark.parametrize(
    ("spec", "fault", "subject", "number"),
    [
        (command("no-such-program"), Fault.PROGRAM, "no-such-program", errno.ENOENT),
        (command("/etc/passwd"), Fault.PROGRAM, "/etc/passwd", errno.EACCES),
        (command("true", cwd="/no/such"), Fault.DIRECTORY, "/no/such", errno.ENOENT),
        (command("true", cwd="/etc/passwd"), Fault.DIRECTORY, "/etc/passwd", errno.ENOTDIR),
        (command("true", "a\0b"), Fault.ARGUMENT, "argv", None),
        (command("true", env={"PATH": PATH, "A": "\0"}), Fault.ARGUMENT, "env", None),
        (command("true", "x" * 200_000), Fault.ARGUMENT, "argv and env", errno.E2BIG),
    ],
    ids=["missing", "not executable", "no directory", "file as directory", "nul", "nul in env", "too long"],
)
async def test_a_start_that_fails_names_what_is_at_fault_and_leaves_nothing(
    backend: Backend, spec: Spec, fault: Fault, subject: str, number: int | None, terminal: Size | None
) -> None:
    await finished(await backend.start(command("true")))  # Now there is a fork server, and a spare shim.
    before = len(open_files())
    spec = Spec(spec.argv, spec.cwd, spec.env, terminal=terminal)

    with pytest.raises(SpawnFailed) as caught:
        await backend.start(spec)

    error = caught.value
    assert (error.fault, error.subject, error.number) == (fault, subject, number)
    assert len(open_files()) <= before
    assert not has_commands()


async def test_a_cancelled_start_leaves_no_process(backend: Backend) -> None:
    mark = f"1000.{random.getrandbits(64)}"
    for turns in range(5):
        starting = asyncio.ensure_future(backend.start(command("sleep", mark)))
        for _ in range(turns):
            await asyncio.sleep(0)
        if starting.cancel():
            with pytest.raises(asyncio.CancelledError):
                await starting
        else:  # It was faster.
            await starting.result().end()

    await eventually(lambda: not anybody_runs(mark))


@pytest.mark.slow
@pytest.mark.stress
async def test_a_hundred_processes_at_once_are_kept_apart(backend: Backend) -> None:
    async def one(number: int) -> None:
        recorder = await finished(
            await backend.start(
                sh(f"echo {number}; exit {number}", terminal=TERMINAL if number % 2 else None)
            )
        )
        assert recorder.said().split() == [b"%d" % number]
        assert recorder.told[-2:] == [("exited", number), ("closed",)]

    await asyncio.gather(*(one(number) for number in range(100)))
