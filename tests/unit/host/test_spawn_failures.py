"""What a start that fails says, and that it leaves nothing behind."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.errors import Fault, ProgramSearch, SpawnFailed
from holdfast.host.environ import Environment
from holdfast.host.limits import Group, Groups
from holdfast.host.shim import ForkServer
from holdfast.host.spawn import Spawner
from holdfast.model import Limits, ProcessTerms, Size, Spec
from holdfast.reports import News
from tests.fakes.process import (
    PATH,
    TERMINAL,
    Ran,
    command,
    descriptors,
    nothing_left_open,
    open_files,
    run,
    started,
    wait_news,
)

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])


@dataclass(frozen=True)
class Failure:
    """The facts of a ``SpawnFailed``."""

    fault: Fault
    subject: str
    number: int | None
    search: ProgramSearch | None = None


def failure(spec: Spec, spawner: Spawner | None = None) -> Failure:
    """Start what cannot be started; nothing may be left of it."""
    with nothing_left_open(), pytest.raises(SpawnFailed) as caught, started(spec, spawner):
        pytest.fail("it was started")
    error = caught.value
    assert error.terminal == (spec.terminal is not None)
    if error.number is not None:
        assert error.reason == os.strerror(error.number)
    assert str(error) == f"cannot start: {error.fault.value} {error.subject!r}: {error.reason}"
    return Failure(error.fault, error.subject, error.number, error.search)


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


# The program.


@BOTH
def test_a_missing_program_is_named_with_where_it_was_looked_for(terminal: Size | None) -> None:
    found = failure(command("no-such-program", terminal=terminal))

    assert found == Failure(Fault.PROGRAM, "no-such-program", errno.ENOENT, ProgramSearch(PATH))


@pytest.mark.parametrize("path", ["", "/nowhere"])
@BOTH
def test_an_empty_or_wrong_path_finds_nothing(terminal: Size | None, path: str) -> None:
    found = failure(command("true", env={"PATH": path}, terminal=terminal))

    assert found == Failure(Fault.PROGRAM, "true", errno.ENOENT, ProgramSearch(path))


def test_without_a_path_a_terminals_program_is_not_found() -> None:
    """Over pipes a standard PATH stands in; a terminal's child is searched for in its own only."""
    found = failure(command("true", env={}, terminal=TERMINAL))

    assert found == Failure(Fault.PROGRAM, "true", errno.ENOENT, ProgramSearch(None))


@BOTH
def test_a_missing_program_given_by_its_path_was_not_looked_for(terminal: Size | None) -> None:
    found = failure(command("/no/such/program", terminal=terminal))

    assert found == Failure(Fault.PROGRAM, "/no/such/program", errno.ENOENT)


@BOTH
def test_a_program_that_is_not_executable_is_told(tmp_path: Path, terminal: Size | None) -> None:
    path = script(tmp_path / "text", "#!/bin/sh\n", 0o644)

    assert failure(command(path, terminal=terminal)) == Failure(Fault.PROGRAM, path, errno.EACCES)


@BOTH
def test_a_program_in_path_that_is_not_executable_is_told(tmp_path: Path, terminal: Size | None) -> None:
    script(tmp_path / "text", "#!/bin/sh\n", 0o644)
    found = failure(command("text", env={"PATH": str(tmp_path)}, terminal=terminal))

    assert found == Failure(Fault.PROGRAM, "text", errno.EACCES, ProgramSearch(str(tmp_path)))


@BOTH
def test_a_directory_is_no_program(tmp_path: Path, terminal: Size | None) -> None:
    found = failure(command(str(tmp_path), terminal=terminal))

    assert found == Failure(Fault.PROGRAM, str(tmp_path), errno.EACCES)


@pytest.mark.parametrize("text", ["echo hello\n", "", "#!\n", "\x7fELF broken"])
@BOTH
def test_a_file_that_is_no_program_is_not_given_to_a_shell(
    tmp_path: Path, terminal: Size | None, text: str
) -> None:
    """No shell is put between the client and its program, also not where execvp would."""
    path = script(tmp_path / "file", text)

    assert failure(command(path, terminal=terminal)) == Failure(Fault.PROGRAM, path, errno.ENOEXEC)


