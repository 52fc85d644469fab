"""What the keeper hands over to the next server, and what becomes of shims meanwhile."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
from collections.abc import Callable, Iterator

import pytest

from holdfast.host.keeper import ask_all
from holdfast.host.orders import HeldPlace
from holdfast.host.shim import Shim
from holdfast.reports import News
from tests.fakes.backends import LONG
from tests.fakes.fork_server import GUARD, has_ended, until
from tests.fakes.keeper import (
    FakeKeeper,
    FakeServer,
    Pipes,
    asked,
    handed,
    news,
    next_server,
    until_news,
)
from tests.fakes.process import is_alive, status

# A hang is cut off; nothing here is measured.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * GUARD)]

Begin = Callable[..., FakeKeeper]


@pytest.fixture
def ends() -> Iterator[tuple[Shim, socket.socket]]:
    """Our end of the socket of a shim, and the one that the shim would have."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield Shim(ours), theirs
    theirs.close()


# Hand-overs.


def test_the_first_server_gets_an_empty_arena_and_nothing_else(kept: FakeKeeper) -> None:
    handover = kept.server().rise()

    assert (handover.generation, handover.listeners, handover.shims) == (1, (), [])
    assert os.readlink(f"/proc/self/fd/{handover.arena}") == "/memfd:arena (deleted)"
    os.write(handover.stage[1], b"x")
    assert os.read(handover.stage[0], 2) == b"x"


@pytest.mark.parametrize("count", [0, 1, 450])
def test_the_next_server_gets_everything(kept: FakeKeeper, server: FakeServer, count: int) -> None:
    """Many shims come in several batches."""
    assert server.handover is not None
    os.pwrite(server.handover.arena, b"kept", 0)
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    server.fork_server.listen("first", listener.fileno())
    server.fork_server.listen("é" * 100, listener.fileno())
    listener.close()
    shims = {asked(server.shim())[0].shim for _ in range(count)}

    server.die()
    following = next_server(kept)

    assert following.handover is not None
    assert following.handover.generation == 2
    assert os.pread(following.handover.arena, 9, 0) == b"kept"
    assert [label for label, _ in following.handover.listeners] == ["first", "é" * 100]
    with (
        socket.create_connection(address),
        socket.socket(fileno=os.dup(following.handover.listeners[0][1])) as end,
    ):
        end.settimeout(GUARD)
        end.accept()[0].close()
    assert {asked(shim)[0].shim for shim in handed(following)} == shims
    assert len(shims) == count


def test_a_listener_with_the_same_label_takes_the_place_of_the_other(
    kept: FakeKeeper, server: FakeServer
) -> None:
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server.fork_server.listen("one", listener.fileno())
            address = listener.getsockname()

    server.die()

    ((label, end),) = next_server(kept).handover.listeners  # type: ignore[union-attr]
    with socket.socket(fileno=os.dup(end)) as same:
        assert (label, same.getsockname()) == ("one", address)


def test_a_server_that_dies_at_any_batch_leaves_all_shims_to_the_next_one(
    kept: FakeKeeper, server: FakeServer
) -> None:
    """Nothing of a hand-over is given away before it is taken."""
    count = 1000 if LONG else 450
    messages = -(-count // 200) + 2  # A greeting, the batches, and the end.
    shims = {asked(server.shim())[0].shim for _ in range(count)}
    server.die()

    for taken in range(messages + 2):
        dying = kept.server()
        for _ in range(taken):
            message, files = dying.message()
            for fd in files:
                os.close(fd)
            if message[:1] == b"P" and taken < messages:
                dying.control.send(b"K")
            elif message[:1] == b"P":
                break
        dying.die()
        if taken % 3 == 2:  # Else the keeper thinks that there is no point in going on.
            next_server(kept).die()

    following = next_server(kept)
    assert {asked(shim)[0].shim for shim in handed(following)} == shims


def test_shims_that_end_during_a_hand_over_are_left_out_and_no_other(
    kept: FakeKeeper, server: FakeServer
) -> None:
    """The list changes while it is being sent."""
    shims = [asked(server.shim())[0].shim for _ in range(450)]
    server.die()
    following = kept.server()
    _, files = following.message()
    (batch, first) = following.message()
    assert (batch[:1], len(first)) == (b"P", 200)
    ends = [Shim(socket.socket(fileno=fd)) for fd in first]
    known = {asked(end)[0].shim for end in ends}
    lost = [*sorted(known)[:50], *sorted(set(shims) - known)[:50]]
    for pid in lost:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(kept.children("holdfast-shim")) == 350)

    following.control.send(b"K")
    late: list[Shim] = []
    while (message := following.message())[0] != b"E":
        late += [Shim(socket.socket(fileno=fd)) for fd in message[1]]
        following.control.send(b"K")

    rest = {asked(end)[0].shim for end in late}
    assert rest == set(shims) - known - set(lost)
    for end in (*ends, *late):
        end.close()
    for fd in files:
        os.close(fd)


