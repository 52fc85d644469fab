"""Our side of the fork server: when it is started, what replaces it, what it leaves."""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import HostUnfit
from holdfast.host.orders import StartOrder
from holdfast.host.shim import _MOST_IDLE, PROGRAM, ForkServer, Shim, compiled
from holdfast.reports import LOST, News, Report
from tests.fakes.fork_server import GUARD, has_ended, until
from tests.fakes.process import has_children, is_alive, nothing_left_open, status

SLEEP = StartOrder(cwd=b"/", program=b"/bin/sleep", argv=[b"sleep", b"1000"], env=[])
TRUE = StartOrder(cwd=b"/", program=b"/bin/true", argv=[b"true"], env=[])


@contextmanager
def made(program: str = PROGRAM, *, files_limit: tuple[int, int] | None = None) -> Iterator[ForkServer]:
    """A fork server, of which no child and no descriptor is left afterwards."""
    with nothing_left_open():
        fork_server = ForkServer(files_limit=files_limit, program=program)
        try:
            yield fork_server
        finally:
            fork_server.close()


@contextmanager
def running(fork_server: ForkServer, order: StartOrder = SLEEP) -> Iterator[tuple[Shim, Report]]:
    """A shim that has started a command, and its first news."""
    shim = fork_server.shim()
    try:
        start(shim, order)
        yield shim, news(shim)
    finally:
        shim.close()


def start(shim: Shim, order: StartOrder) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    try:
        shim.start(order, [null, null])
    finally:
        os.close(null)


def news(shim: Shim) -> Report:
    """The next news."""
    while (report := shim.receive()) is None:
        assert select.select([shim], [], [], GUARD)[0], "there is no news"
    return report


def the_fork_server() -> int:
    """The pid of the one child of ours."""
    (pid,) = children_of(os.getpid())
    return pid


def children_of(pid: int) -> set[int]:
    """The children of a process, if its first thread made them."""
    return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def kill(pid: int) -> None:
    """Kill a child of ours and wait for its end; it is not reaped."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


# Its start.


def test_it_is_started_with_the_first_shim_and_only_once() -> None:
    """A server that starts nothing has no children; one that starts much has one."""
    with made() as fork_server:
        before = has_children()
        with running(fork_server) as (_, first):
            pid = the_fork_server()
            with running(fork_server) as (_, second):
                fork_server.open()

                assert not before
                assert the_fork_server() == pid
                assert {first.shim, second.shim} <= children_of(pid)
                assert first.shim != second.shim


def test_a_command_comes_to_its_end() -> None:
    with made() as fork_server, running(fork_server, TRUE) as (shim, started):
        exited = news(shim)
        shim.release()
        empty = news(shim)

    told = [started.news, exited.news, exited.value, exited.alone, empty.news]
    assert told == [News.STARTED, News.EXITED, 0, True, News.EMPTY]


def test_children_have_the_limit_of_files_it_was_given() -> None:
    """Ours is raised for many processes; many programs do not expect that."""
    with made(files_limit=(123, 456)) as fork_server, running(fork_server) as (_, started):
        assert resource.prlimit(started.value, resource.RLIMIT_NOFILE) == (123, 456)


def test_its_own_files_are_the_socket_and_nothing_of_ours() -> None:
    """Whoever reads the server's output must see it end with the server; so nobody else may hold it."""
    fd = os.open("/", os.O_RDONLY)
    os.set_inheritable(fd, True)  # As a library of ours may have forgotten to do.
    with made() as fork_server, running(fork_server) as (_, started):
        pid = the_fork_server()
        held = {who: sorted(files_of(who)) for who in (pid, started.shim)}
    os.close(fd)

    assert held == {who: ["/dev/null", "/dev/null", "/dev/null", "socket"] for who in held}


def files_of(pid: int) -> list[str]:
    """What a process has open, without the numbers of sockets."""
    folder = f"/proc/{pid}/fd"
    return [os.readlink(f"{folder}/{name}").partition(":")[0] for name in os.listdir(folder)]


# What replaces it.


def test_a_killed_fork_server_is_replaced_and_its_commands_live_on() -> None:
    """One mistaken kill must cost neither those who run nor those who come."""
    with made() as fork_server, running(fork_server) as (old, before):
        first = the_fork_server()
        kill(first)

        with running(fork_server) as (_, after):
            assert the_fork_server() != first
            assert after.news is News.STARTED
            assert is_alive(before.value)
            old.kill()
            told = [news(old).news, news(old).news]

    assert told == [News.EXITED, News.EMPTY]


