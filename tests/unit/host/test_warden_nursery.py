"""Our side of the nursery: when it is started, what replaces it, what it leaves."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast.host
from holdfast.host.orders import LOST, News, Order, Report
from holdfast.host.warden import _MOST_IDLE, Nursery, Warden
from tests.fakes.nursery import GUARD, has_ended, until
from tests.fakes.process import has_children, is_alive, nothing_left_open, status

HOST = Path(holdfast.host.__file__).parent
IN_PYTHON = (sys.executable, "-I", "-S", str(HOST / "nursery.py"))
NOWHERE = ("/nowhere/nursery",)

SLEEP = Order(cwd=b"/", program=b"/bin/sleep", argv=[b"sleep", b"1000"], env=[])
TRUE = Order(cwd=b"/", program=b"/bin/true", argv=[b"true"], env=[])


@contextmanager
def made(*programs: tuple[str, ...], files_limit: tuple[int, int] | None = None) -> Iterator[Nursery]:
    """A nursery, of which no child and no descriptor is left afterwards."""
    with nothing_left_open():
        nursery = Nursery(files_limit=files_limit, programs=programs)
        try:
            yield nursery
        finally:
            nursery.close()


@contextmanager
def running(nursery: Nursery, order: Order = SLEEP) -> Iterator[tuple[Warden, Report]]:
    """A warden that has started a command, and its first news."""
    warden = nursery.warden()
    try:
        start(warden, order)
        yield warden, news(warden)
    finally:
        warden.close()


def start(warden: Warden, order: Order) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    try:
        warden.start(order, [null, null])
    finally:
        os.close(null)


def news(warden: Warden) -> Report:
    """The next news."""
    while (report := warden.hear()) is None:
        assert select.select([warden], [], [], GUARD)[0], "there is no news"
    return report


def the_nursery() -> int:
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


def test_it_is_started_with_the_first_warden_and_only_once() -> None:
    """A server that starts nothing has no children; one that starts much has one."""
    with made() as nursery:
        before = has_children()
        with running(nursery) as (_, first):
            pid = the_nursery()
            with running(nursery) as (_, second):
                nursery.open()

                assert not before
                assert the_nursery() == pid
                assert {first.warden, second.warden} <= children_of(pid)
                assert first.warden != second.warden


@pytest.mark.parametrize("program", [IN_PYTHON, None], ids=["python", "best"])
def test_a_command_comes_to_its_end_in_either_form(program: tuple[str, ...] | None) -> None:
    """An installation without a compiler must not notice."""
    with made(*([program] if program else [])) as nursery, running(nursery, TRUE) as (warden, started):
        exited = news(warden)
        warden.release()
        empty = news(warden)

    told = [started.news, exited.news, exited.value, exited.alone, empty.news]
    assert told == [News.STARTED, News.EXITED, 0, True, News.EMPTY]


def test_children_have_the_limit_of_files_it_was_given() -> None:
    """Ours is raised for many processes; many programs do not expect that."""
    with made(files_limit=(123, 456)) as nursery, running(nursery) as (_, started):
        assert resource.prlimit(started.value, resource.RLIMIT_NOFILE) == (123, 456)


def test_its_own_files_are_the_socket_and_nothing_of_ours() -> None:
    """Whoever reads the server's output must see it end with the server; so nobody else may hold it."""
    fd = os.open("/", os.O_RDONLY)
    os.set_inheritable(fd, True)  # As a library of ours may have forgotten to do.
    with made() as nursery, running(nursery) as (_, started):
        pid = the_nursery()
        held = {who: sorted(files_of(who)) for who in (pid, started.warden)}
    os.close(fd)

    assert held == {who: ["/dev/null", "/dev/null", "/dev/null", "socket"] for who in held}


def files_of(pid: int) -> list[str]:
    """What a process has open, without the numbers of sockets."""
    folder = f"/proc/{pid}/fd"
    return [os.readlink(f"{folder}/{name}").partition(":")[0] for name in os.listdir(folder)]


