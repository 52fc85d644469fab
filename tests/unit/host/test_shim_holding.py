"""What a shim holds for the next server, and what it says again when it is asked."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.host.orders import HeldPlace, StartOrder, StateReport
from holdfast.host.sandbox.confinement import Confinement
from holdfast.host.shim import ForkServer, Shim
from holdfast.reports import LOST, News, Report
from tests.fakes.fork_server import GONE, GUARD, has_ended, order, until
from tests.fakes.keeper import asked, news
from tests.fakes.process import is_alive, nothing_left_open

# A hang is cut off; nothing here is measured.
pytestmark = pytest.mark.timeout(2 * GUARD)

KEY = 0x0123_4567_89AB_CDEF


class Held:
    """A shim as two servers see it, one after the other, and the pipes of its command."""

    def __init__(self, fork_server: ForkServer) -> None:
        self._made = fork_server.shim()
        self._copy = socket.socket(fileno=os.dup(self._made.fileno()))
        self.shim = self._made
        self._files: list[int] = []
        self.stdin = self.stdout = self.stderr = -1
        self.cursor = self.file()

    def file(self) -> int:
        """A file with a place in it, as a cursor is."""
        fd = os.memfd_create("cursor")
        os.write(fd, b"0123456789")
        self._files.append(fd)
        return fd

    def start(
        self,
        script: str,
        *,
        key: int = KEY,
        padding: int = 0,
        confinement: Confinement | None = None,
        held: bool = True,
    ) -> None:
        """Start a script whose pipes are held, with a cursor."""
        theirs_in, self.stdin = os.pipe()
        self.stdout, theirs_out = os.pipe()
        self.stderr, theirs_err = os.pipe()
        self._files += [self.stdin, self.stdout, self.stderr]
        command = StartOrder(
            cwd=b"/",
            program=b"/bin/sh",
            argv=[b"sh", b"-c", script.encode()],
            env=[b"PATH=/usr/bin:/bin", b"X=" + b"x" * padding],
            stdin=True,
            confinement=confinement,
            key=key,
        )
        ours = {
            HeldPlace.CURSOR: self.cursor,
            HeldPlace.STDERR: self.stderr,
            HeldPlace.STDIN: self.stdin,
            HeldPlace.STDOUT: self.stdout,
        }
        self.shim.start(command, [theirs_in, theirs_out, theirs_err], ours if held else {})
        for fd in (theirs_in, theirs_out, theirs_err):
            os.close(fd)

    def die(self) -> None:
        """Be killed as a server is: only the keeper's copy of the socket stays open."""
        for fd in self._files:
            os.close(fd)
        self._files.clear()
        os.close(self.shim._socket.detach())
        self.shim._keep_cursor(None)
        self.shim = Shim(self._copy.dup())

    def news(self) -> Report:
        """The next report."""
        return news(self.shim)

    def told(self, wanted: News) -> Report:
        """The next report, which is of this kind."""
        report = self.news()
        assert report.news is wanted
        return report

    def state(self) -> tuple[StateReport, dict[int, int]]:
        """What the shim answers."""
        answer = asked(self.shim)
        self._files += answer[1].values()
        return answer

    def close(self) -> None:
        self._made.close()
        self.shim.close()
        self._copy.close()
        for fd in self._files:
            with suppress(OSError):
                os.close(fd)


@pytest.fixture
def held(compiled: str) -> Iterator[Held]:
    with nothing_left_open():
        fork_server = ForkServer(program=compiled)
        made = Held(fork_server)
        yield made
        made.close()
        fork_server.close()


def read(fd: int) -> bytes:
    """The next bytes of a pipe; none at its end."""
    assert select.select([fd], [], [], GUARD)[0], "there is nothing"
    return os.read(fd, 65536)


PIPES = (HeldPlace.STDIN, HeldPlace.STDOUT, HeldPlace.STDERR)


# A server that dies.


@pytest.mark.parametrize("padding", [0, 100_000], ids=["message", "file"])
def test_the_next_server_gets_what_the_last_one_had(held: Held, padding: int) -> None:
    """The command notices nothing; each pipe is the one of its place, also if the order came in a file."""
    held.start("read a; echo out $a; echo err $a >&2; read b", padding=padding)
    started = held.told(News.STARTED)
    os.lseek(held.cursor, 7, os.SEEK_SET)

    held.die()
    state, files = held.state()

    assert (state.pid, state.shim, state.key) == (started.value, started.shim, KEY)
    assert (state.released, state.killed) == (False, False)
    assert state.places == (*PIPES, HeldPlace.CURSOR)
    assert tuple(files) == PIPES
    assert held.shim.cursor is not None
    assert os.lseek(held.shim.cursor, 0, os.SEEK_CUR) == 7
    assert held.told(News.STARTED) == started
    os.write(files[HeldPlace.STDIN], b"again\n")
    assert read(files[HeldPlace.STDOUT]) == b"out again\n"
    assert read(files[HeldPlace.STDERR]) == b"err again\n"