@BOTH
def test_a_script_whose_interpreter_is_missing_is_the_programs_fault(
    tmp_path: Path, terminal: Size | None
) -> None:
    path = script(tmp_path / "file", "#!/no/such/interpreter\n")

    assert failure(command(path, terminal=terminal)) == Failure(Fault.PROGRAM, path, errno.ENOENT)


@BOTH
def test_a_program_below_a_file_is_told(tmp_path: Path, terminal: Size | None) -> None:
    path = script(tmp_path / "file", "") + "/below"

    assert failure(command(path, terminal=terminal)) == Failure(Fault.PROGRAM, path, errno.ENOTDIR)


@BOTH
def test_an_empty_name_is_no_program(terminal: Size | None) -> None:
    assert failure(command("", "x", terminal=terminal)) == Failure(Fault.PROGRAM, "", None)


# The directory.


@BOTH
@pytest.mark.parametrize("program", ["true", "/bin/true", "./true", "no-such-program"])
def test_a_missing_directory_is_told_apart_from_a_missing_program(
    terminal: Size | None, program: str
) -> None:
    """The system has one number for both; a client should not have to guess."""
    found = failure(command(program, cwd="/no/such/directory", terminal=terminal))

    assert found == Failure(Fault.DIRECTORY, "/no/such/directory", errno.ENOENT)


@BOTH
def test_a_file_is_no_directory(tmp_path: Path, terminal: Size | None) -> None:
    path = script(tmp_path / "file", "")

    found = failure(command("/bin/true", cwd=path, terminal=terminal))

    assert found == Failure(Fault.DIRECTORY, path, errno.ENOTDIR)


@BOTH
@pytest.mark.parametrize("path", [PATH, ""])
def test_a_directory_with_a_nul_is_refused_and_not_cut(terminal: Size | None, path: str) -> None:
    """Cut at the NUL it would be another directory, in which the program must not run."""
    found = failure(command("true", cwd="/tmp\0x", env={"PATH": path}, terminal=terminal))

    assert (found.fault, found.subject) == (Fault.DIRECTORY, "/tmp\0x")


# Arguments and variables.


@pytest.mark.parametrize("argv", [("true", "a\0b"), ("tr\0ue",), ("/bin/true", "\0")])
@BOTH
def test_a_nul_in_an_argument_is_told(terminal: Size | None, argv: tuple[str, ...]) -> None:
    assert failure(command(*argv, terminal=terminal)) == Failure(Fault.ARGUMENT, "argv", None)


@BOTH
def test_a_nul_in_the_name_of_the_child_is_told(terminal: Size | None) -> None:
    found = failure(command("true", arg0="a\0b", terminal=terminal))

    assert found == Failure(Fault.ARGUMENT, "argv", None)


@pytest.mark.parametrize("env", [{"A": "x\0y"}, {"A\0": "x"}, {"PATH": "/bin\0"}])
@BOTH
def test_a_nul_in_a_variable_is_told(terminal: Size | None, env: dict[str, str]) -> None:
    assert failure(command("true", env=env, terminal=terminal)) == Failure(Fault.ARGUMENT, "env", None)


@BOTH
def test_text_that_stands_for_no_bytes_is_refused(terminal: Size | None) -> None:
    """A lone surrogate outside the range that carries bytes has no encoding."""
    for spec in (
        command("true", "\ud800", terminal=terminal),
        command("true", env={"PATH": PATH, "A": "\ud800"}, terminal=terminal),
    ):
        assert failure(spec).fault is Fault.ARGUMENT


LONGEST = 131_071
"""Bytes in one argument, by the kernel's count."""


@BOTH
def test_the_longest_argument_is_passed(terminal: Size | None) -> None:
    assert run(command("true", "x" * LONGEST, terminal=terminal)) == Ran(0)


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        (("true", "x" * (LONGEST + 1)), {"PATH": PATH}),
        (("true", *["x" * 120_000] * 20), {"PATH": PATH}),
        (("true",), {"PATH": PATH, "A": "x" * LONGEST}),
    ],
    ids=["argument", "sum", "variable"],
)
@BOTH
def test_arguments_that_are_too_long_are_told_apart_from_the_program(
    terminal: Size | None, argv: tuple[str, ...], env: dict[str, str]
) -> None:
    found = failure(command(*argv, env=env, terminal=terminal))

    assert found == Failure(Fault.ARGUMENT, "argv and env", errno.E2BIG)


# The host.


