"""What a started program finds: its session, its files, its signals, its variables, its terminal."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from holdfast.host.environ import Environment
from holdfast.host.limits import Groups
from holdfast.host.shim import ForkServer
from holdfast.host.spawn import Spawner, login_shell
from holdfast.model import EnvironmentPolicy, Inherit, Limits, ProcessTerms, Size, Spec, Stream
from holdfast.reports import EnforcedLimits, News
from tests.fakes.gate import SlowProgram
from tests.fakes.process import (
    PATH,
    TERMINAL,
    Ran,
    blocked_signals,
    command,
    descriptors,
    eventually,
    ignored_signals,
    nothing_left_open,
    read_until,
    run,
    sh,
    started,
    wait_exit,
    wait_news,
)

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])

SLEEP = ("sleep", "1000")


def lines(ran: Ran) -> list[str]:
    """The lines of the output, whatever it came through."""
    return (ran.stdout + ran.terminal).decode("utf-8", "surrogateescape").splitlines()


# Its place in the system.


@BOTH
def test_a_child_leads_a_session_and_a_group_of_its_own(terminal: Size | None) -> None:
    with started(command(*SLEEP, terminal=terminal)) as child:
        assert (os.getsid(child.pid), os.getpgid(child.pid)) == (child.pid, child.pid)


@BOTH
def test_a_child_runs_in_the_directory_asked_for(tmp_path: Path, terminal: Size | None) -> None:
    with started(command(*SLEEP, cwd=str(tmp_path), terminal=terminal)) as child:
        assert os.readlink(f"/proc/{child.pid}/cwd") == str(tmp_path)


@BOTH
def test_a_relative_program_is_relative_to_that_directory(tmp_path: Path, terminal: Size | None) -> None:
    (tmp_path / "tool").symlink_to("/bin/echo")

    assert lines(run(command("./tool", "hello", cwd=str(tmp_path), terminal=terminal))) == ["hello"]


def test_nothing_is_left_when_a_child_has_come_and_gone() -> None:
    with nothing_left_open():
        assert run(sh("exit 1", stdin=True)) == Ran(1)
        assert run(sh("exit 1", terminal=TERMINAL)) == Ran(1)


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[SlowProgram]:
    program = SlowProgram("/bin/sleep", tmp_path)
    yield program
    program.close()


@BOTH
async def test_a_slow_start_holds_up_nobody(slow: SlowProgram, terminal: Size | None) -> None:
    """A file on a stalled disk is one client's trouble, not everybody's."""
    with nothing_left_open():
        spawner = Spawner(Environment({}))
        stuck = spawner.start(command(slow.path, "1000", terminal=terminal))
        await slow.reached()

        with contextlib.closing(spawner.start(command("true"))) as other:
            told = wait_news(other), wait_news(other)
            early = stuck.receive()
            slow.release()
            late = wait_news(stuck)

        stuck.close()
        spawner.close()
        for fd in descriptors(stuck) | descriptors(other):
            os.close(fd)

    assert [report.news for report in told] == [News.STARTED, News.EXITED]
    assert (early, late.news) == (None, News.STARTED)


def test_many_starts_at_once_are_all_answered() -> None:
    with nothing_left_open():
        spawner = Spawner(Environment({}))
        children = [spawner.start(sh(f"exit {number}")) for number in range(50)]
        reports = [wait_news(child) for child in children]
        codes = [wait_exit(child) for child in children]
        for child in children:
            child.close()
            for fd in descriptors(child):
                os.close(fd)
        spawner.close()

    assert {report.news for report in reports} == {News.STARTED}
    assert codes == list(range(50))


def test_a_spawner_may_be_closed_twice_and_without_a_start() -> None:
    with nothing_left_open():
        spawner = Spawner(Environment({}))
        spawner.close()
        spawner.close()


# Its files.


@pytest.fixture
def inheritable() -> Iterator[int]:
    """A descriptor that our own parent, or a library, forgot to mark."""
    fd = os.open("/", os.O_RDONLY)
    os.set_inheritable(fd, True)
    yield fd
    os.close(fd)


@BOTH
@pytest.mark.parametrize("stdin", [False, True])
@pytest.mark.usefixtures("inheritable")
async def test_only_the_three_standard_files_are_open(terminal: Size | None, *, stdin: bool) -> None:
    """A descriptor too many keeps somebody's pipe open, or gives a child what is not its own."""
    with started(command(*SLEEP, terminal=terminal, stdin=stdin)) as child:
        # At its beginning a program opens the libraries it needs, and closes them.
        await eventually(
            lambda: sorted(os.listdir(f"/proc/{child.pid}/fd")) == ["0", "1", "2"],
            lambda: str(os.listdir(f"/proc/{child.pid}/fd")),
        )


def files(pid: int) -> list[str]:
    return [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)]