def test_a_fork_server_can_be_killed_again_and_again() -> None:
    """That somebody killed it says nothing against its program."""
    with made() as fork_server:
        for _ in range(3):
            with running(fork_server) as (_, started):
                assert started.news is News.STARTED
            kill(the_fork_server())


# A program that cannot be used.

BROKEN = {
    "missing": "No such file or directory",
    "not executable": "Permission denied",
    "not a program": "Exec format error",
    "of another machine": "Exec format error",
}


def script(place: Path, text: str) -> str:
    """A program that stands in for the fork server."""
    file = place / "fork_server"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("case", BROKEN)
def test_a_program_that_cannot_be_run_is_named_with_the_way_to_get_one(case: str, tmp_path: Path) -> None:
    """There is no other: whoever runs the host has to install it again."""
    file = tmp_path / "fork_server"
    if case != "missing":
        file.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100) if "machine" in case else b"x")
        file.chmod(0o644 if case == "not executable" else 0o755)

    with made(str(file)) as fork_server:
        for ask in (fork_server.open, fork_server.prepare, fork_server.shim):
            with pytest.raises(HostUnfit) as caught:
                ask()

            assert caught.value.reason.startswith(f"{file} cannot be run: {BROKEN[case]}; ")
            assert "install holdfast again" in caught.value.reason
            assert not has_children()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 1", "ends as soon as it is run"),
        ("kill -SEGV $$", "ends as soon as it is run"),
        ("printf '\\1' >&3; exec sleep 1000", "is of another version of holdfast"),
    ],
    ids=["ends", "crashes", "other messages"],
)
def test_a_program_that_is_of_no_use_here_is_not_used(text: str, reason: str, tmp_path: Path) -> None:
    """A library or an instruction may be missing; one of other messages would take one path for another."""
    with made(script(tmp_path, text)) as fork_server:
        with pytest.raises(HostUnfit, match=reason):
            fork_server.open()

        assert not has_children()


def test_a_program_that_is_installed_later_is_used(tmp_path: Path) -> None:
    """That there was none is not remembered."""
    file = tmp_path / "fork_server"
    with made(str(file)) as fork_server:
        with pytest.raises(HostUnfit):
            fork_server.open()
        shutil.copy(PROGRAM, file)

        with running(fork_server) as (_, started):
            assert started.news is News.STARTED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"), [(("serve", "--listen", "stdio://"), 1), (("run", "--", "true"), 125)]
)
def test_an_installation_without_the_program_says_so_at_its_start(
    arguments: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    """Not at the first request of a client."""
    package = Path(holdfast.__file__).parent
    ignored = shutil.ignore_patterns("fork_server", "__pycache__")
    shutil.copytree(package, tmp_path / "holdfast", ignore=ignored)

    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    missing = tmp_path / "holdfast" / "host" / "fork_server"
    assert (done.returncode, done.stdout) == (code, "")
    assert f"this host cannot run processes: {missing} cannot be run: No such file" in done.stderr
    assert "install holdfast again on this host" in done.stderr


def test_whether_there_is_a_program_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled() == PROGRAM

    monkeypatch.setattr("holdfast.host.shim.PROGRAM", str(tmp_path / "fork_server"))

    assert compiled() is None


# Runs with as much memory as it has: no process can be made.  With more again, one can.
OUT_OF_MEMORY = """if True:
    import os, resource, sys
    from holdfast.host.shim import ForkServer
    fork_server = ForkServer()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    said = []
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, limits[1]))
    try:
        fork_server.open()
    except OSError as error:
        said.append(error.strerror)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    fork_server.open()
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        said.append(os.readlink("/proc/%s/exe" % file.read().strip()))
    print(*said, sep="; ")
    fork_server.close()
"""


@pytest.mark.slow
def test_a_host_without_memory_for_it_does_not_speak_against_its_program() -> None:
    """Later there is memory again."""
    ran = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], check=True, capture_output=True, text=True)

    assert ran.stdout == f"Cannot allocate memory; {os.path.realpath(PROGRAM)}\n"


# The spare shim.


def test_a_shim_made_ready_is_the_next_one_taken() -> None:
    """It has settled while nobody waited."""
    with made() as fork_server:
        fork_server.prepare()
        fork_server.prepare()
        pid = the_fork_server()
        until(lambda: len(children_of(pid)) == 1)
        ready = children_of(pid)

        with running(fork_server) as (_, first), running(fork_server) as (_, second):
            assert {first.shim} == ready
            assert {first.shim, second.shim} <= children_of(pid)


