"""Everybody below a process, as the kernel shows it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from pathlib import Path

import pytest

from holdfast.host import tree
from holdfast.host.tree import Look, below, glance, is_alive, load, signal_all
from holdfast.reports import Load
from tests.fakes.fork_server import has_ended, until
from tests.fakes.process import command, python, sh, started, status, wait_exit
from tests.fakes.rooted import rooted, said

NOBODY = 2**22 + 1
"""More than any pid."""

SLEEP = command("sleep", "1000")


# Who is there.


def test_everybody_below_is_told_parents_first() -> None:
    """Sessions and groups make no difference; the root itself is not below itself."""
    script = "setsid sh -c 'sleep 1000 & echo $$ $! ; wait' & wait"
    with rooted(sh(script)) as (child, root):
        session, sleeper = said(child)

        assert below(root) == [child.pid, session, sleeper]
        assert below(child.pid) == [session, sleeper]
        assert below(sleeper) == below(NOBODY) == below(0) == []


def test_who_has_ended_and_was_not_reaped_is_still_there() -> None:
    """Its number is taken, and it may have children that have not moved on yet."""
    with rooted(sh("exit 3")) as (child, root):
        wait_exit(child)

        assert below(root) == [child.pid]


# Its last thread starts a sleeper.  When it is told to, the others end, one after the other.
THREADS = """if True:
    import os, sys, threading
    def start():
        pid = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
        print(pid, flush=True)
        threading.Event().wait()
    doors = [threading.Event() for _ in range(int(sys.argv[1]))]
    threads = [threading.Thread(target=door.wait) for door in doors]
    for thread in threads:
        thread.start()
    threading.Thread(target=start, daemon=True).start()
    sys.stdin.readline()
    for door, thread in zip(doors, threads):
        door.set()
        thread.join()
    print(0, flush=True)
    sys.stdin.readline()
"""


def test_children_of_all_threads_are_found() -> None:
    """The kernel notes for each child which thread made it."""
    with rooted(python(THREADS, "1", stdin=True)) as (child, root):
        (sleeper,) = said(child)

        assert below(root) == [child.pid, sleeper]


def test_children_are_found_while_threads_end() -> None:
    """A thread that ends while we look must not hide the children of others."""
    with rooted(python(THREADS, "300", stdin=True)) as (child, root):
        (sleeper,) = said(child)
        assert child.stdin is not None
        os.write(child.stdin, b"\n")

        looks = [below(root)]
        while not select.select([child.outputs[0][1]], [], [], 0)[0]:
            looks.append(below(root))

        assert [look for look in looks if look != [child.pid, sleeper]] == []


def test_a_tree_is_looked_at_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes processes without end must not keep us busy without end."""
    monkeypatch.setattr(tree, "_MOST", 3)
    with rooted(sh("for i in 1 2 3 4; do sleep 1000 & done; echo $!; wait")) as (child, root):
        said(child)

        found = below(root)

        assert (len(found), found[0]) == (3, child.pid)


def test_a_glance_goes_no_further_than_it_may() -> None:
    """Whoever it is who makes so many processes: the event loop waits for a glance."""
    with rooted(sh("for i in $(seq 60); do sleep 1000 & done; echo $!; wait")) as (child, root):
        said(child)
        whole, brief = Look(), glance()

        everybody, some = below(root, whole), below(root, brief)

        assert (len(everybody), whole.cut) == (61, False)
        assert brief.cut
        assert 0 < len(some) < 61
        assert set(some) < set(everybody)


def test_who_has_too_many_threads_has_no_children_at_a_glance() -> None:
    """To list the threads alone would take too long."""
    with rooted(python(THREADS, "60", stdin=True)) as (child, root):
        (sleeper,) = said(child)
        look = glance()

        assert below(root, look) == [child.pid]
        assert look.cut
        assert below(root) == [child.pid, sleeper]


