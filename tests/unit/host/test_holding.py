"""Who holds our files open at their other end, and whether they are at work."""

from __future__ import annotations

import os
import signal

import pytest

from holdfast.host import holding
from holdfast.host.child import ShimChild
from holdfast.host.holding import ends_of, holders, pulse
from holdfast.host.tree import Look, below, glance
from holdfast.reports import Ends, Pulse
from tests.fakes.fork_server import until
from tests.fakes.process import TERMINAL, command, python, read_until, sh, started, status, wait_exit
from tests.fakes.rooted import rooted, said, sleepers

NOBODY = 2**22 + 1
"""More than any pid."""

BUSY = "while :; do :; done"


def ends(child: ShimChild) -> Ends:
    """What holders of its output have open."""
    return ends_of([fd for _, fd in child.outputs])


# Who holds them.


def test_who_has_the_other_end_of_a_pipe_open_is_its_holder() -> None:
    """For each pipe apart: to hold one output open is not to hold the other."""
    files = (">/dev/null", "2>/dev/null", ">/dev/null 2>&1")
    script = "".join(f'sleep 1000 {given} & pids="$pids $!"; ' for given in files)
    with rooted(sh(f"{script} echo $pids; wait")) as (child, root):
        only_stderr, only_stdout, _ = sleepers(child)
        (_, stdout), (_, stderr) = child.outputs
        members = below(root)

        assert len(members) == 4
        assert holders(members, ends_of([stdout])) == [child.pid, only_stdout]
        assert holders(members, ends_of([stderr])) == [child.pid, only_stderr]
        assert holders(members, ends_of([stdout, stderr])) == [child.pid, only_stderr, only_stdout]
        assert holders([child.pid], ends_of([stdout])) == [child.pid]
        assert holders(members, ends_of([])) == holders([], ends_of([stdout])) == []


def test_who_has_ended_holds_nothing() -> None:
    with rooted(sh("exit 3")) as (child, root):
        wait_exit(child)

        assert holders([*below(root), NOBODY], ends_of([fd for _, fd in child.outputs])) == []


def test_who_has_the_far_side_of_a_terminal_open_is_its_holder() -> None:
    script = "sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; wait"
    with (
        rooted(command("sh", "-c", script, terminal=TERMINAL)) as (child, root),
        started(command("sleep", "1000", terminal=TERMINAL)) as other,
    ):
        (deaf,) = sleepers(child)
        master = child.outputs[0][1]

        assert below(root) == [child.pid, deaf]
        assert holders([*below(root), other.pid], ends_of([master])) == [child.pid]


def test_who_has_opened_its_terminal_by_the_name_for_all_is_a_holder_too() -> None:
    """Whoever asks for a password does; the terminal does not end before it is closed there as well."""
    script = "sleep 1000 </dev/tty >/dev/null 2>&1 & echo $!; wait"
    with rooted(command("sh", "-c", script, terminal=TERMINAL)) as (child, root):
        (asker,) = sleepers(child)

        assert holders(below(root), ends_of([child.outputs[0][1]])) == [child.pid, asker]


def test_only_so_many_holders_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "_MOST_HOLDERS", 2)
    with rooted(sh("for i in 1 2 3; do sleep 1000 & done; echo $!; wait")) as (child, root):
        said(child)

        assert holders(below(root), ends_of([child.outputs[0][1]])) == below(root)[:2]


@pytest.mark.parametrize(
    "given", ["2>&1 >/dev/null", "7>&1 >/dev/null 2>&1"], ids=["as a standard file", "elsewhere"]
)
def test_a_holder_is_found_wherever_it_has_it_open(given: str) -> None:
    """At a glance too, as long as it has few files."""
    with rooted(sh(f"sleep 1000 {given} & echo $!; exec >/dev/null 2>&1; wait")) as (child, root):
        (sleeper,) = sleepers(child)
        stdout = ends_of([child.outputs[0][1]])
        until(lambda: holders(below(root), stdout) == [sleeper])
        look = glance()

        assert holders(below(root, look), stdout, look) == [sleeper]