def test_what_the_last_server_did_not_read_is_dropped_and_told_again(held: Held) -> None:
    """The order of what follows is that of the command's life."""
    held.start("exit 7")
    assert select.select([held.shim], [], [], GUARD)[0]

    held.die()
    held.state()

    reports = [held.news()]
    while reports[-1].news is not News.EXITED:
        reports.append(held.news())
    assert [(report.news, report.value) for report in reports[1:]] == [(News.EXITED, 7)]
    assert reports[0].news is News.STARTED


def test_an_answer_that_nobody_read_is_not_taken_for_the_next_one(held: Held) -> None:
    """A server that dies while it asks leaves its answers behind, with descriptors in them."""
    held.start("read _")
    held.told(News.STARTED)

    for _ in range(3):
        held.shim.ask()
        assert select.select([held.shim], [], [], GUARD)[0]
        held.die()
    state, files = held.state()

    assert (state.key, tuple(files)) == (KEY, PIPES)
    held.told(News.STARTED)
    assert held.shim.receive() is None


def test_a_shim_without_a_command_has_its_cursor_only(held: Held) -> None:
    held.start("exit 0")
    held.told(News.STARTED)
    held.told(News.EXITED)
    held.shim.release(quietly=True)

    held.die()
    state, files = held.state()

    assert (state.pid, state.key, state.places, files) == (0, 0, (HeldPlace.CURSOR,), {})
    assert held.shim.cursor is not None
    assert os.pread(held.shim.cursor, 4, 0) == b"0123"
    assert held.shim.is_waiting()


def test_the_shims_own_files_are_its_socket_and_what_it_holds(held: Held) -> None:
    """Whatever else it kept open, somebody would wait for the end of."""
    held.start("read _")
    shim = held.told(News.STARTED).shim

    files = {name: os.readlink(f"/proc/{shim}/fd/{name}") for name in os.listdir(f"/proc/{shim}/fd")}

    assert [files.pop(name) for name in "012"] == ["/dev/null"] * 3
    kinds = sorted(name.split(":")[0] for name in files.values())
    assert kinds == ["/memfd", *["pipe"] * 3, "socket"]


# Ends.


def test_an_exit_is_told_again_until_the_command_is_released(held: Held) -> None:
    """The exit status is the shim's until it was written down."""
    held.start("echo last; kill -TERM $$")
    started, exited = held.told(News.STARTED), held.told(News.EXITED)

    for _ in range(2):
        held.die()
        state, files = held.state()

        assert (state.pid, state.key, state.released) == (started.value, KEY, False)
        assert [held.told(News.STARTED), held.told(News.EXITED)] == [started, exited]
    assert (exited.value, exited.by_signal, exited.alone) == (signal.SIGTERM, True, True)
    assert read(files[HeldPlace.STDOUT]) == b"last\n"
    assert read(files[HeldPlace.STDOUT]) == b""


def test_what_a_leftover_wrote_is_there_for_the_next_server(held: Held) -> None:
    """The tree is empty, but the pipe is not: the first server died before it read it."""
    held.start("exec 3<&0; (read _; echo leftover) <&3 & echo $!; exit 7")
    pid = int(read(held.stdout))
    started, exited = held.told(News.STARTED), held.told(News.EXITED)
    held.shim.release()
    os.write(held.stdin, b"\n")
    empty = held.told(News.EMPTY)
    assert not is_alive(pid)

    held.die()
    state, files = held.state()

    assert (state.pid, state.key, state.released) == (started.value, KEY, True)
    assert [held.news() for _ in range(3)] == [started, exited, empty]
    assert read(files[HeldPlace.STDOUT]) == b"leftover\n"
    held.shim.release()
    state, files = held.state()
    assert (state.pid, state.key, state.places) == (0, 0, (HeldPlace.CURSOR,))


def test_a_signal_after_the_end_hits_nobody(held: Held) -> None:
    """The number of the command is another's by then."""
    held.start("exec 3<&0; (read _) <&3 & exit 7")
    held.told(News.STARTED)
    held.told(News.EXITED)
    held.shim.release()
    os.write(held.stdin, b"\n")
    held.told(News.EMPTY)

    held.shim.signal(signal.SIGKILL)
    held.shim.kill()

    assert held.state()[0].key == KEY
    assert not held.state()[0].killed
    for wanted in (News.STARTED, News.EXITED, News.EMPTY):
        held.told(wanted)


def test_a_shim_that_has_killed_its_tree_answers_at_once(held: Held) -> None:
    """It keeps numbers from others for a second; the next server cannot wait for that."""
    held.start("setsid sleep 1000 & echo $!; read _")
    read(held.stdout)
    started = held.told(News.STARTED)
    held.shim.kill()
    reports = [held.news()]
    while reports[-1].news is not News.EMPTY:
        reports.append(held.news())

    held.die()
    state, files = held.state()

    assert (state.pid, state.key, state.killed) == (started.value, KEY, True)
    assert tuple(files) == PIPES
    assert [held.news().news for _ in range(3)] == [News.STARTED, News.EXITED, News.EMPTY]
    assert is_alive(state.shim)
    held.shim.close()
    has_ended(state.shim)


