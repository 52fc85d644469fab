"""The fork server and its shims, at the level of their messages."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.host.sandbox.confinement import Confinement
from tests.fakes.fork_server import (
    ALONE,
    AT_DIRECTORY,
    AT_FORK,
    AT_GROUP,
    AT_LIMIT,
    AT_NO_GROUP,
    AT_PROGRAM,
    AT_SEARCH,
    AT_TERMINAL,
    BY_SIGNAL,
    EMPTY,
    EXITED,
    FAILED,
    GUARD,
    PYTHON,
    START,
    STARTED,
    Command,
    ForkServer,
    Report,
    order,
    sh,
)
from tests.fakes.process import blocked_signals, ignored_signals, read_until

# A hang is cut off; nothing here is measured.
pytestmark = pytest.mark.timeout(2 * GUARD)


# Starting and ending.


@pytest.mark.parametrize(
    ("script", "value", "detail"),
    [
        ("exit 0", 0, ALONE),
        ("exit 7", 7, ALONE),
        ("kill -KILL $$", signal.SIGKILL, BY_SIGNAL | ALONE),
        ("exec 3<&0; cat <&3 & exit 7", 7, 0),
        ("exec 3<&0; cat <&3 & kill -TERM $$", signal.SIGTERM, BY_SIGNAL),
    ],
)
def test_it_tells_how_a_command_ended(command: Command, script: str, value: int, detail: int) -> None:
    """A code and a signal are different answers; so is whether anybody was left behind."""
    command.start(*sh(f"echo $$ $PPID; {script}"))

    started, said, exited = command.tells(STARTED), command.line(), command.tells(EXITED)
    command.release()
    command.close_stdin()
    empty = command.tells(EMPTY)

    assert said == f"{started.value} {started.shim}"
    assert started == Report(STARTED, started.value, 0, started.shim, 0, 0, 0)
    assert exited[:4] == (EXITED, value, detail, 0)
    assert empty[:4] == (EMPTY, 0, 0, 0)


BURN = """if True:
    import os, sys, time
    x = b"x" * (32 << 20)
    if not os.fork():
        x = b"x" * (64 << 20)
        sys.stdin.read()
    while time.process_time() < 0.1: pass
"""


def test_it_tells_what_was_used_by_all(command: Command) -> None:
    """Who pays for a command pays for what it left running too."""
    command.start(*PYTHON, "-c", BURN)

    command.tells(STARTED)
    exited = command.tells(EXITED)
    command.release()
    command.close_stdin()
    empty = command.tells(EMPTY)

    assert exited.user_us + exited.system_us >= 100_000
    assert exited.peak_kib >= 32 << 10
    assert empty.user_us + empty.system_us >= exited.user_us + exited.system_us + 100_000
    assert empty.peak_kib >= 64 << 10


def test_a_large_request_comes_in_a_file(command: Command) -> None:
    """A message has a bound that the environment of a build does not keep."""
    sizes = {"A": 100_000, "B": 100_001, "C": 100_002}
    environment = {name: name * size for name, size in sizes.items()}
    command.start(*sh("echo ${#A} ${#B} ${#C}; read _"), env=environment, in_file=True)

    started = command.tells(STARTED)

    assert command.line() == "100000 100001 100002"
    assert len(os.listdir(f"/proc/{started.shim}/fd")) == 4
    assert "memfd:" not in Path(f"/proc/{started.shim}/maps").read_text(encoding="utf-8")


def test_limits_are_the_commands_own(command: Command) -> None:
    """The server needs more files than a command should have."""
    command.start(*sh("ulimit -Sn; ulimit -Hn"), limits=[(resource.RLIMIT_NOFILE, 64, 128)])

    started = command.tells(STARTED)

    assert (command.line(), command.line()) == ("64", "128")
    assert resource.prlimit(started.shim, resource.RLIMIT_NOFILE) == resource.getrlimit(
        resource.RLIMIT_NOFILE
    )


def test_the_fork_server_may_have_a_limit_of_files_that_everybody_inherits(compiled: str) -> None:
    """The server raises its own limit; programs that use select must not see that."""
    fork_server = ForkServer((compiled, "100", "200"))
    command = fork_server.command().start(*sh("ulimit -Sn; ulimit -Hn"))

    said = command.line(), command.line()
    fork_server.close()

    assert said == ("100", "200")


def test_the_fork_server_keeps_none_of_the_servers_files(fork_server: ForkServer) -> None:
    """It would keep a client's connection open after the server has closed it."""
    files = os.listdir(f"/proc/{fork_server.pid}/fd")

    assert sorted(files) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("arguments", [("1",), ("1", "2", "3")])
