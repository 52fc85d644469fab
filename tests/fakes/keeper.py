"""A keeper that runs, with a spare that forks servers which do nothing by themselves.

Such a server gives its socket to the test, and waits.  The test then says and hears what a server would.
When it lets the server die it closes its own copies, too.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.host.keeper import Handover, KeeperOrder, KeptForkServer, receive_handover
from holdfast.host.orders import HeldPlace, StartOrder, StateReport
from holdfast.host.shim import Shim
from holdfast.reports import News, Report
from tests.fakes.fork_server import GUARD, until

# Becomes the keeper, or is a spare that the keeper has started.  It tells the test of itself over a socket.
SPARE = """if True:
    import os, socket, sys
    from holdfast.host import keeper
    place, program, patience, files, how, cold = sys.argv[1:]

    def call(what, *files):
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.connect(place)
        socket.send_fds(line, [b"%s %d" % (what, os.getpid())], files)
        return line

    def make_server(control):
        if how == "crash":
            return 1
        return int(call(b"server", control.fileno()).recv(8) or 0)

    control = keeper.join()
    if control is None:
        arena = os.memfd_create("arena")
        limits = None if files == "-" else tuple(map(int, files.split(",")))
        command = [sys.executable, *sys.orig_argv[1:3], place, program, patience, files, cold, cold]
        control = keeper.begin(arena, os.pipe(), limits, command, program=program, patience=float(patience))
    line = call(b"spare")
    if how == "mute":
        line.recv(1)
    elif how == "idle":
        control.send(b"R")
        line.recv(1)
    else:
        sys.exit(keeper.spare_loop(control, make_server))
"""


class FakeServer:
    """A server that the keeper has started, and that does what the test says."""

    def __init__(self, pid: int, control: socket.socket, line: socket.socket) -> None:
        self.pid = pid
        self.control = control
        self._line = line
        self.handover: Handover | None = None
        self.fork_server = KeptForkServer(control)
        self._shims: list[Shim] = []

    def rise(self) -> Handover:
        """Take everything, and serve."""
        self.handover = receive_handover(self.control)
        self._shims += self.handover.shims
        self.fork_server.ready()
        return self.handover

    def message(self) -> tuple[bytes, list[int]]:
        """The next message of a hand-over, which is not acknowledged."""
        assert select.select([self.control], [], [], GUARD)[0], "the keeper says nothing"
        data, files, _, _ = socket.recv_fds(self.control, 1024, 253, socket.MSG_CMSG_CLOEXEC)
        return data, files

    def order(self) -> KeeperOrder:
        """What the keeper orders."""
        assert select.select([self.control], [], [], GUARD)[0], "the keeper says nothing"
        order = self.fork_server.receive()
        assert order is not None
        return order

    def shim(self) -> Shim:
        shim = self.fork_server._make()
        self._shims.append(shim)
        return shim

    def die(self) -> None:
        """Be killed: whatever the server had is closed, and nothing is said."""
        for shim in self._shims:
            shim._keep_cursor(None)
            if shim.fileno() >= 0:
                os.close(shim._socket.detach())
        self._shims.clear()
        if self.handover is not None:
            for fd in (self.handover.arena, *self.handover.stage, *(fd for _, fd in self.handover.listeners)):
                os.close(fd)
        self.control.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._line.close()

    def end(self, code: int) -> None:
        """Stop on purpose."""
        for shim in self._shims:
            shim.close()
        self._shims.clear()
        self.fork_server.stop(code)
        self._line.send(b"%d" % code)
        self.die()


class FakeKeeper:
    """The process that was started, and those who tell of themselves."""

    def __init__(
        self,
        program: str,
        place: Path,
        *,
        patience: float = GUARD,
        files: str = "-",
        how: str = "well",
        cold: str = "well",
        prefix: Sequence[str] = (),
    ) -> None:
        """
        Args:
            place: A directory for a socket.
            how: What the first spare does: ``well``; ``crash``, its servers end at once; ``idle``, it does
                not fork; ``mute``, it does not even say that it can.
            cold: What a spare does that is started later.
            prefix: A command that runs another one.
        """
        self.mark = f"KEPT={secrets.token_hex(8)}"
        self._calls = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._calls.bind(str(place / "calls"))
        self._calls.listen(100)
        self._calls.settimeout(GUARD)
        name, _, value = self.mark.partition("=")
        words: Sequence[str] = (str(place / "calls"), program, str(patience), files, how, cold)
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", SPARE, *words],
            env={**os.environ, name: value},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.pid = self.process.pid
        self._lines: list[socket.socket] = []
        self._servers: list[FakeServer] = []

    def spare(self) -> int:
        """The pid of the spare that comes next."""
        kind, pid, files, line = self._call()
        assert (kind, files) == (b"spare", [])
        self._lines.append(line)
        return pid

    def server(self) -> FakeServer:
        """The server that comes next."""
        kind, pid, files, line = self._call()
        assert kind == b"server"
        made = FakeServer(pid, socket.socket(fileno=files[0]), line)
        self._servers.append(made)
        return made

    def _call(self) -> tuple[bytes, int, list[int], socket.socket]:
        line, _ = self._calls.accept()
        data, files, _, _ = socket.recv_fds(line, 64, 1, socket.MSG_CMSG_CLOEXEC)
        kind, pid = data.split()
        return kind, int(pid), files, line

    def members(self) -> set[int]:
        """Everybody who was started in this test and has not ended."""
        found = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if self.mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.add(int(name))
        return found

    def children(self, name: str) -> list[int]:
        """The children of the keeper that have this name."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii").split()
        return [int(pid) for pid in listed if comm(int(pid)) == name]

    def files(self) -> int:
        """How many descriptors the keeper has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def ended(self) -> tuple[int, str]:
        """Wait for the keeper's end: its exit code, and what it said."""
        _, said = self.process.communicate(timeout=GUARD)
        return self.process.returncode, said.decode()

    def close(self) -> None:
        """End everything; nobody may be left."""
        self.process.kill()
        self._calls.close()  # Whoever calls now is not answered, and ends.
        for server in self._servers:
            if server.control.fileno() >= 0:
                server.die()
        for line in self._lines:
            line.close()
        self.process.communicate(timeout=GUARD)
        try:
            until(lambda: not self.members())
        except BaseException:
            for pid in self.members():
                os.kill(pid, signal.SIGKILL)  # A failure must not outlive its test.
            raise