# Kernels that do not list children.


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says of everybody who its parent is, and no more."""
    monkeypatch.setattr(tree, "_is_told_children", lambda: False)


@pytest.mark.usefixtures("untold")
def test_where_children_are_not_listed_everybody_is_found_by_parents() -> None:
    """Else nobody would have a limit kept, or hear of a grace."""
    script = "setsid sh -c 'sleep 1000 & echo $$ $! ; wait' & wait"
    with rooted(sh(script)) as (child, root):
        session, sleeper = said(child)

        assert below(root) == [child.pid, session, sleeper]
        assert below(child.pid) == [session, sleeper]
        assert below(sleeper) == below(NOBODY) == below(0) == []
        assert load(root).processes == 3


@pytest.mark.usefixtures("untold")
def test_where_children_are_not_listed_a_glance_does_not_look_at_the_whole_host() -> None:
    with rooted(SLEEP) as (_, root):
        look = glance()

        assert below(root, look) == []
        assert look.cut


def test_whether_children_are_listed_is_seen() -> None:
    assert tree._is_told_children() == os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def test_a_process_is_alive_until_it_has_ended(tmp_path: Path) -> None:
    """Not until it is reaped."""
    with started(sh("read _", stdin=True)) as child:
        before = is_alive(child.pid)
        assert child.stdin is not None
        os.write(child.stdin, b"\n")
        wait_exit(child)

        assert (before, status(child.pid)["State"][0]) == (True, "Z")
        assert not is_alive(child.pid)
    assert not is_alive(child.pid)
    assert not is_alive(NOBODY)


def test_a_name_that_looks_like_an_end_is_only_a_name(tmp_path: Path) -> None:
    """The name stands among the facts, and anybody can choose it."""
    program = str(tmp_path / "x) Z 1 1 (")
    shutil.copy("/bin/sleep", program)
    with rooted(command(program, "1000")) as (child, root):
        assert is_alive(child.pid)
        assert load(root).processes == 1


# Signals to all.


def is_there() -> bool:
    """Of a root that lives for as long as the test."""
    return True


def test_nobody_gets_a_signal_once_the_root_is_gone() -> None:
    """Whoever has its number by then is a stranger, and so are those below."""
    with rooted(command("cat", stdin=True)) as (child, root):
        signal_all(root, signal.SIGKILL, lambda: False)

        assert child.stdin is not None
        os.write(child.stdin, b"1\n")
        assert said(child) == [1]


def test_a_signal_goes_to_everybody_below_and_not_to_the_root() -> None:
    """Whatever session they are in, stopped or not."""
    script = "setsid sh -c 'sleep 1000 & kill -STOP $!; echo $$ $!; wait' & wait"
    with started(SLEEP) as stranger, rooted(sh(script)) as (child, root):
        members = [child.pid, *said(child)]

        signal_all(root, signal.SIGKILL, is_there)

        for pid in members:
            has_ended(pid)
        assert wait_exit(child) == 137
        assert is_alive(root)
        assert is_alive(stranger.pid)


def test_everybody_gets_a_signal_once() -> None:
    """Who counts Ctrl-C must not be told of two."""
    source = """if True:
        import os, signal, sys
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
        print(os.getpid(), flush=True)
        sys.stdin.readline()
        print(len(seen), flush=True)
        sys.stdin.readline()"""
    with rooted(python(source, stdin=True)) as (child, root):
        said(child)

        signal_all(root, signal.SIGUSR1, is_there)
        assert child.stdin is not None
        os.write(child.stdin, b"\n")

        assert said(child) == [1]


def test_a_number_that_is_a_strangers_by_now_gets_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the signal anybody may end, and any number be given away."""
    look = below
    with started(command("cat", stdin=True)) as stranger, started(sh("sleep 1000 & echo $!; wait")) as other:
        (grandchild,) = said(other)
        with rooted(SLEEP) as (child, root):
            # No event tells when the kernel gives a number away; so the look is one that was true once.
            gone = [stranger.pid, grandchild, NOBODY]
            monkeypatch.setattr(tree, "below", lambda root, bounds: [*gone, *look(root), *gone])

            signal_all(root, signal.SIGKILL, is_there)

            assert wait_exit(child) == 137
        # Who has got the signal may look alive for a moment, but does not answer.
        assert stranger.stdin is not None
        os.write(stranger.stdin, b"1\n")
        assert said(stranger) == [1]
        assert is_alive(grandchild)


