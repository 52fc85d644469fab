"""The server's side of a fork server, message by message."""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.host import orders
from holdfast.host.orders import OrderKind, ReleaseFlag, StartFlag, StartStage
from holdfast.host.sandbox.confinement import Confinement
from holdfast.reports import ExitFlag, News

GUARD = 60.0
"""Seconds after which a test that hangs is given up; no test expects anything to be faster."""

PATH = "/usr/bin:/bin"
PYTHON = (sys.executable, "-I", "-S")

STATUS = "grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/self/status | tr -d '\\t\\n'; echo"
"""A script that says which rights it has."""

_FORGOTTEN = 200  # The number of a descriptor.

ORDER = orders._ORDER
START, RELEASE, KILL, SIGNAL = OrderKind.START, OrderKind.RELEASE, OrderKind.KILL, OrderKind.SIGNAL
ASK, HOLD, DROP, GONE = OrderKind.ASK, OrderKind.HOLD, OrderKind.DROP, OrderKind.GONE
QUIETLY = ReleaseFlag.QUIETLY
TERMINAL, SEARCH = StartFlag.TERMINAL, StartFlag.SEARCH
IN_FILE, HAS_STDIN = StartFlag.IN_FILE, StartFlag.HAS_STDIN
CONFINED, RULESET, WRAPPED = StartFlag.CONFINED, StartFlag.RULESET, StartFlag.WRAPPED
WITNESS, GUARDED, POWERLESS = StartFlag.WITNESS, StartFlag.GUARD, StartFlag.POWERLESS
DOMAIN, NETWORK = StartFlag.DOMAIN, StartFlag.NETWORK

REPORT = orders._REPORT
STARTED, FAILED, EXITED = News.STARTED.value, News.FAILED.value, News.EXITED.value
EMPTY, SURVIVORS, DENIAL = News.EMPTY.value, News.SURVIVORS.value, News.DENIAL.value
BY_SIGNAL, ALONE = ExitFlag.BY_SIGNAL, ExitFlag.ALONE
AT_FORK, AT_TERMINAL = StartStage.FORK.value, StartStage.TERMINAL.value
AT_DIRECTORY, AT_SEARCH = StartStage.DIRECTORY.value, StartStage.SEARCH.value
AT_PROGRAM, AT_LIMIT = StartStage.PROGRAM.value, StartStage.LIMIT.value
AT_GROUP, AT_NO_GROUP = StartStage.GROUP.value, StartStage.NO_GROUP.value
AT_USER = StartStage.USER.value
AT_SANDBOX, AT_HIDDEN = StartStage.SANDBOX.value, StartStage.HIDDEN.value


class Report(NamedTuple):
    """What a shim told."""

    what: int
    value: int
    detail: int
    shim: int
    user_us: int
    system_us: int
    peak_kib: int
    denied: tuple[str, str] | None = None
    """Of a denial: what was tried, and on what."""
    pids: tuple[int, ...] = ()
    """Of survivors: who they are."""


NO_CONFINEMENT = Confinement(b"")


def _sandbox_flags(confinement: Confinement) -> int:
    kinds = {RULESET: confinement.ruleset, WRAPPED: confinement.wrapper, WITNESS: confinement.witness}
    kinds |= {
        GUARDED: confinement.guard,
        POWERLESS: confinement.powerless,
        DOMAIN: confinement.domain,
        NETWORK: confinement.network,
    }
    return CONFINED | sum(flag for flag, wanted in kinds.items() if wanted)


def order(
    what: int,
    *,
    flags: int = 0,
    counts: Sequence[int] = (0, 0, 0, 0),
    size: int = 0,
    sandbox: Sequence[int] = (0, 0, 0),
    hold: int = 0,
    user: int = 0,
    key: int = 0,
) -> bytes:
    """The head of an order.

    The counts are of arguments, variables, limits and groups; those of a sandbox
    of the bytes of its filter, of masks and of rules.  ``user`` is how many numbers name one.
    """
    return ORDER.pack(what, flags, *counts, size, *sandbox, hold, user, key)


def sh(script: str) -> tuple[str, str, str]:
    return "/bin/sh", "-c", script


def until(holds: Callable[[], bool]) -> None:
    """Wait for something of which there is no event."""
    deadline = time.monotonic() + GUARD
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.002)


def has_ended(pid: int) -> None:
    """Wait for the end of a process that is not our child."""
    with suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        try:
            assert select.select([fd], [], [], GUARD)[0], "it does not end"
        finally:
            os.close(fd)


