"""Commands in sandboxes, at the level of a fork server's messages: starting them and their ends."""

from __future__ import annotations

import errno
import os
import platform
import resource
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.host.sandbox.confinement import Confinement, Confiner, Held
from holdfast.host.sandbox.filter import MACHINES, program
from holdfast.sandbox import Access, Named, Protection, Sandbox, SandboxBackendName, SandboxEntry, Where
from tests.fakes.fork_server import (
    ALONE,
    AT_DIRECTORY,
    AT_HIDDEN,
    AT_PROGRAM,
    AT_SANDBOX,
    AT_SEARCH,
    CONFINED,
    FAILED,
    GUARD,
    PATH,
    RULESET,
    START,
    STARTED,
    STATUS,
    Command,
    order,
    sh,
)
from tests.fakes.process import read_to_end

pytestmark = pytest.mark.timeout(2 * GUARD)

Sandboxes = Callable[..., Confiner]

READ, WRITE = Access.READ, Access.WRITE
ROOT, MINIMAL = SandboxEntry(Named(Where.ROOT), READ), SandboxEntry(Named(Where.MINIMAL), READ)


def plain(sandboxes: Sandboxes, *entries: SandboxEntry) -> Confinement:
    """A confinement of Landlock without a witness, as on kernels that hand no calls over."""
    sandbox = Sandbox(entries or (ROOT,), network=False, cwd="/", least=Protection.NONE)
    return sandboxes(SandboxBackendName.LANDLOCK, witness=False).confine(sandbox, None)


# A filter, a ruleset, nothing that only root may.


def test_a_command_behind_a_filter_has_given_up_its_rights_for_good(
    command: Command, sandboxes: Sandboxes
) -> None:
    command.start(*sh(STATUS), confinement=plain(sandboxes))
    command.tells(STARTED)

    none = "0" * 16
    assert command.line() == f"CapEff:{none}CapBnd:{none}NoNewPrivs:1Seccomp:2" or os.getuid() != 0
    assert command.ended() == (0, ALONE)


def test_a_filter_alone_leaves_files_alone(command: Command, work: Path) -> None:
    machine = MACHINES[platform.machine()]
    confinement = Confinement(program(machine, network=False, witness=False, files=False, attributes=False))

    command.start(
        *sh("touch made; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status"),
        cwd=work,
        confinement=confinement,
    )
    command.tells(STARTED)

    assert [command.line(), command.line()] == ["NoNewPrivs:\t1", "Seccomp:\t2"]
    assert command.ended() == (0, ALONE)
    assert (work / "made").exists()


def test_a_command_writes_where_it_may_and_nowhere_else(
    command: Command, sandboxes: Sandboxes, work: Path
) -> None:
    confinement = plain(sandboxes, ROOT, SandboxEntry(str(work), WRITE))

    command.start(
        *sh("echo in > in; echo out 2>/dev/null > ../out || exit 7"), cwd=work, confinement=confinement
    )
    command.tells(STARTED)

    assert command.ended()[0] in (2, 7)
    assert os.listdir(work) == ["in"]
    assert os.listdir(work.parent) == ["work"]


@pytest.mark.parametrize("in_file", [False, True])
def test_a_sandbox_may_come_with_everything_else(
    command: Command, sandboxes: Sandboxes, work: Path, *, in_file: bool
) -> None:
    """Limits stand before the filter, texts behind it, the ruleset between the files."""
    limits = [(resource.RLIMIT_NOFILE, 64, 64), (resource.RLIMIT_CORE, 0, 0)]
    confinement = plain(sandboxes)

    command.start(
        *sh("ulimit -n; pwd; cat; echo err >&2"),
        name="sh",
        path=PATH,
        cwd=work,
        limits=limits,
        confinement=confinement,
        in_file=in_file,
    )
    command.tells(STARTED)
    os.write(command.stdin, b"in\n")
    command.close_stdin()

    assert [command.line() for _ in range(3)] == ["64", str(work), "in"]
    assert read_to_end(command.stderr) == b"err\n"
    assert command.ended() == (0, ALONE)


