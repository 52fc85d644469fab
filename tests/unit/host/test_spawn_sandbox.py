"""Children in sandboxes: from a spec to its end, through spawner, fork server and kernel."""

from __future__ import annotations

import errno
import gc
import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import BadRequest, Fault, SandboxUnavailable, SpawnFailed
from holdfast.host.child import ShimChild
from holdfast.host.environ import Environment
from holdfast.host.limits import find_groups
from holdfast.host.orders import StartStage
from holdfast.host.sandbox.bubblewrap import _file
from holdfast.host.sandbox.confinement import Confiner, Held
from holdfast.host.shim import ForkServer
from holdfast.host.spawn import Spawner, _explain
from holdfast.model import Limits, ProcessTerms, Size, Spec, Stream
from holdfast.reports import News, Report
from holdfast.sandbox import (
    Access,
    Denial,
    Guarantees,
    Named,
    Pattern,
    Sandbox,
    SandboxBackendName,
    SandboxEntry,
    Where,
)
from tests.fakes.fork_server import GUARD
from tests.fakes.process import (
    PATH,
    TERMINAL,
    command,
    descriptors,
    has_children,
    open_files,
    read_to_end,
    read_until,
    wait_exit,
    wait_news,
)

pytestmark = pytest.mark.timeout(2 * GUARD)

READ, WRITE = Access.READ, Access.WRITE
ROOT, MINIMAL = SandboxEntry(Named(Where.ROOT), READ), SandboxEntry(Named(Where.MINIMAL), READ)
BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before = open_files()
    yield
    gc.collect()
    assert open_files().items() <= before.items()
    assert not has_children()


@pytest.fixture(params=SandboxBackendName)
def spawner(
    request: pytest.FixtureRequest, compiled: str, sandboxes: Callable[..., Confiner]
) -> Iterator[Spawner]:
    """With sandboxes of each kind."""
    made = Spawner(
        Environment({"TMPDIR": "/inherited"}),
        ForkServer(program=compiled),
        groups=find_groups(),
        confiner=sandboxes(request.param),
    )
    yield made
    made.close()


def sandboxed(*argv: str, entries: tuple[SandboxEntry, ...] | None = (ROOT,), **more: object) -> Spec:
    spec = command(*argv, **more)  # type: ignore[arg-type]
    return replace(spec, sandbox=Sandbox(entries, network=False, cwd=spec.cwd))


def ends(child: ShimChild) -> None:
    child.kill()
    while child.pid and wait_news(child).news not in (News.EMPTY, News.LOST):
        pass
    child.close()
    for fd in descriptors(child):
        os.close(fd)


def ran(spawner: Spawner, spec: Spec) -> tuple[int, list[Denial]]:
    """The exit code, and what was refused."""
    child = spawner.start(spec, spawner.confine(spec))
    try:
        report = wait_news(child)
        if report.news is not News.STARTED:
            raise child.failure(report)
        assert child.confined_command is not None
        assert (child.confined_command.exact, child.confined_command.denials) == (True, [])
        return wait_exit(child), child.confined_command.denials
    finally:
        ends(child)


def refusal(spawner: Spawner, spec: Spec) -> SpawnFailed:
    with pytest.raises(SpawnFailed) as caught:
        ran(spawner, spec)
    assert caught.value.terminal == (spec.terminal is not None)
    return caught.value


def test_what_is_denied_below_a_missing_directory_cannot_come_into_being(
    spawner: Spawner, work: Path
) -> None:
    """It once broke every start under bubblewrap; and nothing of it is left behind."""
    script = "touch in; mkdir -p a/b/c && exit 1; echo x > a/secret && exit 2; mv a c && exit 3; ls a; exit 5"
    entries = (ROOT, SandboxEntry(str(work), WRITE), SandboxEntry(f"{work}/a/b/secret", Access.DENY))
    spec = sandboxed("sh", "-c", f"exec 2>/dev/null; {script}", cwd=str(work), entries=entries)

    code, denials = ran(spawner, spec)

    assert code == 5
    assert {denial.subject for denial in denials} <= {f"{work}/a", f"{work}/a/b", f"{work}/a/secret"}
    assert denials[0].op == "mkdir"
    assert os.listdir(work) == ["in"]


@BOTH
def test_what_was_refused_is_known_with_the_exit(spawner: Spawner, work: Path, terminal: Size | None) -> None:
    script = "touch in && ! mkdir ../out 2>/dev/null && ! mkdir ../out 2>/dev/null && exit 5"
    spec = sandboxed(
        "sh", "-c", script, cwd=str(work), entries=(ROOT, SandboxEntry(str(work), WRITE)), terminal=terminal
    )

    assert ran(spawner, spec) == (5, [Denial("mkdir", f"{work.parent}/out", 2)])
    assert os.listdir(work) == ["in"]


@pytest.mark.parametrize("limits", [Limits(processes=1), Limits(files=4)], ids=["processes", "files"])
def test_a_limit_is_about_the_command_and_not_about_its_sandbox(spawner: Spawner, limits: Limits) -> None:
    """What is enough without a sandbox is enough in one, whoever has to keep it."""
    spec = sandboxed("true", terms=ProcessTerms(limits=limits))

    assert ran(spawner, spec) == (0, [])


@pytest.mark.skipif(
    "pids" not in find_groups().controllers, reason="no groups can be made here for processes"
)
def test_a_command_has_no_more_processes_than_without_a_sandbox(spawner: Spawner) -> None:
    """One for itself: the second is refused."""
    script = "import os\ntry: os.fork()\nexcept BlockingIOError: os._exit(7)"
    spec = sandboxed(sys.executable, "-I", "-S", "-c", script, terms=ProcessTerms(limits=Limits(processes=1)))

    assert ran(spawner, spec) == (7, [])