def test_without_stdin_a_child_reads_from_nowhere() -> None:
    with started(command(*SLEEP)) as child:
        stdin, stdout, stderr = files(child.pid)

        assert child.stdin is None
        assert stdin == "/dev/null"
        assert [stream for stream, _ in child.outputs] == [Stream.STDOUT, Stream.STDERR]
        ours = [os.readlink(f"/proc/self/fd/{fd}") for _, fd in child.outputs]
        assert [stdout, stderr] == ours


def test_with_stdin_a_child_reads_what_we_write() -> None:
    with started(command("cat", stdin=True)) as child:
        assert child.stdin is not None
        assert files(child.pid)[0] == os.readlink(f"/proc/self/fd/{child.stdin}")

        os.write(child.stdin, b"hello")

        assert read_until(child.outputs[0][1], b"hello") == b"hello"


def test_in_a_terminal_all_three_are_the_terminal() -> None:
    with started(command(*SLEEP, terminal=TERMINAL)) as child:
        stdin, stdout, stderr = files(child.pid)

        assert stdin.startswith("/dev/pts/")
        assert stdin == stdout == stderr
        assert [stream for stream, _ in child.outputs] == [Stream.PTY]


def test_our_ends_do_not_block_and_theirs_do() -> None:
    """Programs take a descriptor that does not block for broken."""
    source = "import os; print([os.get_blocking(fd) for fd in (0, 1, 2)])"
    spec = command(sys.executable, "-I", "-c", source, stdin=True)
    with started(spec) as child:
        assert [os.get_blocking(fd) for _, fd in child.outputs] == [False, False]
        assert read_until(child.outputs[0][1], b"\n") == b"[True, True, True]\n"


def test_a_child_gets_the_limit_of_open_files_it_is_given() -> None:
    """Ours is raised for many processes; many programs do not expect that."""
    spawner = Spawner(Environment({}), ForkServer(files_limit=(123, 456)))
    with started(command(*SLEEP), spawner) as child:
        assert resource.prlimit(child.pid, resource.RLIMIT_NOFILE) == (123, 456)


# Its limits.


def limited(*argv: str, limits: Limits, cwd: str = "/") -> Spec:
    return Spec(argv=argv, cwd=cwd, env={"PATH": PATH}, terms=ProcessTerms(limits=limits))


def test_the_kernel_keeps_the_limits_of_each_process() -> None:
    """From the first instruction of the program on; nobody else is limited."""
    with started(limited(*SLEEP, limits=Limits(files=64, cpu=7))) as child:
        found = [resource.prlimit(child.pid, kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU)]

        assert found == [(64, 64), (7, 9)]


@pytest.mark.slow
def test_a_child_that_uses_up_its_time_is_told_by_a_signal() -> None:
    source = "while True: pass"
    spec = limited(sys.executable, "-I", "-S", "-c", source, limits=Limits(cpu=0.1))

    assert run(spec) == Ran(128 + signal.SIGXCPU)


def test_a_limit_that_no_group_keeps_is_left_to_us() -> None:
    """Where no group can be made the child runs all the same."""
    limits = Limits(memory=1 << 30, processes=9)
    spawner = Spawner(Environment({}), groups=Groups({"memory": "/proc/self", "pids": "/proc/self"}))

    with started(limited(*SLEEP, limits=limits), spawner) as child:
        assert child.limits == EnforcedLimits(limits, frozenset())


# Its signals.


@contextlib.contextmanager
def careless_parent() -> Iterator[None]:
    """Ignore and block signals, as a parent of ours may have done."""
    numbers = (signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR2, signal.SIGRTMIN)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)


@BOTH
def test_no_signal_is_ignored_or_blocked_whatever_we_do_ourselves(terminal: Size | None) -> None:
    with careless_parent(), started(command(*SLEEP, terminal=terminal)) as child:
        assert {signal.SIGPIPE, signal.SIGHUP} <= ignored_signals(os.getpid())
        assert ignored_signals(child.pid) == set()
        assert blocked_signals(child.pid) == set()


# Its name.


@BOTH
def test_its_name_is_the_first_argument_and_the_program_stays(terminal: Size | None) -> None:
    """A login shell is told by a dash in its name; the program must not be looked up under it."""
    with started(command(*SLEEP, arg0="-echo", terminal=terminal)) as child:
        assert Path(f"/proc/{child.pid}/cmdline").read_bytes() == b"-echo\x001000\x00"
        assert Path(os.readlink(f"/proc/{child.pid}/exe")).name == Path(os.path.realpath("/bin/sleep")).name


@BOTH
def test_its_name_may_be_empty(terminal: Size | None) -> None:
    with started(command(*SLEEP, arg0="", terminal=terminal)) as child:
        assert Path(f"/proc/{child.pid}/cmdline").read_bytes() == b"\x001000\x00"