def test_who_has_many_files_open_is_no_holder_at_a_glance_unless_as_a_standard_file() -> None:
    """The loop must not wait for thousands of names to be read."""
    source = """if True:
        import os, signal
        where = os.dup2(1, 400)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2, *range(10, 300)):
            os.dup2(null, fd)
        os.write(400, b"%d\\n" % os.getpid())
        signal.pause()"""
    with rooted(python(source)) as (child, root):
        assert said(child) == [child.pid]
        look = glance()

        assert holders(below(root, look), ends(child), look) == []
        assert look.cut
        assert holders(below(root), ends(child)) == [child.pid]


# Whether they are at work.


def is_quiet(root: int, wanted: Ends) -> bool:
    """Whether nobody is at work between two looks."""
    return pulse(root, wanted).is_quiet_since(pulse(root, wanted))


def test_who_sleeps_is_quiet_and_who_was_not_looked_at_before_is_not() -> None:
    """What was done before the first look nobody knows."""
    with rooted(sh("sleep 1000 & echo $!; wait")) as (child, root):
        sleepers(child)

        until(lambda: is_quiet(root, ends(child)))

        assert not pulse(root, ends(child)).is_quiet_since(None)
        assert len(pulse(root, ends(child)).switches) == 2


def test_who_was_run_since_is_not_quiet() -> None:
    """Though it sleeps at both looks."""
    with rooted(command("cat", stdin=True)) as (child, root):
        until(lambda: is_quiet(root, ends(child)))
        before = pulse(root, ends(child))
        assert child.stdin is not None

        os.write(child.stdin, b"x\n")
        read_until(child.outputs[0][1], b"\n")

        assert not pulse(root, ends(child)).is_quiet_since(before)
        until(lambda: is_quiet(root, ends(child)))


@pytest.mark.parametrize(
    "script",
    [BUSY, f"({BUSY}) & wait", f"({BUSY}) >/dev/null 2>&1"],
    ids=["a holder", "one of two", "somebody whom a holder waits for"],
)
def test_who_would_run_if_it_had_a_processor_is_at_work(script: str) -> None:
    with rooted(sh(f"echo $$; {script}")) as (child, root):
        said(child)

        until(lambda: pulse(root, ends(child)).at_work)
        assert not is_quiet(root, ends(child))


def test_a_thread_is_at_work_though_the_first_one_sleeps() -> None:
    source = """if True:
        import threading
        def work():
            print(1, flush=True)
            while True: pass
        threading.Thread(target=work, daemon=True).start()
        threading.Event().wait()"""
    with rooted(python(source)) as (child, root):
        said(child)

        until(lambda: pulse(root, ends(child)).at_work)


def test_who_holds_nothing_may_work_as_much_as_it_likes() -> None:
    """Nothing that it does can break the silence."""
    script = f"exec 3>&1; (sh -c '{BUSY}' >/dev/null 2>&1 3>&- & echo $!); exec sleep 1000 3>&-"
    with rooted(sh(script)) as (child, root):
        (busy,) = said(child)
        until(lambda: status(busy)["PPid"] == str(root))

        until(lambda: is_quiet(root, ends(child)))
        assert list(pulse(root, ends(child)).switches) == [child.pid]


def test_who_was_stopped_is_quiet() -> None:
    """It says nothing until somebody lets it go on."""
    with rooted(sh(f"echo $$; {BUSY}")) as (child, root):
        said(child)
        os.kill(child.pid, signal.SIGSTOP)

        until(lambda: is_quiet(root, ends(child)))


def test_where_nobody_holds_it_there_is_nobody_to_wait_for() -> None:
    with rooted(sh("exec >/dev/null 2>&1; sleep 1000")) as (child, root):
        until(lambda: holders(below(root), ends(child)) == [])

        assert pulse(root, ends(child)) == Pulse(at_work=False, switches={}, known=True)
        assert pulse(root, ends(child)).is_quiet_since(None)
        assert pulse(NOBODY, ends(child)).is_quiet_since(None)


def test_who_could_not_be_looked_at_is_not_quiet() -> None:
    """It would lose the last words of somebody."""
    with rooted(sh("sleep 1000 & echo $!; wait")) as (child, root):
        sleepers(child)
        until(lambda: is_quiet(root, ends(child)))

        cut = pulse(root, ends(child), Look(3))

        assert not cut.known
        assert not cut.is_quiet_since(cut)