class Command:
    """One command and its shim, as a server sees them."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        control.settimeout(GUARD)
        self.mark = f"TREE={secrets.token_hex(8)}"
        self.stdin, self.stdout, self.stderr = -1, -1, -1

    def start(
        self,
        *argv: str,
        name: str | None = None,
        cwd: str | Path = "/",
        env: Mapping[str, str] | None = None,
        path: str | None = None,
        terminal: int | None = None,
        limits: Sequence[tuple[int, int, int]] = (),
        groups: Sequence[str] = (),
        in_file: bool = False,
        confinement: Confinement | None = None,
    ) -> Command:
        """Send the order to start; pipes are made unless a terminal is handed over."""
        texts = [str(cwd), *groups]
        texts += [argv[0] if name is None else name, *([] if path is None else [path])]
        kept = confinement or NO_CONFINEMENT
        texts += map(os.fsdecode, [*([kept.wrapper] if kept.wrapper else []), *kept.masks, *kept.rules])
        variables = [f"{key}={value}" for key, value in (env or {"PATH": PATH}).items()]
        body = b"".join(struct.pack("=3Q", *limit) for limit in limits) + kept.filter
        body += b"".join(os.fsencode(text) + b"\0" for text in [*texts, *argv, *variables, self.mark])
        flags = (HAS_STDIN if terminal is None else TERMINAL) | (0 if path is None else SEARCH)
        flags |= 0 if confinement is None else _sandbox_flags(confinement)
        files = [] if terminal is None else [os.dup(terminal)]
        if terminal is None:
            theirs_in, self.stdin = os.pipe()
            self.stdout, theirs_out = os.pipe()
            self.stderr, theirs_err = os.pipe()
            files = [theirs_in, theirs_out, theirs_err]
        files += [] if kept.handed is None else [os.dup(kept.handed.fileno())]
        size = len(body)
        if in_file:
            flags |= IN_FILE
            files.append(os.memfd_create("request"))
            os.write(files[-1], body)
            body = b""
        head = order(
            START,
            flags=flags,
            counts=(len(argv), len(variables) + 1, len(limits), len(groups)),
            size=size,
            sandbox=(len(kept.filter), len(kept.masks), len(kept.rules)),
        )
        self.send(head + body, *files)
        for fd in files:
            os.close(fd)
        return self

    def send(self, message: bytes, *files: int) -> None:
        socket.send_fds(self._control, [message], files)

    def release(self, *, quietly: bool = False) -> None:
        self.send(order(RELEASE, flags=QUIETLY if quietly else 0))

    def kill(self) -> None:
        self.send(order(KILL))

    def signal(self, number: int) -> None:
        self.send(order(SIGNAL, flags=number))

    def told(self) -> Report | None:
        """The next report; None when the shim has gone."""
        try:
            message = self._control.recv(REPORT.size + 2048)
        except ConnectionResetError:  # It went without having read everything.
            return None
        if not message:
            return None
        report = Report(*REPORT.unpack_from(message))
        if report.what != DENIAL:
            return report._replace(
                pids=tuple(pid for (pid,) in struct.iter_unpack("=i", message[REPORT.size :]))
            )
        op, _, subject = message[REPORT.size :].partition(b"\0")
        return report._replace(denied=(op.decode(), os.fsdecode(subject)))

    def tells(self, what: int) -> Report:
        """The next report, which is of this kind.  A busy host may let the killed be told as survivors."""
        report = self.told()
        while report is not None and report.what == SURVIVORS != what:
            report = self.told()
        assert report is not None
        assert report.what == what, report
        return report

    def ended(self) -> tuple[int, int]:
        """Let it end: the code or the signal; whether it was one, and whether anybody was left."""
        report = self.told()
        while report is not None and report.what == DENIAL:
            report = self.told()
        assert report is not None
        assert report.what == EXITED, report
        self.release()
        self.tells(EMPTY)
        return report.value, report.detail

    def is_silent(self) -> bool:
        """Whether there is no report now."""
        return not select.select([self._control], [], [], 0)[0]

    def line(self) -> str:
        """A line of the output."""
        said = b""
        while not said.endswith(b"\n"):
            assert select.select([self.stdout], [], [], GUARD)[0], "no output"
            piece = os.read(self.stdout, 1)
            assert piece, f"the output ended after {said!r}"
            said += piece
        return said.decode().rstrip("\n")

    def echoes(self) -> bool:
        """Whether it is alive and answers, if it is a `cat`."""
        os.write(self.stdin, b"hello\n")
        return self.line() == "hello"

    def close_stdin(self) -> None:
        os.close(self.stdin)
        self.stdin = -1

    def members(self) -> set[int]:
        """Everybody, wherever, who was started by this command and has not ended."""
        found = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if self.mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.add(int(name))
        return found

    def hang_up(self) -> None:
        """Be gone, as a server that was killed is."""
        self._control.close()

    def close(self) -> None:
        self.hang_up()
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd >= 0:
                os.close(fd)


class ForkServer:
    """A fork server that runs, and the commands that were asked of it."""

    def __init__(self, program: tuple[str, ...]) -> None:
        self._server, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._commands: list[Command] = []
        self._code: int | None = None
        actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)]
        nothing = os.open("/dev/null", os.O_RDWR)
        # The last one is an accident: a file that the server forgot to close.
        actions += [(os.POSIX_SPAWN_DUP2, nothing, fd) for fd in (0, 1, 2, _FORGOTTEN)]
        self.pid = os.posix_spawn(program[0], program, os.environ, file_actions=actions)
        os.close(nothing)
        theirs.close()
        self._server.settimeout(GUARD)
        assert self._server.recv(2) == bytes([orders.VERSION])

    def command(self) -> Command:
        """A new shim, which was not yet told what to start."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.send(theirs.fileno())
        theirs.close()
        self._commands.append(Command(ours))
        return self._commands[-1]

    def send(self, *files: int) -> None:
        """Ask for a shim that has this file."""
        socket.send_fds(self._server, [b"x"], files)

    def children(self) -> list[int]:
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]

    def hang_up(self) -> int:
        """Be gone; give the fork server's exit code."""
        self._server.close()
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code

    def close(self) -> None:
        for command in self._commands:
            command.close()
        try:
            if self._code is None:
                until(lambda: not self.children())
        except BaseException:
            for pid in {pid for command in self._commands for pid in command.members()}:
                os.kill(pid, signal.SIGKILL)  # A failure must not outlive its test.
            raise
        finally:
            self.hang_up()