def test_arguments_arrive_byte_by_byte() -> None:
    given = ["", " ", "a b", "$HOME", "é", "\udcff", "-n", "\n"]
    with started(command("sh", "-c", "sleep 1000", *given)) as child:
        told = Path(f"/proc/{child.pid}/cmdline").read_bytes().split(b"\0")

        assert told[:-1] == [os.fsencode(part) for part in ["sh", "-c", "sleep 1000", *given]]


# Its variables.


def environment(spec: Spec, spawner: Spawner | None = None) -> list[bytes]:
    """The variables of a child as the kernel has them."""
    with started(spec, spawner) as child:
        return Path(f"/proc/{child.pid}/environ").read_bytes().split(b"\0")[:-1]


def test_the_variables_are_exactly_those_asked_for_in_the_order_of_their_names() -> None:
    env = {"Z": "1", "PATH": PATH, "A": "2", "é": "ü", "E\udcff": "\udcfe", "EMPTY": ""}

    assert environment(command(*SLEEP, env=env)) == [
        b"A=2",
        b"EMPTY=",
        b"E\xff=\xfe",
        b"PATH=" + PATH.encode(),
        b"Z=1",
        "é=ü".encode(),
    ]


def test_odd_names_are_passed_through() -> None:
    """They are of no use to most programs, but they are the client's."""
    env = {"A=B": "x", "": "y", "=": "z"}

    assert environment(command("/bin/sleep", "1000", env=env)) == [b"=y", b"==z", b"A=B=x"]


def test_no_variable_is_added_over_pipes() -> None:
    assert environment(command("/bin/sleep", "1000", env={})) == []


def test_a_terminal_adds_the_login_shell_and_nothing_else() -> None:
    """Not TERM: what our end of the terminal understands is the client's business."""
    shell = pwd.getpwuid(os.getuid()).pw_shell
    spec = command("/bin/sleep", "1000", env={}, terminal=TERMINAL)

    assert environment(spec) == [f"SHELL={shell}".encode()]
    assert login_shell() == shell


@pytest.mark.parametrize("value", ["", "/bin/other"])
def test_a_shell_that_was_asked_for_is_kept(value: str) -> None:
    spec = command("/bin/sleep", "1000", env={"SHELL": value}, terminal=TERMINAL)

    assert environment(spec) == [f"SHELL={value}".encode()]


def test_what_is_inherited_follows_the_policy() -> None:
    policy = EnvironmentPolicy(Inherit.ALL, False, exclude=(), set=(("SET", "1"),), include_only=())
    spawner = Spawner(Environment({"PATH": PATH, "A\udcff": "\udcfe", "MONKEY": "x"}))
    spec = Spec(argv=SLEEP, cwd="/", env={"OVER": "2"}, env_policy=policy)

    assert environment(spec, spawner) == [b"A\xff=\xfe", b"OVER=2", b"PATH=" + PATH.encode(), b"SET=1"]


# Its terminal.


def terminal_of(pid: int) -> tuple[int, int]:
    """Device number of the controlling terminal, and the group in its foreground."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[4]), int(fields[5])


def test_the_terminal_is_the_childs_own_and_the_child_is_in_its_foreground() -> None:
    """Else Ctrl-C would reach nobody and /dev/tty could not be opened."""
    with started(command(*SLEEP, terminal=TERMINAL)) as child:
        device = os.stat(f"/proc/{child.pid}/fd/0").st_rdev

        assert terminal_of(child.pid) == (device, child.pid)


def test_over_pipes_there_is_no_controlling_terminal() -> None:
    """Not even if the server has one: nothing may ask its operator for a password."""
    with started(command(*SLEEP)) as child:
        assert terminal_of(child.pid) == (0, -1)


def test_control_c_typed_into_the_terminal_interrupts_the_child() -> None:
    with started(command("cat", terminal=TERMINAL)) as child:
        assert child.stdin is not None
        os.write(child.stdin, b"hello\n")
        read_until(child.outputs[0][1], b"hello\r\nhello\r\n")

        os.write(child.stdin, b"\x03")
        read_until(child.outputs[0][1], b"^C")

        assert wait_exit(child) == 128 + signal.SIGINT


@pytest.mark.parametrize(("size", "told"), [(Size(), "24 80"), (Size(rows=7, cols=300), "7 300")])
def test_the_terminal_has_the_size_asked_for_from_the_first_moment(size: Size, told: str) -> None:
    assert lines(run(command("stty", "size", terminal=size))) == [told]


def test_the_terminal_has_the_modes_the_kernel_gives_it() -> None:
    (told,) = lines(run(command("stty", "-g", terminal=TERMINAL)))

    assert told == ("500:5:bf:8a3b:3:1c:7f:15:4:0:1:0:11:13:1a:0:12:f:17:16:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0")