def test_it_refuses_arguments_that_it_does_not_know(compiled: str, arguments: tuple[str, ...]) -> None:
    """Else a server of another version would run without its limits."""
    ran = subprocess.run([compiled, *arguments], check=False, capture_output=True)

    assert (ran.returncode, ran.stderr[:18]) == (2, b"usage: fork_server")


def test_an_empty_argument_and_a_repeated_variable_arrive(command: Command) -> None:
    """What the client names is what the program gets, also where Python has another opinion."""
    source = "tr '\\0' '\\n' </proc/$$/environ"
    command.start("", "-c", source, name="/bin/sh", env={"TREE": "first"})

    command.tells(STARTED)

    assert (command.line(), command.line()) == ("TREE=first", command.mark)


# Failing to start.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with programs of one name: in it, and in ``bin``; and a file that is none."""
    (tmp_path / "bin").mkdir()
    for place in (tmp_path, tmp_path / "bin"):
        (place / "tool").write_text(f"#!/bin/sh\necho {place.name} $PWD\n", encoding="utf-8")
        (place / "tool").chmod(0o755)
    (tmp_path / "plain").write_text("", encoding="utf-8")
    return tmp_path


def start_in(place: Path, command: Command) -> None:
    """Hand over what is there in place of a terminal."""
    with place.open("rb") as file:
        command.start("/bin/true", terminal=file.fileno())


Starts = Callable[[Command, Path], object]

FAILURES: dict[str, tuple[Starts, int, int]] = {
    "no program": (lambda c, f: c.start(str(f / "none")), AT_PROGRAM, errno.ENOENT),
    "not executable": (lambda c, f: c.start(str(f / "plain")), AT_PROGRAM, errno.EACCES),
    "not in PATH": (lambda c, f: c.start("none", path=f"{f}:/none"), AT_SEARCH, errno.ENOENT),
    "in PATH not executable": (lambda c, f: c.start("plain", path=f"{f}:/none"), AT_SEARCH, errno.EACCES),
    "a folder in PATH": (lambda c, f: c.start("bin", path=str(f)), AT_SEARCH, errno.EACCES),
    "too long for PATH": (lambda c, f: c.start("x" * 4400, path="/none"), AT_SEARCH, errno.ENAMETOOLONG),
    "no directory": (lambda c, f: c.start("/bin/true", cwd=f / "none"), AT_DIRECTORY, errno.ENOENT),
    "not a directory": (lambda c, f: c.start("/bin/true", cwd=f / "plain"), AT_DIRECTORY, errno.ENOTDIR),
    "no terminal": (lambda c, f: start_in(f / "plain", c), AT_TERMINAL, errno.ENOTTY),
    "no group": (lambda c, f: c.start("/bin/true", groups=[f"{f}/none"]), AT_GROUP, errno.ENOENT),
    "bad limit": (lambda c, f: c.start("/bin/true", limits=[(7, 2, 1)]), AT_LIMIT, errno.EINVAL),
    "too many files": (lambda c, f: c.send(order(START), *[0] * 11), AT_FORK, errno.EMFILE),
    "no files": (
        lambda c, f: c.send(order(START, counts=(1, 0, 0, 0), size=6) + b"/\0x\0x\0"),
        AT_FORK,
        errno.EBADF,
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_start_says_where_and_why(
    fork_server: ForkServer, other: Command, folder: Path, case: str
) -> None:
    """Each becomes another sentence to the client; the shim ends, and nobody else notices."""
    start, stage, number = FAILURES[case]
    command = fork_server.command()

    start(command, folder)

    assert command.told() == Report(FAILED, number, stage, 0, 0, 0, 0)
    assert command.told() is None
    assert other.echoes()


NO_GROUPS = {
    "a directory": ("group", AT_NO_GROUP, 0),
    "a link to one": ("link", AT_GROUP, errno.ENOTDIR),
    "the file itself": ("group/cgroup.procs", AT_GROUP, errno.ENOTDIR),
    "a directory with a pipe": ("pipes", AT_NO_GROUP, 0),
}


@pytest.fixture
def no_groups(tmp_path: Path) -> Path:
    """What looks like control groups, and lies on an ordinary disk."""
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "cgroup.procs").write_text("whole")
    (tmp_path / "link").symlink_to("group")
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "cgroup.procs")
    return tmp_path