def comm(pid: int) -> str:
    """The name of a process; empty if there is none."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    return ""


class Pipes:
    """A command with its pipes, which its shim holds."""

    def __init__(self, keeper: FakeKeeper, shim: Shim, script: str, *, key: int) -> None:
        self.shim = shim
        theirs_in, self.stdin = os.pipe()
        self.stdout, theirs_out = os.pipe()
        order = StartOrder(
            cwd=b"/",
            program=b"/bin/sh",
            argv=[b"sh", b"-c", script.encode()],
            env=[b"PATH=/usr/bin:/bin", keeper.mark.encode()],
            stdin=True,
            key=key,
        )
        holds = {HeldPlace.STDIN: self.stdin, HeldPlace.STDOUT: self.stdout} if key else {}
        shim.start(order, [theirs_in, theirs_out, theirs_out], holds)
        os.close(theirs_in)
        os.close(theirs_out)

    def close(self) -> None:
        os.close(self.stdin)
        os.close(self.stdout)


def news(shim: Shim) -> Report:
    """The next report of a shim."""
    while (report := shim.receive()) is None:
        assert select.select([shim], [], [], GUARD)[0], "there is no news"
    return report


def until_news(shim: Shim, wanted: News) -> Report:
    """The first report of this kind."""
    while (report := news(shim)).news is not wanted:
        assert report.news is not News.LOST
    return report


def asked(shim: Shim) -> tuple[StateReport, dict[int, int]]:
    """What a shim answers."""
    shim.ask()
    while (answer := shim.receive_state()) is None:
        assert select.select([shim], [], [], GUARD)[0], "there is no answer"
    return answer


def next_server(kept: FakeKeeper) -> FakeServer:
    """The server that follows, which serves."""
    following = kept.server()
    following.rise()
    return following


def handed(server: FakeServer) -> list[Shim]:
    assert server.handover is not None
    return server.handover.shims