def test_a_server_that_takes_nothing_is_killed_and_another_one_started(begin: Begin) -> None:
    """Somebody has stopped it, say; a server that does not answer must not be the last one."""
    kept = begin(patience=0.5)
    kept.spare()
    first = kept.server()
    os.kill(first.pid, signal.SIGSTOP)

    has_ended(first.pid)
    first.die()

    assert next_server(kept).handover.generation == 2  # type: ignore[union-attr]


def test_a_server_that_only_closes_its_socket_is_killed(kept: FakeKeeper, server: FakeServer) -> None:
    """Two servers at a time would share what one has to have alone."""
    shim = server.shim()
    os.close(shim._socket.detach())
    server._shims.clear()
    pid, server.pid = server.pid, 0
    line, server._line = server._line, socket.socket()
    os.kill(pid, signal.SIGSTOP)  # It has its own copy of the socket; so it cannot do that by itself.
    server.control.shutdown(socket.SHUT_RDWR)

    has_ended(pid)

    next_server(kept)
    line.close()
    server.pid = pid
    server.die()


# Shims.


def test_what_commands_do_goes_on_and_is_told_to_the_next_server(
    kept: FakeKeeper, server: FakeServer
) -> None:
    """One that runs, one that has exited, one that was killed, and a shim without any."""
    running = Pipes(kept, server.shim(), "while read a; do echo $a; done", key=1)
    exited = Pipes(kept, server.shim(), "echo last; exit 7", key=2)
    killed = Pipes(kept, server.shim(), "sleep 1000 & echo begun; read _", key=3)
    assert os.read(killed.stdout, 100) == b"begun\n"
    killed.shim.kill()
    for pipes, end in ((running, News.STARTED), (exited, News.EXITED), (killed, News.EMPTY)):
        until_news(pipes.shim, end)
        pipes.close()
    server.shim()

    server.die()
    answers = {
        state.key: (state, files, shim)
        for shim in handed(next_server(kept))
        for state, files in [asked(shim)]
    }

    assert sorted(answers) == [0, 1, 2, 3]
    assert [answers[key][0].pid > 0 for key in range(4)] == [False, True, True, True]
    assert [tuple(answers[key][1]) for key in range(4)] == [(), *[(HeldPlace.STDIN, HeldPlace.STDOUT)] * 3]
    state, files, shim = answers[1]
    assert news(shim).value == state.pid
    os.write(files[HeldPlace.STDIN], b"on\n")
    assert os.read(files[HeldPlace.STDOUT], 100) == b"on\n"
    state, files, shim = answers[2]
    assert [report.value for report in (news(shim), news(shim))] == [state.pid, 7]
    assert os.read(files[HeldPlace.STDOUT], 100) == b"last\n"
    state, files, shim = answers[3]
    assert [news(shim).news for _ in range(3)] == [News.STARTED, News.EXITED, News.EMPTY]
    assert state.killed
    for _, files, _ in answers.values():
        for fd in files.values():
            os.close(fd)


def test_what_a_leftover_wrote_is_read_by_the_server_after_the_next(
    kept: FakeKeeper, server: FakeServer
) -> None:
    """The first one has heard of the end of everybody, and died before it read the pipe."""
    pipes = Pipes(kept, server.shim(), "exec 3<&0; (read _; echo leftover) <&3 & exit 0", key=1)
    until_news(pipes.shim, News.EXITED)
    pipes.shim.release()
    os.write(pipes.stdin, b"\n")
    until_news(pipes.shim, News.EMPTY)
    pipes.close()

    server.die()
    next_server(kept).die()
    (shim,) = handed(next_server(kept))
    state, files = asked(shim)

    assert (state.key, state.released) == (1, True)
    assert os.read(files[HeldPlace.STDOUT], 100) == b"leftover\n"
    assert os.read(files[HeldPlace.STDOUT], 100) == b""
    for fd in files.values():
        os.close(fd)


def test_commands_without_a_key_end_when_the_server_dies(kept: FakeKeeper, server: FakeServer) -> None:
    """They belong to a connection, which has ended with it.  Those with a key do not notice."""
    plain = [Pipes(kept, server.shim(), "setsid sleep 1000 & read _", key=0) for _ in range(3)]
    keyed = Pipes(kept, server.shim(), "read _", key=1)
    ends = [until_news(pipes.shim, News.STARTED).value for pipes in plain]
    stays = until_news(keyed.shim, News.STARTED).value
    for pipes in (*plain, keyed):
        pipes.close()

    server.die()

    for pid in ends:
        until(lambda pid=pid: not is_alive(pid))  # type: ignore[misc]
    assert is_alive(stays)
    next_server(kept)


