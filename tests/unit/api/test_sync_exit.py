"""holdfast without an event loop, while the interpreter ends: an error, and never a hang."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SHUTTING_DOWN = "OutOfTurn: the interpreter is shutting down"

STRICT = ("-W", "error")
"""Nothing is left behind, not even a coroutine that never ran."""

TRY = """
import os
def attempt(what, work, write=os.write, kind=type):  # At the end there is no print any more.
    try:
        write(1, f"{what} {work()}\\n".encode())
    except BaseException as error:
        write(1, f"{what} {kind(error).__name__}: {error}\\n".encode())
"""


def python(source: str, *options: str) -> list[str]:
    """What a program prints that ends by itself, as lines."""
    done = subprocess.run(
        [sys.executable, *options, "-c", TRY + textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("before", ["", "holdfast.run(['true'])"], ids=["first", "again"])
@pytest.mark.parametrize("place", ["__main__", "sys", "builtins"])
def test_a_command_in_a_finalizer_is_refused(before: str, place: str) -> None:
    """There are no threads any more: the one that would do the work never begins."""
    source = f"""
        import holdfast, {place}
        holdfast.sync
        {before}
        class Late:
            def __init__(self):
                self.attempt, self.run = attempt, holdfast.run
            def __del__(self):
                self.attempt("run", lambda: self.run(["true"]))
        {place}.late = Late()
    """

    assert python(source, *STRICT) == [f"run {SHUTTING_DOWN}"]


def test_a_host_that_was_forgotten_is_of_no_use_in_a_finalizer() -> None:
    """Its thread is gone; whatever is asked of it, or of what it has started, is refused."""
    source = """
        import holdfast
        host = holdfast.sync.local().open()
        handle = host.start(["cat"], stdin=holdfast.PIPE)
        class Late:
            def __init__(self):
                self.host, self.handle, self.attempt = host, handle, attempt
            def __del__(self):
                self.attempt("run", lambda: self.host.run(["true"]))
                self.attempt("wait", lambda: self.handle.wait())
                self.attempt("write", lambda: self.handle.stdin.write(b"x"))
                self.attempt("read", lambda: self.handle.stdout.read())
                self.attempt("end", lambda: self.handle.end())
                self.attempt("close", lambda: self.host.close())
                self.attempt("close", lambda: self.host.close())
                self.attempt("open", lambda: self.host.open())
        late = Late()
    """

    calls = ("run", "wait", "write", "read", "end", "close")
    assert python(source) == [
        *(f"{call} {SHUTTING_DOWN}" for call in calls),
        "close None",
        f"open {SHUTTING_DOWN}",
    ]


def test_at_exit_what_was_registered_after_us_works_and_what_was_before_is_refused() -> None:
    """Exit handlers run in the reverse order.  Ours ends what commands have left running."""
    source = """
        import atexit
        atexit.register(lambda: attempt("last", lambda: holdfast.run(["true"]).returncode))
        import holdfast
        holdfast.run(["true"])
        atexit.register(lambda: attempt("first", lambda: holdfast.run(["true"]).returncode))
    """

    assert python(source, *STRICT) == ["first 0", f"last {SHUTTING_DOWN}"]


def test_an_open_host_works_in_an_exit_handler() -> None:
    source = """
        import atexit, holdfast
        host = holdfast.sync.local().open()
        atexit.register(lambda: (attempt("run", lambda: host.run(["true"]).returncode), host.close()))
    """

    assert python(source, *STRICT) == ["run 0"]


def test_a_thread_that_runs_commands_does_not_hold_up_the_end() -> None:
    """It is told that the end has come, or is not heard of any more."""
    source = """
        import holdfast, threading
        begun = threading.Event()
        def work():
            try:
                while True:
                    holdfast.run(["true"])
                    begun.set()
            except holdfast.OutOfTurn:
                pass
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        begun.wait()
    """

    assert python(source) == []


def test_after_a_fork_the_child_has_an_exit_of_its_own() -> None:
    source = """
        import holdfast, os
        holdfast.run(["true"])
        child = os.fork()
        attempt("run", lambda: holdfast.run(["true"]).returncode)
        if child:
            attempt("child", lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """

    # Newer versions warn of forks in programs with threads.
    assert sorted(python(source, "-W", "ignore")) == ["child 0", "run 0", "run 0"]