def test_a_shim_that_is_given_back_is_the_next_one_taken_and_only_so_many_are_kept() -> None:
    with made() as fork_server:
        shims = [fork_server.shim() for _ in range(_MOST_IDLE + 3)]
        pid = the_fork_server()
        until(lambda: len(children_of(pid)) >= len(shims))

        for shim in shims[:-1]:
            fork_server.take_back(shim, usable=True)

        until(lambda: len(children_of(pid)) == _MOST_IDLE + 1)
        fork_server.take_back(shims[-1], usable=True)
        until(lambda: len(children_of(pid)) == 1)
        (kept,) = children_of(pid)
        with running(fork_server) as (_, report):
            assert report.shim == kept


def test_a_shim_that_is_given_back_after_the_end_ends() -> None:
    with made() as fork_server:
        shim = fork_server.shim()
        pid = the_fork_server()
        until(lambda: len(children_of(pid)) == 1)
        (number,) = children_of(pid)
        fork_server.close()

        fork_server.take_back(shim, usable=True)

        has_ended(number)


def test_a_spare_that_somebody_has_killed_is_not_taken() -> None:
    with made() as fork_server:
        fork_server.prepare()
        pid = the_fork_server()
        until(lambda: len(children_of(pid)) == 1)
        (spare,) = children_of(pid)
        os.kill(spare, signal.SIGKILL)
        until(lambda: not children_of(pid))

        with running(fork_server) as (_, report):
            assert report.news is News.STARTED
            assert report.shim != spare


def test_a_spare_ends_with_the_fork_server() -> None:
    with made() as fork_server:
        fork_server.prepare()
        pid = the_fork_server()
        until(lambda: len(children_of(pid)) == 1)
        (spare,) = children_of(pid)

        fork_server.close()

        has_ended(spare)


# Its end.


def test_it_can_be_closed_at_any_time_and_twice() -> None:
    with made() as fork_server:
        fork_server.close()
        fork_server.open()
        pid = the_fork_server()
        fork_server.close()
        fork_server.close()

        assert status(pid) == {}


def test_commands_outlive_a_closed_fork_server_until_they_are_given_up() -> None:
    """The last words of those who end with the server are still wanted."""
    with made() as fork_server, running(fork_server) as (shim, started):
        fork_server.close()

        assert is_alive(started.value)
        shim.close()
        has_ended(started.shim)
        assert not is_alive(started.value)


def test_a_fork_server_that_somebody_else_reaped_can_be_closed() -> None:
    """Any library may wait for every child there is."""
    with made() as fork_server:
        fork_server.open()
        pid = the_fork_server()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

        fork_server.close()


# A shim's end.


def test_a_shim_that_is_killed_is_lost_and_its_tree_ends() -> None:
    with made() as fork_server, running(fork_server) as (shim, started):
        os.kill(started.shim, signal.SIGKILL)

        assert news(shim) is LOST
        has_ended(started.value)


def test_a_start_that_fails_is_told_and_then_the_shim_is_lost() -> None:
    order = StartOrder(cwd=b"/nowhere", program=b"/bin/true", argv=[b"true"], env=[])
    with made() as fork_server, running(fork_server, order) as (shim, failed):
        assert failed.news is News.FAILED
        assert news(shim) is LOST


@pytest.mark.parametrize("size", [65_536, 65_537, 400_000])
def test_an_order_of_any_size_arrives(size: int) -> None:
    """Also one that is not sent as a message."""
    variables = [b"%d=" % number + b"x" * 60_000 for number in range(size // 60_000)]
    plain = StartOrder(cwd=b"/", program=b"/bin/sleep", argv=SLEEP.argv, env=[*variables, b""])
    last = b"y" * (size - len(plain.encode()[1]))
    order = StartOrder(cwd=b"/", program=b"/bin/sleep", argv=SLEEP.argv, env=[*variables, last])

    with made() as fork_server, running(fork_server, order) as (_, started):
        assert len(order.encode()[1]) == size
        wanted = b"".join(variable + b"\0" for variable in order.env)
        # The kernel tells of the start while it still lays out what the program is given.
        until(lambda: Path(f"/proc/{started.value}/environ").read_bytes() == wanted)


def test_who_asks_for_a_shim_without_a_past_gets_none_that_was_used() -> None:
    """What its earlier commands have used would count for the next one."""
    with made() as fork_server, running(fork_server, TRUE) as (used, _):
        assert news(used).news is News.EXITED
        used.release()
        assert news(used).news is News.EMPTY
        fork_server.take_back(used, usable=True)
        fresh = fork_server.shim(unused=True)
        fresh.close()

        assert fresh is not used
        assert fork_server.shim() is used