def test_the_tree_of_a_shim_that_was_killed_ends_and_nobody_is_left_to_reap(
    kept: FakeKeeper, server: FakeServer
) -> None:
    """The keeper takes its place; the spare and the server are no strays."""
    before, others = kept.files(), kept.members()
    assert server.pid in others
    pipes = Pipes(kept, server.shim(), "setsid sleep 1000 & sleep 1000 & read _", key=1)
    started = until_news(pipes.shim, News.STARTED)

    os.kill(started.shim, signal.SIGKILL)

    assert news(pipes.shim).news is News.LOST
    until(lambda: kept.members() == others)
    until(lambda: kept.files() == before)
    pipes.close()
    server.die()
    next_server(kept)


def test_commands_have_the_limit_of_files_that_was_given(begin: Begin) -> None:
    """The keeper needs a descriptor for each shim; programs that use select must not see that."""
    kept = begin(files="100,200")
    kept.spare()
    server = kept.server()
    server.rise()

    pipes = Pipes(kept, server.shim(), "ulimit -Sn; ulimit -Hn; read _", key=0)

    until_news(pipes.shim, News.STARTED)
    assert select.select([pipes.stdout], [], [], GUARD)[0]
    said = os.read(pipes.stdout, 100)
    while said.count(b"\n") < 2:
        said += os.read(pipes.stdout, 100)
    assert said == b"100\n200\n"
    pipes.close()


def test_a_shim_has_nothing_of_the_keepers(kept: FakeKeeper, server: FakeServer) -> None:
    """It would hold the socket of another shim open, which would then never notice an end."""
    server.shim()

    pid = asked(server.shim())[0].shim

    files = [os.readlink(f"/proc/{pid}/fd/{name}") for name in sorted(os.listdir(f"/proc/{pid}/fd"))]
    assert [name.split(":")[0] for name in files] == ["/dev/null", "/dev/null", "/dev/null", "socket"]
    assert status(pid)["Name"] == "holdfast-shim"


# Asking them.


def test_all_shims_are_asked_and_those_that_do_not_answer_are_left_out(
    kept: FakeKeeper, server: FakeServer
) -> None:
    """They are asked some at a time; one was killed."""
    shims = [server.shim() for _ in range(120)]
    pids = [asked(shim)[0].shim for shim in shims]
    os.kill(pids[7], signal.SIGKILL)
    has_ended(pids[7])
    poll = select.poll()
    poll.register(shims[7].fileno(), 0)
    assert poll.poll(GUARD * 1000)

    answered = {state.shim: shim for shim, state, _ in ask_all(shims)}

    assert answered == {pid: shim for pid, shim in zip(pids, shims, strict=True) if pid != pids[7]}
    assert shims[7].fileno() == -1


def test_a_shim_that_does_not_answer_in_time_is_given_up(ends: tuple[Shim, socket.socket]) -> None:
    """One that hangs in the kernel must not keep the others waiting."""
    shim, far = ends

    assert list(ask_all([shim], wait=0.01)) == []

    assert shim.fileno() == -1
    assert far.recv(1000)
    assert far.recv(1000) == b""


def test_answers_that_nobody_reads_do_not_keep_the_next_server_from_its_shims(begin: Begin) -> None:
    """The kernel bounds how many descriptors of a user may be on their way."""
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:  # For whom there is no bound.
        if shutil.which("setpriv") is None:
            pytest.skip("there is no setpriv")
        prefix = "setpriv", "--bounding-set=-sys_resource,-sys_admin"
    kept = begin(files="64,64", prefix=prefix)
    kept.spare()
    server = kept.server()
    server.rise()
    for key in range(1, 61):
        pipes = Pipes(kept, server.shim(), "read _", key=key)
        until_news(pipes.shim, News.STARTED)
        pipes.close()
    for _ in range(2):
        for shim in server._shims:
            shim.ask()
        assert select.select(server._shims, [], [], GUARD)[0]
        server.die()
        server = next_server(kept)

    answers = list(ask_all(handed(server)))

    assert {state.key for _, state, _ in answers} == set(range(1, 61))
    assert {tuple(files) for _, _, files in answers} == {(HeldPlace.STDIN, HeldPlace.STDOUT)}
    for _, _, files in answers:
        for fd in files.values():
            os.close(fd)