@contextmanager
def few_descriptors(spare: int) -> Iterator[None]:
    """Allow ourselves only so many more descriptors, and fill the gaps between those we have."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(open_files()) + 1
    fillers = []
    while (fd := os.open("/", os.O_RDONLY)) < most:
        fillers.append(fd)
    os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + spare, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in fillers:
            os.close(fd)


def closed(spawner: Spawner, spec: Spec) -> None:
    """Have it started, and end it."""
    child = spawner.start(spec)
    assert wait_news(child).news is News.STARTED
    child.close()
    for fd in descriptors(child):
        os.close(fd)


# Three for a terminal or six for three pipes, then both ends of a shim's socket and of the fork server's.
NEEDED = [(3 + 4, TERMINAL), (6 + 4, None)]


@pytest.mark.parametrize(
    ("spare", "terminal"), [(spare, terminal) for most, terminal in NEEDED for spare in range(most)]
)
def test_a_host_without_descriptors_is_told_and_nothing_is_left(spare: int, terminal: Size | None) -> None:
    """Whichever of the descriptors cannot be had, those before it are given back; later it works again."""
    spec = command("/bin/true", terminal=terminal, stdin=True)
    with nothing_left_open():
        spawner = Spawner(Environment({}))
        with few_descriptors(spare), pytest.raises(SpawnFailed) as caught:
            spawner.start(spec)
        closed(spawner, spec)
        spawner.close()

    assert (caught.value.fault, caught.value.number) == (Fault.SYSTEM, errno.EMFILE)
    assert caught.value.terminal == (terminal is not None)


@pytest.mark.parametrize(("spare", "terminal"), NEEDED)
def test_with_one_more_descriptor_the_last_test_would_have_started_a_child(
    spare: int, terminal: Size | None
) -> None:
    """If a child needed more, it would have tested something else."""
    with nothing_left_open():
        spawner = Spawner(Environment({}))
        with few_descriptors(spare):
            closed(spawner, command("true", terminal=terminal, stdin=True))
        spawner.close()


def test_without_a_descriptor_for_a_long_order_the_shim_is_given_up() -> None:
    """It waits for an order that will never come."""
    spec = command("true", "x" * 100_000)
    with nothing_left_open():
        fork_server = ForkServer()
        fork_server.prepare()
        spawner = Spawner(Environment({}), fork_server)
        with few_descriptors(4), pytest.raises(SpawnFailed) as caught:  # The pipes.
            spawner.start(spec)
        closed(spawner, spec)
        spawner.close()

    assert (caught.value.fault, caught.value.number) == (Fault.SYSTEM, errno.EMFILE)


def test_without_descriptors_for_a_spare_shim_a_start_is_no_failure() -> None:
    """Whoever needs it will be told."""
    with nothing_left_open():
        fork_server = ForkServer()
        fork_server.prepare()
        spawner = Spawner(Environment({}), fork_server)
        with few_descriptors(4):
            closed(spawner, command("true"))
        spawner.close()


def test_without_a_fork_server_the_host_is_at_fault() -> None:
    """Nothing that the client asked for is wrong; whoever runs the server is told what is missing."""
    with nothing_left_open():
        spawner = Spawner(Environment({}), ForkServer(program="/nowhere/fork_server"))
        with pytest.raises(SpawnFailed) as caught:
            spawner.start(command("true"))
        spawner.close()

    assert (caught.value.fault, caught.value.subject) == (Fault.SYSTEM, "host")
    assert "/nowhere/fork_server cannot be run: No such file or directory" in caught.value.reason
    assert "install holdfast again" in caught.value.reason


def test_a_group_that_cannot_be_entered_is_the_hosts_fault_and_removed(tmp_path: Path) -> None:
    """A child outside its group would have no limit."""
    groups = FakedGroups(tmp_path)
    spawner = Spawner(Environment({}), groups=groups)
    spec = Spec(argv=["/bin/true"], cwd="/", env={}, terms=ProcessTerms(limits=Limits(processes=1)))

    found = failure(spec, spawner)

    assert found == Failure(Fault.SYSTEM, "control group", None)
    assert os.listdir(tmp_path) == []


class FakedGroups(Groups):
    """Makes plain directories, which nobody can enter."""

    def __init__(self, root: Path) -> None:
        super().__init__({"pids": str(root)})
        self._root = root

    def make(self, limits: Limits) -> Group:
        path = self._root / "group"
        path.mkdir()
        return Group([str(path)])