# What replaces it.


def test_a_killed_nursery_is_replaced_and_its_commands_live_on() -> None:
    """One mistaken kill must cost neither those who run nor those who come."""
    with made() as nursery, running(nursery) as (old, before):
        first = the_nursery()
        kill(first)

        with running(nursery) as (_, after):
            assert the_nursery() != first
            assert after.news is News.STARTED
            assert is_alive(before.value)
            old.kill()
            told = [news(old).news, news(old).news]

    assert told == [News.EXITED, News.EMPTY]


@pytest.mark.slow
def test_a_nursery_that_was_of_use_is_replaced_by_its_like() -> None:
    """That somebody killed it says nothing against its program."""
    with made(IN_PYTHON, NOWHERE) as nursery:
        for _ in range(3):
            with running(nursery) as (_, started):
                assert started.news is News.STARTED
            kill(the_nursery())


@pytest.fixture(params=["missing", "not executable", "not a program", "of another machine"])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """A program that the system does not start."""
    file = tmp_path / "nursery"
    if request.param != "missing":
        file.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100) if "machine" in request.param else b"x")
        file.chmod(0o644 if request.param == "not executable" else 0o755)
    return (str(file),)


def test_a_program_that_cannot_be_started_gives_way_to_the_next(broken: tuple[str, ...]) -> None:
    """A package may have been built for another machine; the first command must not pay for it."""
    with made(broken, NOWHERE, IN_PYTHON) as nursery, running(nursery) as (_, started):
        assert started.news is News.STARTED


@pytest.mark.parametrize("program", [("/bin/false",), ("/bin/sh", "-c", "kill -SEGV $$")])
def test_a_program_that_ends_before_it_is_ready_gives_way_to_the_next(program: tuple[str, ...]) -> None:
    """A library or an instruction may be missing, which only its run shows; no command may pay for it."""
    with made(program, IN_PYTHON) as nursery, running(nursery) as (_, started):
        assert started.news is News.STARTED
        assert len(children_of(os.getpid())) == 1


def test_without_any_program_that_works_the_caller_is_told() -> None:
    with made(NOWHERE, ("/nowhere/either",)) as nursery:
        for _ in range(2):
            with pytest.raises(FileNotFoundError):
                nursery.warden()
        nursery.prepare()


# Runs with as much memory as it has: no process can be made.  With more again, one can.
OUT_OF_MEMORY = """if True:
    import os, resource, sys
    from holdfast.host.warden import Nursery
    nursery = Nursery(programs=[(sys.argv[1], "-I", "-S", sys.argv[2]), ("/bin/sleep", "1000")])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    said = []
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, limits[1]))
    try:
        nursery.open()
    except OSError as error:
        said.append(error.strerror)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    nursery.open()
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        said.append(os.readlink("/proc/%s/exe" % file.read().strip()))
    print(*said, sep="; ")
    nursery.close()
"""


@pytest.mark.slow
def test_a_host_without_memory_for_it_does_not_speak_against_its_program() -> None:
    """Later there is memory again, and the next one in the line is slower by far."""
    ran = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY, *IN_PYTHON[::3]], check=True, capture_output=True, text=True
    )

    assert ran.stdout == f"Cannot allocate memory; {os.path.realpath(sys.executable)}\n"


# The spare warden.


def test_a_warden_made_ready_is_the_next_one_taken() -> None:
    """It has settled while nobody waited."""
    with made() as nursery:
        nursery.prepare()
        nursery.prepare()
        pid = the_nursery()
        until(lambda: len(children_of(pid)) == 1)
        ready = children_of(pid)

        with running(nursery) as (_, first), running(nursery) as (_, second):
            assert {first.warden} == ready
            assert {first.warden, second.warden} <= children_of(pid)