@pytest.mark.parametrize("case", NO_GROUPS)
def test_what_is_no_control_group_is_not_written(
    fork_server: ForkServer, other: Command, no_groups: Path, case: str
) -> None:
    """An order only names a path, and the shim may be root."""
    name, stage, number = NO_GROUPS[case]
    command = fork_server.command().start("/bin/true", groups=[str(no_groups / name)])

    assert command.told() == Report(FAILED, number, stage, 0, 0, 0, 0)
    assert command.told() is None
    assert (no_groups / "group" / "cgroup.procs").read_text() == "whole"
    assert other.echoes()


@pytest.mark.parametrize("case", NO_GROUPS)
def test_what_is_no_control_group_is_not_handed_into_a_sandbox(
    fork_server: ForkServer, wrapped: Callable[..., Confinement], no_groups: Path, case: str
) -> None:
    name, stage, number = NO_GROUPS[case]
    groups = [str(no_groups / name)]
    command = fork_server.command().start("/bin/true", groups=groups, confinement=wrapped())

    assert command.told() == Report(FAILED, number, stage, 0, 0, 0, 0)
    assert (no_groups / "group" / "cgroup.procs").read_text() == "whole"


@pytest.mark.parametrize(
    ("path", "place"),
    [("bin", "bin"), ("", "."), ("/none:", "."), (":bin", "."), ("none:bin:", "bin"), ("bin/", "bin")],
)
def test_a_path_is_searched_as_seen_from_the_directory_of_the_command(
    command: Command, folder: Path, path: str, place: str
) -> None:
    """Relative and empty entries mean the command's directory, never the server's."""
    command.start("tool", cwd=folder, path=path)

    command.tells(STARTED)

    assert command.line() == f"{(folder / place).name} {folder}"


def test_what_cannot_be_run_is_passed_over_in_a_path(command: Command, folder: Path) -> None:
    """A shell does the same: the next entry may have the program."""
    (folder / "tool").chmod(0o644)
    command.start("tool", cwd=folder, path=f"{folder}:bin")

    command.tells(STARTED)

    assert command.line() == f"bin {folder}"


# What a command is born with.


def test_a_command_has_three_files_and_hears_every_signal(command: Command) -> None:
    """A leaked descriptor keeps a pipe open for ever; an ignored signal cannot be sent."""
    started = command.start("/bin/cat").tells(STARTED)
    assert command.echoes()

    files = set(os.listdir(f"/proc/{started.value}/fd"))

    assert files == {"0", "1", "2"}
    assert ignored_signals(started.value) == set()
    assert blocked_signals(started.value) == set()
    assert os.getsid(started.value) == started.value


def test_without_stdin_a_command_reads_nothing(command: Command) -> None:
    """Else it would wait for input that nobody can send."""
    ours, theirs = os.pipe()
    body = b"/\0/bin/cat\0cat\0"
    command.send(order(START, counts=(1, 0, 0, 0), size=len(body)) + body, theirs, theirs)
    os.close(theirs)

    command.tells(STARTED)

    assert command.tells(EXITED)[:3] == (EXITED, 0, ALONE)
    os.close(ours)


def test_a_terminal_becomes_the_commands_own(command: Command) -> None:
    """Job control and Ctrl-C need a session leader with a controlling terminal."""
    source = """if True:
        import os
        ids = {os.getpid(), os.getsid(0), os.tcgetpgrp(0)}
        names = {os.ttyname(fd) for fd in (0, 1, 2)}
        os.close(os.open("/dev/tty", os.O_RDWR))
        print(len(ids), *names, sorted(os.listdir("/proc/self/fd")), "done", flush=True)
        input()"""
    ours, theirs = os.openpty()
    name = os.ttyname(theirs)

    command.start(*PYTHON, "-c", source, terminal=theirs)
    command.tells(STARTED)
    said = read_until(ours, b"done")
    os.close(theirs)
    os.close(ours)

    # The fourth is the listing.
    assert said.decode().strip() == f"1 {name} ['0', '1', '2', '3'] done"