def test_who_keeps_the_sandbox_is_not_counted(spawner: Spawner) -> None:
    """Where limits are kept by looking."""
    spec = sandboxed("sh", "-c", "sleep 1000 & echo; wait")
    child = spawner.start(spec, spawner.confine(spec))
    try:
        assert wait_news(child).news is News.STARTED
        read_until(child.outputs[0][1], b"\n")

        assert child.load().processes == 2
    finally:
        ends(child)


def test_without_a_sandbox_there_is_no_confinement(spawner: Spawner) -> None:
    plain = command("true")

    assert spawner.confine(plain) is None
    child = spawner.start(plain)
    assert child.confined_command is None
    assert wait_news(child).news is News.STARTED
    ends(child)


def test_where_only_the_network_is_off_files_are_free(spawner: Spawner, work: Path) -> None:
    code, denials = ran(spawner, sandboxed("touch", f"{work}/made", entries=None))

    assert (code, denials, os.listdir(work)) == (0, [], ["made"])


@pytest.mark.parametrize("own", [True, False])
def test_the_directory_for_temporary_files_is_that_of_the_child(
    spawner: Spawner, work: Path, *, own: bool
) -> None:
    """Not that of the server, which may be anywhere."""
    env = {"PATH": PATH, **({"TMPDIR": str(work)} if own else {})}
    spec = sandboxed(
        "touch", f"{work}/made", env=env, entries=(ROOT, SandboxEntry(Named(Where.TMPDIR), WRITE))
    )

    code, _ = ran(spawner, spec)

    assert (code == 0, os.listdir(work)) == (own, ["made"] if own else [])


@BOTH
def test_a_program_that_cannot_be_seen_is_the_sandboxes_fault(
    spawner: Spawner, work: Path, terminal: Size | None
) -> None:
    program = work / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    error = refusal(spawner, sandboxed(str(program), entries=(MINIMAL,), terminal=terminal))

    assert (error.fault, error.subject) == (Fault.SANDBOX, str(program))
    assert error.reason.startswith("the sandbox keeps it from being run: ")


@BOTH
@pytest.mark.parametrize(
    ("argv", "cwd", "fault"),
    [
        (["/none/such"], "/", Fault.PROGRAM),
        (["none-such"], "/", Fault.PROGRAM),
        (["true"], "/none/such", Fault.DIRECTORY),
    ],
)
def test_what_is_missing_anyway_is_not_the_sandboxes_fault(
    spawner: Spawner, argv: list[str], cwd: str, fault: Fault, terminal: Size | None
) -> None:
    error = refusal(spawner, sandboxed(*argv, cwd=cwd, terminal=terminal))

    assert (error.fault, error.number) == (fault, 2)


@BOTH
def test_what_bubblewrap_says_is_the_reason(
    compiled: str, sandboxes: Callable[..., Confiner], terminal: Size | None
) -> None:
    """It knows better than a number."""
    spawner = Spawner(
        Environment({}), ForkServer(program=compiled), confiner=sandboxes(SandboxBackendName.BUBBLEWRAP)
    )
    spec = sandboxed("true", terminal=terminal)
    confinement = spawner.confine(spec)
    assert confinement is not None
    child = spawner.start(spec, replace(confinement, arguments=Held(_file(b"--bind\0/none/such\0/x\0"))))

    error = child.failure(wait_news(child))

    assert (error.fault, error.subject) == (Fault.SANDBOX, "sandbox")
    assert error.reason.startswith("bwrap: ")
    assert "/none/such" in error.reason
    ends(child)
    spawner.close()


def test_all_that_bubblewrap_says_is_the_reason() -> None:
    """A terminal gives what was said in pieces, and those who read only the first know nothing."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        near.setblocking(False)
        for piece in (b"bwrap: ", b"Can't find ", b"/none/such\n"):
            far.send(piece)
        report = Report(News.FAILED, errno.EPERM, StartStage.SANDBOX.value)

        error = _explain(sandboxed("true"), None, ((Stream.PTY, near.fileno()),), report)

    assert error.reason == "bwrap: Can't find /none/such"


def test_a_policy_that_makes_no_sense_is_refused_before_anything_starts(spawner: Spawner) -> None:
    with pytest.raises(BadRequest):
        spawner.confine(sandboxed("true", entries=(ROOT, SandboxEntry(Pattern("/**"), Access.DENY))))


def test_where_there_are_no_sandboxes_one_is_refused() -> None:
    spawner = Spawner(Environment({}))

    assert spawner.guarantees == Guarantees(None, reason="sandboxes are switched off")
    with pytest.raises(SandboxUnavailable):
        spawner.confine(sandboxed("true"))
    spawner.close()


def test_what_sandboxes_are_worth_is_what_was_found(spawner: Spawner) -> None:
    assert spawner.guarantees.backend is not None
    assert spawner.guarantees is spawner.guarantees


def test_output_that_was_said_is_still_there_after_a_start(spawner: Spawner) -> None:
    """Only a start that failed has its explanation read from it."""
    spec = sandboxed("sh", "-c", "echo out; echo err >&2")
    child = spawner.start(spec, spawner.confine(spec))
    assert wait_news(child).news is News.STARTED

    assert [read_to_end(fd) for _, fd in child.outputs] == [b"out\n", b"err\n"]
    ends(child)
