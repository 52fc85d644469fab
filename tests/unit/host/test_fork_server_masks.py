"""Directories that are there only for a sandbox to be mounted on: taken, shared, and always taken away."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.host.sandbox.confinement import Confinement
from holdfast.sandbox import Access, Named, SandboxEntry, Where
from tests.fakes.fork_server import (
    AT_PROGRAM,
    AT_SANDBOX,
    EMPTY,
    EXITED,
    FAILED,
    GUARD,
    STARTED,
    Command,
    ForkServer,
    has_ended,
    sh,
    until,
)
from tests.fakes.process import read_to_end, status

pytestmark = pytest.mark.timeout(2 * GUARD)

ROOT = SandboxEntry(Named(Where.ROOT), Access.READ)
NAMES = [".agents", ".aws", ".codex", ".git"]

Confine = Callable[..., Confinement]


@pytest.fixture
def confinement(wrapped: Confine, work: Path) -> Confinement:
    """Of a workspace in which nothing is."""
    return wrapped(ROOT, SandboxEntry(str(work), Access.WRITE))


def holding(
    fork_server: ForkServer, confinement: Confinement, work: Path, script: str = "echo ready; cat"
) -> Command:
    """A command that runs until its input ends."""
    command = fork_server.command().start(*sh(script), cwd=work, confinement=confinement)
    command.tells(STARTED)
    assert command.line() == "ready"
    return command


def test_a_name_that_is_not_there_cannot_come_into_being(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    """From outside it is an empty directory as long as the command runs, and then it is gone."""
    script = (
        "mkdir .git 2>&1; touch .git/x 2>&1; rmdir .git 2>&1; mv .git y 2>&1; ls -a .git; echo ready; cat"
    )
    command = fork_server.command().start(*sh(script), cwd=work, confinement=confinement)
    command.tells(STARTED)
    said = [command.line() for _ in range(4)]
    listed = [command.line(), command.line()]

    assert command.line() == "ready"
    assert "File exists" in said[0]
    assert "Read-only file system" in said[1]
    assert "busy" in said[2]
    assert "busy" in said[3]
    assert listed == [".", ".."]
    assert sorted(os.listdir(work)) == NAMES
    assert {stat.S_IMODE(os.stat(work / name).st_mode) for name in NAMES} == {0o1555}

    command.close_stdin()
    command.ended()
    assert os.listdir(work) == []


def test_whoever_hears_of_the_exit_finds_everything_as_it_was(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    """The next thing a client does may be to run git there."""
    command = holding(fork_server, confinement, work)

    command.close_stdin()
    command.tells(EXITED)

    assert os.listdir(work) == []


def test_two_commands_share_them_and_the_last_takes_them_away(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    first, second = holding(fork_server, confinement, work), holding(fork_server, confinement, work)

    first.close_stdin()
    first.ended()
    between = sorted(os.listdir(work))
    os.write(second.stdin, b"still\n")
    assert second.line() == "still"
    second.close_stdin()
    second.ended()

    assert (between, os.listdir(work)) == (NAMES, [])


def test_a_command_that_starts_while_others_run_is_kept_from_them_too(
    fork_server: ForkServer, wrapped: Confine, work: Path
) -> None:
    """What is there is the mask of another's, and goes away with it."""
    entries = ROOT, SandboxEntry(str(work), Access.WRITE)
    first = holding(fork_server, wrapped(*entries), work)
    second = holding(
        fork_server,
        wrapped(*entries),
        work,
        "echo ready; read go; mkdir .git 2>/dev/null && echo made; touch .git/x; cat",
    )

    first.close_stdin()
    first.ended()
    os.write(second.stdin, b"go\n")
    second.close_stdin()
    second.ended()

    assert os.listdir(work) == []


@pytest.mark.parametrize("way", ["command", "group", "tree", "hang up", "wrapper"])
def test_nothing_is_left_however_the_command_ends(
    fork_server: ForkServer, confinement: Confinement, work: Path, way: str
) -> None:
    """The reference leaves four empty directories behind."""
    command = fork_server.command().start(
        *sh("(setsid sleep 1000 &); echo ready; cat"), cwd=work, confinement=confinement
    )
    started = command.tells(STARTED)
    assert command.line() == "ready"
    family = command.members()
    assert sorted(os.listdir(work)) == NAMES

    match way:
        case "command":
            (leader,) = [pid for pid in family if status(pid)["NSpid"].split()[-1] == "2"]
            os.kill(leader, signal.SIGKILL)
            assert command.ended()[0] == signal.SIGKILL
        case "group":
            os.killpg(started.value, signal.SIGKILL)
            assert command.ended()[0] == signal.SIGKILL
        case "wrapper":
            os.kill(started.value, signal.SIGKILL)
            command.ended()
        case "tree":
            command.kill()
            command.tells(EXITED)
            command.tells(EMPTY)
        case "hang up":
            command.hang_up()
    for pid in family:
        has_ended(pid)

    until(lambda: os.listdir(work) == [])


