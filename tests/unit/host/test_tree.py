"""Everybody below a process, as the kernel shows it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.host import tree
from holdfast.host.child import Child
from holdfast.host.tree import Load, below, holders, is_alive, load, signal_all
from holdfast.model import Spec
from tests.fakes.nursery import has_ended, until
from tests.fakes.process import TERMINAL, command, python, read_until, sh, started, status, wait_exit

NOBODY = 2**22 + 1
"""More than any pid."""

SLEEP = command("sleep", "1000")


@contextmanager
def rooted(spec: Spec) -> Iterator[tuple[Child, int]]:
    """A child that runs, and the root of its tree."""
    with started(spec) as child:
        yield child, int(status(child.pid)["PPid"])


def said(child: Child) -> list[int]:
    """Numbers that it writes on a line."""
    return [int(word) for word in read_until(child.outputs[0][1], b"\n").split()]


def sleepers(child: Child) -> list[int]:
    """Those whom a shell started to sleep, once they do: their files are set up before their program runs."""
    pids = said(child)
    until(lambda: all(status(pid).get("Name") == "sleep" for pid in pids))
    return pids


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


def test_a_signal_goes_to_everybody_below_and_not_to_the_root() -> None:
    """Whatever session they are in, stopped or not."""
    script = "setsid sh -c 'sleep 1000 & kill -STOP $!; echo $$ $!; wait' & wait"
    with started(SLEEP) as stranger, rooted(sh(script)) as (child, root):
        members = [child.pid, *said(child)]

        signal_all(root, signal.SIGKILL)

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

        signal_all(root, signal.SIGUSR1)
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
            monkeypatch.setattr(tree, "below", lambda root: [*gone, *look(root), *gone])

            signal_all(root, signal.SIGKILL)

            assert wait_exit(child) == 137
        # Who has got the signal may look alive for a moment, but does not answer.
        assert stranger.stdin is not None
        os.write(stranger.stdin, b"1\n")
        assert said(stranger) == [1]
        assert is_alive(grandchild)


def test_a_signal_to_nobody_is_no_error() -> None:
    with rooted(sh("exit 3")) as (child, root):
        wait_exit(child)
        signal_all(root, signal.SIGTERM)
        signal_all(NOBODY, signal.SIGTERM)
        signal_all(0, signal.SIGTERM)


# Who holds our files.


def test_who_has_the_other_end_of_a_pipe_open_is_its_holder() -> None:
    """For each pipe apart: to hold one output open is not to hold the other."""
    files = (">/dev/null", "2>/dev/null", ">/dev/null 2>&1")
    script = "".join(f'sleep 1000 {given} & pids="$pids $!"; ' for given in files)
    with rooted(sh(f"{script} echo $pids; wait")) as (child, root):
        only_stderr, only_stdout, _ = sleepers(child)
        (_, stdout), (_, stderr) = child.outputs
        members = below(root)

        assert len(members) == 4
        assert holders(members, [stdout]) == [child.pid, only_stdout]
        assert holders(members, [stderr]) == [child.pid, only_stderr]
        assert holders(members, [stdout, stderr]) == [child.pid, only_stderr, only_stdout]
        assert holders([child.pid], [stdout]) == [child.pid]
        assert holders(members, []) == holders([], [stdout]) == []


def test_who_has_ended_holds_nothing() -> None:
    with rooted(sh("exit 3")) as (child, root):
        wait_exit(child)

        assert holders([*below(root), NOBODY], [fd for _, fd in child.outputs]) == []


def test_who_has_the_far_side_of_a_terminal_open_is_its_holder() -> None:
    script = "sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; wait"
    with (
        rooted(command("sh", "-c", script, terminal=TERMINAL)) as (child, root),
        started(command("sleep", "1000", terminal=TERMINAL)) as other,
    ):
        (deaf,) = sleepers(child)
        master = child.outputs[0][1]

        assert below(root) == [child.pid, deaf]
        assert holders([*below(root), other.pid], [master]) == [child.pid]


def test_who_has_opened_its_terminal_by_the_name_for_all_is_a_holder_too() -> None:
    """Whoever asks for a password does; the terminal does not end before it is closed there as well."""
    script = "sleep 1000 </dev/tty >/dev/null 2>&1 & echo $!; wait"
    with rooted(command("sh", "-c", script, terminal=TERMINAL)) as (child, root):
        (asker,) = sleepers(child)

        assert holders(below(root), [child.outputs[0][1]]) == [child.pid, asker]


def test_only_so_many_holders_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_MOST_HOLDERS", 2)
    with rooted(sh("for i in 1 2 3; do sleep 1000 & done; echo $!; wait")) as (child, root):
        said(child)

        assert holders(below(root), [child.outputs[0][1]]) == below(root)[:2]


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
    """A warden's work is ours."""
    source = f"""if True:
        import os, time
        while time.process_time() < {BURNT_US / 1e6}: pass
        os.posix_spawn("/bin/sleep", ["sleep", "1000"], {{}})
        print(1, flush=True)
        time.sleep(1000)"""
    with rooted(python(source)) as (child, root):
        said(child)

        assert load(child.pid).cpu_us < BURNT_US - TICKS_US <= load(root).cpu_us