@pytest.mark.parametrize(
    ("argv", "options", "stage", "number"),
    [
        (["/none/such"], {}, AT_PROGRAM, errno.ENOENT),
        (["/etc/passwd"], {}, AT_PROGRAM, errno.EACCES),
        (["/usr"], {}, AT_PROGRAM, errno.EACCES),
        (["none-such"], {"path": PATH}, AT_SEARCH, errno.ENOENT),
        (["/bin/true"], {"cwd": "/none"}, AT_DIRECTORY, errno.ENOENT),
        (["/bin/true"], {"cwd": "/etc/passwd"}, AT_DIRECTORY, errno.ENOTDIR),
    ],
)
def test_what_is_wrong_without_a_sandbox_is_told_as_without_one(
    command: Command,
    sandboxes: Sandboxes,
    argv: list[str],
    options: dict[str, str],
    stage: int,
    number: int,
) -> None:
    """A program that is missing is not one that the sandbox hides."""
    command.start(*argv, confinement=plain(sandboxes, MINIMAL), **options)  # type: ignore[arg-type]

    assert command.tells(FAILED)[:3] == (FAILED, number, stage)
    assert command.told() is None


def test_a_program_that_only_the_sandbox_keeps_from_being_run_is_told_as_such(
    command: Command, sandboxes: Sandboxes, work: Path
) -> None:
    command.start("/bin/true", confinement=plain(sandboxes, SandboxEntry(str(work), WRITE)))

    assert command.tells(FAILED)[:3] == (FAILED, errno.EACCES, AT_HIDDEN)


def test_a_filter_that_the_kernel_does_not_take_is_a_sandbox_that_cannot_be_made(command: Command) -> None:
    """And nothing runs without it."""
    command.start("/bin/true", confinement=Confinement(struct.pack("=HBBI", 0xFFFF, 0, 0, 0)))

    assert command.tells(FAILED)[:3] == (FAILED, errno.EINVAL, AT_SANDBOX)


def test_a_ruleset_that_is_none_is_a_sandbox_that_cannot_be_made(
    command: Command, sandboxes: Sandboxes
) -> None:
    confinement = replace(plain(sandboxes), ruleset=Held(os.open("/dev/null", os.O_RDONLY)))

    command.start("/bin/true", confinement=confinement)

    report = command.tells(FAILED)
    assert (report.detail, report.value) in [(AT_SANDBOX, errno.EBADFD), (AT_SANDBOX, errno.EBADF)]


@pytest.mark.parametrize(
    ("flags", "size", "sandbox"),
    [
        (CONFINED, 0, (9, 0, 0)),
        (CONFINED, 0, (2**32 - 1, 0, 0)),
        (CONFINED, 0, (0, 2**31, 2**31)),
        (CONFINED | RULESET, 0, (0, 0, 0)),
    ],
)
def test_an_order_that_makes_no_sense_ends_its_shim_and_nobody_else(
    command: Command, other: Command, flags: int, size: int, sandbox: tuple[int, int, int]
) -> None:
    body = b"/\0/bin/true\0true\0"
    command.send(order(START, flags=flags, counts=(1, 0, 0, 0), size=len(body), sandbox=sandbox) + body)

    assert command.told() is None
    assert other.echoes()


@pytest.mark.parametrize("confined_first", [False, True])
def test_a_shim_keeps_nothing_of_one_command_for_the_next(
    command: Command, sandboxes: Sandboxes, *, confined_first: bool
) -> None:
    confiner = [plain(sandboxes), None] if confined_first else [None, plain(sandboxes)]
    said = []
    for confinement in confiner:
        command.start(*sh("grep '^Seccomp:' /proc/self/status"), confinement=confinement)
        command.tells(STARTED)
        said.append(command.line())
        command.ended()

    first, second = said
    assert first != second
    assert (first if confined_first else second) == "Seccomp:\t2"