def test_what_a_killed_shim_left_the_next_command_takes_away(
    fork_server: ForkServer, confinement: Confinement, wrapped: Confine, work: Path
) -> None:
    """Nobody has a lock on it any more."""
    command = fork_server.command().start(*sh("echo ready; cat"), cwd=work, confinement=confinement)
    started = command.tells(STARTED)
    assert command.line() == "ready"
    family = command.members()
    os.kill(started.shim, signal.SIGKILL)
    for pid in family:
        has_ended(pid)
    assert sorted(os.listdir(work)) == NAMES

    anew = wrapped(ROOT, SandboxEntry(str(work), Access.WRITE))
    assert anew.masks == confinement.masks
    holding(fork_server, anew, work, "echo ready").ended()

    assert os.listdir(work) == []


def test_a_start_that_fails_leaves_nothing(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    command = fork_server.command().start("/none/such", cwd=work, confinement=confinement)

    assert command.tells(FAILED).detail == AT_PROGRAM
    assert os.listdir(work) == []


# What is somebody else's.


def test_an_empty_directory_of_somebody_elses_stays(
    fork_server: ForkServer, wrapped: Confine, work: Path
) -> None:
    """It looks like nothing, but somebody has made it."""
    (work / ".git").mkdir(mode=0o555)
    inode = (work / ".git").stat().st_ino
    confinement = wrapped(ROOT, SandboxEntry(str(work), Access.WRITE))

    command = holding(fork_server, confinement, work, "touch .git/x 2>/dev/null || echo ready; cat")
    command.close_stdin()
    command.ended()

    assert os.listdir(work) == [".git"]
    assert (work / ".git").stat().st_ino == inode


def test_a_directory_that_somebody_made_in_the_meantime_stays(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    """It is covered as if it were not there: the sandbox was made when it was not."""
    (work / ".git").mkdir()
    (work / ".git" / "config").touch()

    command = holding(fork_server, confinement, work, "touch .git/x 2>/dev/null || echo ready; cat")
    command.close_stdin()
    command.ended()

    assert [str(path.relative_to(work)) for path in sorted(work.rglob("*"))] == [".git", ".git/config"]


def test_an_empty_directory_that_somebody_made_in_the_meantime_stays(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    (work / ".git").mkdir()

    command = holding(fork_server, confinement, work)
    command.close_stdin()
    command.ended()

    assert os.listdir(work) == [".git"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_that_somebody_made_in_the_meantime_stays_and_nothing_runs(
    fork_server: ForkServer, confinement: Confinement, work: Path, kind: str
) -> None:
    """There can be no such sandbox; the next attempt makes another one."""
    if kind == "file":
        (work / ".git").write_text("gitdir: elsewhere")
    else:
        (work / ".git").symlink_to("/none/such")

    command = fork_server.command().start(*sh("touch ran"), cwd=work, confinement=confinement)

    report = command.told()
    if report is not None and report.what == FAILED:
        assert report.detail == AT_SANDBOX
        assert read_to_end(command.stderr).startswith(b"bwrap: ")
        assert os.listdir(work) == [".git"]
    else:  # It is covered in some other way, which is as good.
        command.ended()
        assert sorted(os.listdir(work)) in ([".git"], [".git", "ran"])
    assert not (work / ".git").is_dir()


def test_what_somebody_puts_in_the_place_of_a_mask_stays(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    """From outside one can take it away and put a real one there, while the command runs."""
    command = holding(fork_server, confinement, work)
    (work / ".git").rename(work / "moved")
    (work / ".git").mkdir()
    (work / ".git" / "config").touch()

    command.close_stdin()
    command.ended()

    assert (work / ".git" / "config").exists()


def test_an_empty_directory_in_the_place_of_a_mask_stays(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    """Also before the first file is in it."""
    command = holding(fork_server, confinement, work)
    (work / ".git").rename(work / "moved")
    (work / ".git").mkdir()

    command.close_stdin()
    command.ended()

    assert (work / ".git").is_dir()


def test_many_commands_at_once_leave_nothing(
    fork_server: ForkServer, confinement: Confinement, work: Path
) -> None:
    """Each takes and gives the same directories."""
    commands = [
        fork_server.command().start(*sh(f"exit {number}"), cwd=work, confinement=confinement)
        for number in range(12)
    ]
    for command in commands:
        command.tells(STARTED)

    assert [command.ended()[0] for command in commands] == list(range(12))
    assert os.listdir(work) == []
