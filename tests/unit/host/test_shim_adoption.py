"""What process 1 has to do for those who come to it, at the fork server of a server that is in its place."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fakes.fork_server import GUARD

pytestmark = pytest.mark.timeout(2 * GUARD)

# Whoever loses its parent below this program comes to it, as to process 1.
ADOPTING = """if True:
    import ctypes, os, signal, sys
    from holdfast.host.orders import StartOrder
    from holdfast.reports import News
    from holdfast.host.shim import ForkServer

    def wait_until(holds):
        while not holds():
            signal.sigtimedwait({signal.SIGCHLD}, 0.01)
            fork_server.adopt()

    def children():
        return set(map(int, open("/proc/thread-self/children").read().split()))

    def started():
        shim = fork_server.shim()
        shim.start(StartOrder(cwd=b"/", program=b"/bin/cat", argv=[b"cat"], env=[], stdin=True), (0, 1, 2))
        os.set_blocking(shim.fileno(), True)
        return shim, shim.receive()

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    fork_server = ForkServer()
"""

KILLED = """
    shims = [started() for _ in range(3)]
    forker, = children()
    os.kill(forker, signal.SIGKILL)
    wait_until(lambda: forker not in children())
    assert children() >= {report.shim for _, report in shims}
    for shim, report in shims[:2]:
        shim.close()
    os.kill(shims[2][1].shim, signal.SIGKILL)
    os.kill(shims[2][1].value, signal.SIGKILL)
    fork_server.close()  # And the shims that wait for a command.
    wait_until(lambda: not children())
    shim, report = started()
    assert report.news is News.STARTED
    print("nobody is left")
"""

# One who comes to us says who it is and ends when it is told to.
OURS = """
    own = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], {})
    os.waitid(os.P_PID, own, os.WEXITED | os.WNOWAIT)
    said, saying = os.pipe()
    told, telling = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, told, 3), (os.POSIX_SPAWN_DUP2, saying, 4)]
    script = "setsid sh -c 'echo $$ >&4; read _ <&3; exit 3' & exit 0"
    os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ, file_actions=actions), 0)
    stray = int(os.read(said, 100))
    wait_until(lambda: stray in children())
    os.write(telling, b"go\\n")
    wait_until(lambda: stray not in children())
    print(os.waitstatus_to_exitcode(os.waitpid(own, 0)[1]))
"""


def ran(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ADOPTING + script], capture_output=True, text=True, check=False, input=""
    )
    assert done.stderr == ""
    return done.stdout


def test_shims_of_a_killed_fork_server_are_reaped_and_so_is_what_a_killed_shim_left() -> None:
    """Else a server in a container gathers dead processes until there is no number left."""
    assert ran(KILLED) == "nobody is left\n"


def test_what_we_have_started_is_left_to_who_waits_for_it() -> None:
    """Though it is the first whom the system tells of: its exit code is wanted."""
    assert ran(OURS) == "7\n"