def test_a_killed_shim_takes_no_other_command(held: Held) -> None:
    """Who orders one has not read yet that there was an end; it hears of it when it closes."""
    held.start("read _")
    held.told(News.STARTED)
    held.shim.kill()
    assert [held.news().news for _ in range(2)] == [News.EXITED, News.EMPTY]

    held.start("echo never")

    assert read(held.stdout) == b""
    assert held.state()[0].killed


def test_denials_are_told_again_before_the_exit(
    held: Held, locked: Callable[..., Confinement], work: Path
) -> None:
    """Also when the witness has ended."""
    held.start(f"echo x >{work}/file; exec 3<&0; (read _) <&3 & exit 3", confinement=locked())
    reports = [held.news()]
    while reports[-1].news is not News.EXITED:
        reports.append(held.news())
    held.shim.release()
    os.write(held.stdin, b"\n")
    reports.append(held.told(News.EMPTY))
    assert News.DENIAL in [report.news for report in reports]

    held.die()
    held.state()

    assert [held.news() for _ in reports] == reports


# The server is gone.


def gone(held: Held) -> None:
    """Tell the shim what the keeper tells it."""
    held.shim._send(order(GONE))


def test_a_command_without_a_key_ends_with_the_server(held: Held) -> None:
    held.start("sleep 1000 & read _", key=0, held=False)
    started = held.told(News.STARTED)
    gone(held)

    held.die()

    until(lambda: not is_alive(started.value))
    state, files = held.state()
    assert (state.pid, state.key, state.killed, files) == (started.value, 0, True, {})
    held.shim.close()
    has_ended(started.shim)


def test_a_command_with_a_key_goes_on_without_a_server(held: Held) -> None:
    held.start("while read a; do echo $a; done")
    held.told(News.STARTED)
    gone(held)

    held.die()
    state, files = held.state()

    assert not state.killed
    os.write(files[HeldPlace.STDIN], b"alive\n")
    assert read(files[HeldPlace.STDOUT]) == b"alive\n"


def test_a_shim_without_a_command_stays_when_the_server_is_gone(held: Held) -> None:
    gone(held)

    held.die()

    assert held.state()[0].pid == 0
    held.start("exit 3")
    held.told(News.STARTED)
    assert held.told(News.EXITED).value == 3


def test_with_the_last_copy_of_the_socket_everything_ends(held: Held) -> None:
    """The keeper and the server are both gone."""
    held.start("setsid sleep 1000 & echo $!; read _")
    daemon = int(read(held.stdout))
    started = held.told(News.STARTED)
    held.die()

    held.close()

    for pid in (daemon, started.value, started.shim):
        has_ended(pid)


def test_a_shim_that_is_given_up_ends_though_others_have_its_socket(held: Held) -> None:
    """The keeper has a copy of it."""
    held.start("read _")
    started = held.told(News.STARTED)

    held.shim.close()

    has_ended(started.shim)


# Holding and dropping.


def test_standard_input_ends_when_the_shim_drops_it_too(held: Held) -> None:
    held.start("cat; echo end")
    held.told(News.STARTED)
    os.close(held.stdin)
    held._files.remove(held.stdin)
    held.shim.drop([HeldPlace.STDIN])

    assert read(held.stdout) == b"end\n"
    assert held.state()[0].places == (HeldPlace.STDOUT, HeldPlace.STDERR, HeldPlace.CURSOR)


def test_what_is_held_later_takes_the_place_of_what_was_there(held: Held) -> None:
    held.start("read _")
    held.told(News.STARTED)
    first, second = held.file(), held.file()
    os.lseek(second, 3, os.SEEK_SET)

    held.shim.hold(HeldPlace.STDIN_CURSOR, first)
    held.shim.hold(HeldPlace.STDIN_CURSOR, second)

    state, files = held.state()
    assert state.places == (*PIPES, HeldPlace.CURSOR, HeldPlace.STDIN_CURSOR)
    assert os.lseek(files[HeldPlace.STDIN_CURSOR], 0, os.SEEK_CUR) == 3


def test_without_a_command_only_a_cursor_can_be_held(held: Held) -> None:
    """Anything else belongs to a command that is over."""
    held.shim.hold(HeldPlace.STDOUT, held.cursor)
    held.shim.hold(HeldPlace.CURSOR, held.cursor)
    held.shim.hold(99, held.cursor)

    assert held.state()[0].places == (HeldPlace.CURSOR,)


def test_a_place_that_there_is_not_ends_the_shim(held: Held) -> None:
    """It would give a command descriptors that are not its own."""
    command = StartOrder(cwd=b"/", program=b"/bin/true", argv=[b"true"], env=[], key=KEY)

    held.shim.start(command, [], {7: held.cursor})

    assert held.news() is LOST


def test_asking_a_shim_that_has_ended_is_an_error(held: Held) -> None:
    """There is nothing to wait for."""
    shim = held.state()[0].shim
    os.kill(shim, signal.SIGKILL)

    has_ended(shim)

    with pytest.raises(ConnectionError):
        held.state()