def test_all_or_nobody_gets_a_signal_if_that_is_wanted() -> None:
    """Who tries in a moment what a thread does later must not send it twice."""
    script = "trap : USR1; for i in $(seq 60); do sleep 1000 & done; echo $!; while :; do sleep 0.01; done"
    with rooted(sh(script)) as (child, root):
        said(child)

        assert not signal_all(root, signal.SIGKILL, is_there, glance(), partly=False)
        assert len(below(root)) >= 61
        assert signal_all(root, signal.SIGKILL, is_there, Look(), partly=False)
        assert wait_exit(child) == 137


def test_a_signal_that_is_given_up_goes_to_nobody() -> None:
    """The number of the root may be a stranger's by then."""
    look = Look()
    look.give_up()
    with rooted(SLEEP) as (child, root):
        signal_all(root, signal.SIGKILL, is_there, look)

        assert is_alive(child.pid)


def test_a_signal_to_nobody_is_no_error() -> None:
    with rooted(sh("exit 3")) as (child, root):
        wait_exit(child)
        signal_all(root, signal.SIGTERM, is_there)
        signal_all(NOBODY, signal.SIGTERM, is_there)
        signal_all(0, signal.SIGTERM, is_there)


# What they use.


def test_nobody_uses_nothing() -> None:
    assert load(NOBODY) == load(0) == Load(0, 0, 0)


def test_those_who_run_are_counted() -> None:
    """Not who has ended and waits to be reaped: it uses nothing but its number."""
    source = """if True:
        import os, signal
        pids = [os.posix_spawn("/bin/sleep", ["sleep", "1000"], {}) for _ in range(3)]
        os.kill(pids[1], signal.SIGKILL)
        print(*pids, flush=True)
        signal.pause()"""
    with rooted(python(source)) as (child, root):
        pids = said(child)
        has_ended(pids[1])

        assert below(root) == [child.pid, *pids]
        assert load(root).processes == 3


HOLD = """if True:
    import os
    held = b"x" * (48 << 20)
    if os.fork():
        os.wait()
    held += b"y"
    print(1, flush=True)
    os.read(0, 1)
"""


def test_memory_is_that_of_all_together() -> None:
    with rooted(python(HOLD, stdin=True)) as (child, root):
        said(child)

        used = load(root)

        assert used.processes == 2
        assert 2 * (48 << 20) < used.memory < 4 * (48 << 20)


TICKS_US = 40_000
"""What is lost when the kernel cuts user and system time of some processes to hundredths of a second."""

BURNT_US = 200_000

PYTHON = f"{sys.executable} -I -S -c"
BURN = f'{PYTHON} "import time\nwhile time.process_time() < {BURNT_US / 1e6}: pass"'


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        BURN.replace("pass", "pass\nprint(0, flush=True); time.sleep(1000)"),
        f"{BURN}; echo 0; sleep 1000",
        f"({BURN} & echo $!); sleep 1000",
    ],
    ids=["running", "waited for by its parent", "waited for by the root"],
)
def test_time_is_that_of_all_together_also_of_those_who_have_ended(script: str) -> None:
    """Else a command could hide what it uses in children that live for a moment."""
    with rooted(sh(script)) as (child, root):
        (pid,) = said(child)
        until(lambda: status(pid) == {})

        assert load(root).cpu_us >= BURNT_US - TICKS_US


@pytest.mark.slow
def test_time_of_who_has_ended_and_was_not_reaped_counts() -> None:
    with rooted(sh(f"exec {BURN}")) as (child, root):
        wait_exit(child)

        assert load(root).cpu_us >= BURNT_US - TICKS_US


@pytest.mark.slow
def test_time_of_the_root_itself_is_not_the_trees() -> None:
    """A shim's work is ours."""
    source = f"""if True:
        import os, time
        while time.process_time() < {BURNT_US / 1e6}: pass
        os.posix_spawn("/bin/sleep", ["sleep", "1000"], {{}})
        print(1, flush=True)
        time.sleep(1000)"""
    with rooted(python(source)) as (child, root):
        said(child)

        assert load(child.pid).cpu_us < BURNT_US - TICKS_US <= load(root).cpu_us
