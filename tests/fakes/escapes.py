"""A program that starts descendants in every way in which one may get away from a careless kill.

Run as a script, by whatever Python there is: standard library only.

usage: escapes.py NAME

NAME is an abstract socket on which somebody listens, and the mark by which everybody is found: it is in the
arguments of each of them.  The first line sent there says how many reports follow, and how many of those wait
for a byte before they begin, because they leave nobody else much of the processor.  A report is the number of
a process, its start time, and its way.  Nearly everybody keeps the connection open, so that its end says that
they are gone.  A line `shim` on stdin kills the parent of this program; `own` ends this program only.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

HOW_MANY = 6
"""Of each ordinary way."""

GENERATIONS = 11
"""Parents that exit, one after the other."""

PR_SET_CHILD_SUBREAPER = 36
CLONE_PARENT = 0x8000
CLONE = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)

libc = ctypes.CDLL(None)
mark = ""
line = -1


def born(pid: int | str) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


def report(way: str, pid: int = 0) -> None:
    """One write, so that reports are not mixed."""
    pid = pid or os.getpid()
    os.write(line, f"{pid} {born(pid)} {way}\n".encode())


def fork(then: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            then()
        finally:
            os._exit(1)
    return pid


def linger(way: str) -> NoReturn:
    report(way)
    while True:
        signal.pause()


def watched() -> bool:
    """Whether anybody hears the reports; nobody could ever catch these otherwise."""
    poller = select.poll()
    poller.register(line, 0)
    return not poller.poll(0)


# The ways.


def plain() -> None:
    linger("plain")


def in_session() -> None:
    os.setsid()
    linger("session")


def daemon() -> None:
    fork(lambda: linger("daemon"))
    os._exit(0)


def daemon_in_session() -> None:
    os.setsid()
    fork(lambda: linger("daemon in session"))
    os._exit(0)


def in_group() -> None:
    os.setpgid(0, 0)
    linger("group")


def without_files() -> None:
    os.setsid()
    report("no files")
    os.closerange(0, 1024)
    while True:
        signal.pause()


def deaf() -> None:
    every = set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}
    for number in every:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, every)
    linger("deaf")


def stopped() -> None:
    os.setsid()
    report("stopped")
    os.kill(os.getpid(), signal.SIGSTOP)
    linger("continued")


def another_program() -> None:
    """Nothing but the mark tells whose it is."""
    os.setsid()
    report("another program")
    os.execve("/bin/sleep", [mark, "1000"], {})


def spawned() -> None:
    report("spawned", os.posix_spawn("/bin/sleep", [mark, "1000"], {}))
    os._exit(0)


def of_threads() -> None:
    """Children of threads that have ended, and of one that has not."""
    for _ in range(2):
        thread = threading.Thread(target=fork, args=(lambda: linger("thread"),))
        thread.start()
        thread.join()
    threading.Thread(target=_fork_and_linger, daemon=True).start()
    linger("threads")


def _fork_and_linger() -> None:
    fork(lambda: linger("thread"))
    while True:
        signal.pause()


def foster_parent() -> None:
    """Takes orphans in, as a shim does."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    fork(daemon_in_session)
    linger("foster parent")


def cloned() -> None:
    """Siblings, and children whose end tells nobody."""
    assert CLONE is not None
    for flags in (0, CLONE_PARENT, CLONE_PARENT | signal.SIGUSR1):
        if libc.syscall(CLONE, flags, 0, 0, 0, 0) == 0:
            linger("clone")
    linger("cloner")


def chain(left: int = GENERATIONS) -> None:
    if left == 0:
        os.setsid()
        linger("chain")
    fork(lambda: chain(left - 1))
    os._exit(0)


REGICIDE = 'kill -9 $PPID; set -- $(cat /proc/$$/stat); echo "$$ ${22} regicide" >&9; sleep 1000'


def in_shell() -> None:
    """A shell, and a child that kills it."""
    os.dup2(line, 9)
    os.execv("/bin/sh", ["sh", "-c", 'sh -c "$1" "$0" & wait', mark, REGICIDE])


def storm() -> None:
    """Somebody is always being born: short lives, in sessions of their own, of parents that have ended."""
    os.read(line, 1)
    report("storm")
    while watched():
        os.waitpid(fork(_gust), 0)


def _gust() -> None:
    os.setsid()
    fork(_short_life)
    os._exit(0)


def _short_life() -> None:
    signal.sigtimedwait((), 0.005)
    os._exit(0)


def hop() -> None:
    """Never long at one number: each forks its successor and exits."""
    os.read(line, 1)
    report("hop")
    while watched():
        if os.fork():
            os._exit(0)
        os.setsid()


MANY = (
    plain,
    in_session,
    daemon,
    daemon_in_session,
    in_group,
    without_files,
    deaf,
    stopped,
    another_program,
    spawned,
    chain,
)
FEW: dict[Callable[[], None], int] = {
    # With the reports that each makes.
    of_threads: 4,
    foster_parent: 2,
    in_shell: 1,
    **({cloned: 4} if CLONE else {}),
}
LAST = (storm, hop)


def main() -> None:
    global mark, line
    mark = sys.argv[1]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"\0{mark}")
    line = connection.detach()
    os.set_inheritable(line, True)
    at_once = 1 + HOW_MANY * len(MANY) + sum(FEW.values())
    os.write(line, b"%d %d\n" % (at_once, len(LAST)))
    report("first")
    for way in [*FEW, *MANY * HOW_MANY, *LAST]:
        fork(way)
    for word in sys.stdin:
        if word == "shim\n":
            os.kill(os.getppid(), signal.SIGKILL)
        elif word == "own\n":
            os._exit(7)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