def test_a_warden_that_is_given_back_is_the_next_one_taken_and_only_so_many_are_kept() -> None:
    with made() as nursery:
        wardens = [nursery.warden() for _ in range(_MOST_IDLE + 3)]
        pid = the_nursery()
        until(lambda: len(children_of(pid)) >= len(wardens))

        for warden in wardens[:-1]:
            nursery.take_back(warden, usable=True)

        until(lambda: len(children_of(pid)) == _MOST_IDLE + 1)
        nursery.take_back(wardens[-1], usable=True)
        until(lambda: len(children_of(pid)) == 1)
        (kept,) = children_of(pid)
        with running(nursery) as (_, report):
            assert report.warden == kept


def test_a_warden_that_is_given_back_after_the_end_ends() -> None:
    with made() as nursery:
        warden = nursery.warden()
        pid = the_nursery()
        until(lambda: len(children_of(pid)) == 1)
        (number,) = children_of(pid)
        nursery.close()

        nursery.take_back(warden, usable=True)

        has_ended(number)


def test_a_spare_that_somebody_has_killed_is_not_taken() -> None:
    with made() as nursery:
        nursery.prepare()
        pid = the_nursery()
        until(lambda: len(children_of(pid)) == 1)
        (spare,) = children_of(pid)
        os.kill(spare, signal.SIGKILL)
        until(lambda: not children_of(pid))

        with running(nursery) as (_, report):
            assert report.news is News.STARTED
            assert report.warden != spare


def test_a_spare_ends_with_the_nursery() -> None:
    with made() as nursery:
        nursery.prepare()
        pid = the_nursery()
        until(lambda: len(children_of(pid)) == 1)
        (spare,) = children_of(pid)

        nursery.close()

        has_ended(spare)


# Its end.


def test_it_can_be_closed_at_any_time_and_twice() -> None:
    with made() as nursery:
        nursery.close()
        nursery.open()
        pid = the_nursery()
        nursery.close()
        nursery.close()

        assert status(pid) == {}


def test_commands_outlive_a_closed_nursery_until_they_are_given_up() -> None:
    """The last words of those who end with the server are still wanted."""
    with made() as nursery, running(nursery) as (warden, started):
        nursery.close()

        assert is_alive(started.value)
        warden.close()
        has_ended(started.warden)
        assert not is_alive(started.value)


def test_a_nursery_that_somebody_else_reaped_can_be_closed() -> None:
    """Any library may wait for every child there is."""
    with made() as nursery:
        nursery.open()
        pid = the_nursery()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

        nursery.close()


# A warden's end.


def test_a_warden_that_is_killed_is_lost_and_its_tree_ends() -> None:
    with made() as nursery, running(nursery) as (warden, started):
        os.kill(started.warden, signal.SIGKILL)

        assert news(warden) is LOST
        has_ended(started.value)


def test_a_start_that_fails_is_told_and_then_the_warden_is_lost() -> None:
    order = Order(cwd=b"/nowhere", program=b"/bin/true", argv=[b"true"], env=[])
    with made() as nursery, running(nursery, order) as (warden, failed):
        assert failed.news is News.FAILED
        assert news(warden) is LOST


@pytest.mark.parametrize("size", [65_536, 65_537, 400_000])
def test_an_order_of_any_size_arrives(size: int) -> None:
    """Also one that is not sent as a message."""
    variables = [b"%d=" % number + b"x" * 60_000 for number in range(size // 60_000)]
    plain = Order(cwd=b"/", program=b"/bin/sleep", argv=SLEEP.argv, env=[*variables, b""])
    last = b"y" * (size - len(plain.encode()[1]))
    order = Order(cwd=b"/", program=b"/bin/sleep", argv=SLEEP.argv, env=[*variables, last])

    with made() as nursery, running(nursery, order) as (_, started):
        assert len(order.encode()[1]) == size
        wanted = b"".join(variable + b"\0" for variable in order.env)
        # The kernel tells of the start while it still lays out what the program is given.
        until(lambda: Path(f"/proc/{started.value}/environ").read_bytes() == wanted)
