"""Commands in bubblewrap, at the level of a fork server's messages."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.host.sandbox.bubblewrap import _file
from holdfast.host.sandbox.confinement import Confinement, Held
from holdfast.sandbox import Access, Named, SandboxEntry, Where
from tests.fakes.fork_server import (
    ALONE,
    AT_DIRECTORY,
    AT_HIDDEN,
    AT_PROGRAM,
    AT_SANDBOX,
    AT_SEARCH,
    BY_SIGNAL,
    EMPTY,
    EXITED,
    FAILED,
    GUARD,
    PATH,
    STARTED,
    STATUS,
    Command,
    ForkServer,
    has_ended,
    sh,
)
from tests.fakes.process import read_to_end, read_until

pytestmark = pytest.mark.timeout(2 * GUARD)

READ = Access.READ
MINIMAL = SandboxEntry(Named(Where.MINIMAL), READ)

Confine = Callable[..., Confinement]


# Ends.


@pytest.mark.parametrize(
    ("script", "value", "detail"),
    [
        ("exit 0", 0, ALONE),
        ("exit 7", 7, ALONE),
        ("exit 255", 255, ALONE),
        ("exit 137", 137, ALONE),
        ("kill -TERM $$", signal.SIGTERM, BY_SIGNAL | ALONE),
        ("kill -SEGV $$", signal.SIGSEGV, BY_SIGNAL | ALONE),
        ("kill -KILL $$", signal.SIGKILL, BY_SIGNAL | ALONE),
        ("sleep 1000 & exit 7", 7, ALONE),
    ],
)
def test_an_end_in_bubblewrap_is_told_exactly(
    fork_server: ForkServer, wrapped: Confine, script: str, value: int, detail: int
) -> None:
    """137 is a code and 9 is a signal, though bubblewrap has one number for both."""
    command = fork_server.command().start(*sh(f"ulimit -c 0; {script}"), confinement=wrapped())
    started = command.tells(STARTED)

    assert started.shim in fork_server.children()
    assert command.ended() == (value, detail)
    assert command.members() == set()


def test_a_command_in_bubblewrap_is_alone_with_its_own(fork_server: ForkServer, wrapped: Confine) -> None:
    """Its number, its processes, its powers, its variables, its files."""
    script = "echo $$ $PPID; ls -d /proc/[0-9]* | wc -l; ls /proc/self/fd | tr '\\n' ' '; echo"
    command = fork_server.command().start(*sh(f"{script}; {STATUS}; env"), confinement=wrapped())
    command.tells(STARTED)

    none = "0" * 16
    assert command.line() == "2 1"
    assert int(command.line()) <= 4
    assert command.line() == "0 1 2 3 "
    assert command.line() == f"CapEff:{none}CapBnd:{none}NoNewPrivs:1Seccomp:2"
    variables = set(read_to_end(command.stdout).decode().split())
    assert variables - {"PWD=/", "OLDPWD=/", "SHLVL=0", "_=/usr/bin/env"} == {f"PATH={PATH}", command.mark}
    assert command.ended() == (0, ALONE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_to_the_group_is_the_commands_to_handle(
    fork_server: ForkServer, wrapped: Confine, number: signal.Signals
) -> None:
    """In the reference it ends the whole sandbox."""
    script = f"trap 'echo got; exit 5' {number.name[3:]}; echo ready; while :; do sleep 0.01; done"
    command = fork_server.command().start(*sh(script), confinement=wrapped())
    started = command.tells(STARTED)
    assert command.line() == "ready"

    os.killpg(started.value, number)

    assert command.line() == "got"
    assert command.ended() == (5, ALONE)


def test_killing_the_group_ends_everything(fork_server: ForkServer, wrapped: Confine) -> None:
    command = fork_server.command().start(*sh("setsid sleep 1000 & echo ready; cat"), confinement=wrapped())
    started = command.tells(STARTED)
    assert command.line() == "ready"
    family = command.members()

    os.killpg(started.value, signal.SIGKILL)

    assert command.ended()[0] == signal.SIGKILL
    for pid in family:
        has_ended(pid)


@pytest.mark.parametrize("way", ["kill", "hang up"])
def test_a_tree_in_bubblewrap_is_ended_whole(fork_server: ForkServer, wrapped: Confine, way: str) -> None:
    command = fork_server.command().start(
        *sh("(setsid sleep 1000 &) ; echo ready; cat"), confinement=wrapped()
    )
    command.tells(STARTED)
    assert command.line() == "ready"
    family = command.members()
    assert len(family) >= 2

    if way == "kill":
        command.kill()
        assert (command.tells(EXITED).value, command.tells(EMPTY).what) == (signal.SIGKILL, EMPTY)
    else:
        command.hang_up()

    for pid in family:
        has_ended(pid)


def test_a_command_in_bubblewrap_has_its_terminal(fork_server: ForkServer, wrapped: Confine) -> None:
    ours, theirs = os.openpty()
    command = fork_server.command().start(
        *sh("test -t 0 && test -t 1 && echo both; read line; echo got $line"),
        terminal=theirs,
        confinement=wrapped(),
    )
    command.tells(STARTED)
    read_until(ours, b"both")
    os.write(ours, b"words\n")
    read_until(ours, b"got words")

    assert command.ended() == (0, ALONE)
    os.close(ours)
    os.close(theirs)


def test_limits_are_the_commands_own_and_not_bubblewraps(fork_server: ForkServer, wrapped: Confine) -> None:
    """With five descriptors there could be no sandbox."""
    limits = [(resource.RLIMIT_NOFILE, 5, 5)]
    command = fork_server.command().start(*sh("ulimit -n"), limits=limits, confinement=wrapped())
    command.tells(STARTED)

    assert command.line() == "5"
    assert command.ended() == (0, ALONE)


def program_file(work: Path, text: bytes) -> str:
    path = work / "program"
    path.write_bytes(text)
    path.chmod(0o755)
    return str(path)


def failure(command: Command) -> tuple[int, int]:
    report = command.tells(FAILED)
    assert command.told() is None
    return report.detail, report.value


@pytest.mark.parametrize(
    ("argv", "options", "stage", "number"),
    [
        (["/none/such"], {}, AT_PROGRAM, errno.ENOENT),
        (["/etc/passwd"], {}, AT_PROGRAM, errno.EACCES),
        (["none-such"], {"path": PATH}, AT_SEARCH, errno.ENOENT),
        (["/bin/true"], {"cwd": "/none"}, AT_DIRECTORY, errno.ENOENT),
    ],
)
def test_what_is_wrong_without_bubblewrap_is_told_as_without_it(
    fork_server: ForkServer,
    wrapped: Confine,
    argv: list[str],
    options: dict[str, str],
    stage: int,
    number: int,
) -> None:
    command = fork_server.command().start(*argv, confinement=wrapped(MINIMAL), **options)  # type: ignore[arg-type]

    assert failure(command) == (stage, number)


def test_a_program_that_cannot_be_seen_inside_is_told_as_such(
    fork_server: ForkServer, wrapped: Confine, work: Path
) -> None:
    """And so is one whose interpreter cannot be."""
    there = program_file(work, b"#!/bin/sh\nexit 0\n")

    hidden = fork_server.command().start(there, confinement=wrapped(MINIMAL))
    half = fork_server.command().start(there, confinement=wrapped(SandboxEntry(str(work), READ)), cwd=work)

    assert failure(hidden) == (AT_HIDDEN, errno.ENOENT)
    assert failure(half) == (AT_HIDDEN, errno.ENOENT)


def test_a_directory_that_cannot_be_seen_inside_is_told_as_one(
    fork_server: ForkServer, wrapped: Confine, work: Path
) -> None:
    command = fork_server.command().start("/bin/true", cwd=work, confinement=wrapped(MINIMAL))

    assert failure(command) == (AT_DIRECTORY, errno.ENOENT)


def test_a_program_of_no_known_kind_is_told_as_without_a_sandbox(
    fork_server: ForkServer, wrapped: Confine, work: Path
) -> None:
    """The sandbox has nothing to do with it."""
    command = fork_server.command().start(program_file(work, b"\x7fnothing"), confinement=wrapped())

    assert failure(command) == (AT_PROGRAM, errno.ENOEXEC)


def test_what_bubblewrap_says_of_itself_is_on_the_standard_error(
    fork_server: ForkServer, wrapped: Confine
) -> None:
    confinement = replace(wrapped(), arguments=Held(_file(b"--bind\0/none/such\0/x\0")))

    command = fork_server.command().start("/bin/true", confinement=confinement)

    assert failure(command)[0] == AT_SANDBOX
    assert read_to_end(command.stderr).startswith(b"bwrap: ")


def test_a_bubblewrap_that_is_gone_is_a_sandbox_that_cannot_be_made(
    fork_server: ForkServer, wrapped: Confine
) -> None:
    command = fork_server.command().start("/bin/true", confinement=replace(wrapped(), wrapper=b"/none/bwrap"))

    assert failure(command) == (AT_SANDBOX, errno.ENOENT)


def test_many_commands_can_be_told_the_same_at_once(fork_server: ForkServer, wrapped: Confine) -> None:
    """They share one file of arguments, and each reads it from its beginning."""
    confinement = wrapped()
    commands = [
        fork_server.command().start(*sh(f"exit {number}"), confinement=confinement) for number in range(8)
    ]
    for command in commands:
        command.tells(STARTED)

    assert [command.ended()[0] for command in commands] == list(range(8))


def test_a_shim_keeps_nothing_of_bubblewrap_for_the_next_command(
    fork_server: ForkServer, wrapped: Confine
) -> None:
    """Neither files nor rights."""
    command = fork_server.command()
    counts = []
    for confinement in (None, wrapped(), None, wrapped(), None):
        command.start(*sh("grep '^Seccomp:' /proc/self/status"), confinement=confinement)
        shim = command.tells(STARTED).shim
        assert command.line() == f"Seccomp:\t{0 if confinement is None else 2}" or os.getuid() != 0
        command.ended()
        counts.append(len(os.listdir(f"/proc/{shim}/fd")))

    assert len(set(counts)) == 1


def test_a_shim_that_is_killed_takes_the_sandbox_with_it(fork_server: ForkServer, wrapped: Confine) -> None:
    command = fork_server.command().start(
        *sh("(setsid sleep 1000 &); echo ready; cat"), confinement=wrapped()
    )
    started = command.tells(STARTED)
    assert command.line() == "ready"
    family = command.members()

    os.kill(started.shim, signal.SIGKILL)

    for pid in family:
        has_ended(pid)
    assert command.told() is None
