"""Our side of the nursery and its wardens: the messages, and the socket of one warden.

The other side is ``nursery.c``, and ``nursery.py`` where nothing was compiled;
it says there what a warden is.  All three change together.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal as signals
import socket
import struct
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from holdfast.model import Usage

_log = logging.getLogger(__name__)

_SOCKET = 3
"""The nursery's descriptor for its end."""

_ORDER = struct.Struct("8I")
_LIMIT = struct.Struct("3Q")
_REPORT = struct.Struct("IiII3Q")
_PID = struct.Struct("i")
_MOST = _REPORT.size + 256 * _PID.size
"""Bytes of the longest report."""

_INLINE = 65_536
"""Bytes of an order that fit into a message; longer ones are handed over in a file."""

_READY = 10.0
"""Seconds that a nursery may take to be ready; it takes milliseconds."""

_MOST_IDLE = 32
"""Wardens that wait for a command while others have one; without any, one is kept."""

_UNFIT = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR, errno.ELIBBAD)
"""What the system says of a program that is missing, or made for another machine."""

_START, _RELEASE, _KILL = 1, 2, 3
_TERMINAL, _SEARCH, _IN_FILE, _HAS_STDIN, _QUIETLY = 1, 2, 4, 8, 16
_BY_SIGNAL, _ALONE = 1, 2


class News(Enum):
    """What a warden can tell."""

    STARTED = 1
    FAILED = 2
    EXITED = 3
    EMPTY = 4
    """Nobody is left of the tree."""
    SURVIVORS = 5
    """Those who were killed and live."""
    LOST = 6
    """The warden is gone, and with it the knowledge of how the command ended."""


class Stage(Enum):
    """Where a start failed."""

    FORK = 1
    TERMINAL = 2
    DIRECTORY = 3
    SEARCH = 4
    PROGRAM = 5
    LIMIT = 6
    GROUP = 7


@dataclass(frozen=True, slots=True)
class Report:
    """One piece of news."""

    news: News
    value: int = 0
    """A pid, an error number, an exit status or a signal's number."""
    detail: int = 0
    warden: int = 0
    """The warden's pid, with ``STARTED``."""
    usage: Usage | None = None
    pids: Sequence[int] = ()

    @property
    def stage(self) -> Stage:
        return Stage(self.detail)

    @property
    def by_signal(self) -> bool:
        return bool(self.detail & _BY_SIGNAL)

    @property
    def alone(self) -> bool:
        """Whether the command has left nobody behind."""
        return bool(self.detail & _ALONE)


LOST = Report(News.LOST)


@dataclass(frozen=True, slots=True)
class Order:
    """What a warden is to start."""

    cwd: bytes
    program: bytes
    argv: Sequence[bytes]
    env: Sequence[bytes]
    path: bytes | None = None
    """Where to look for ``program``; without it ``program`` is a file."""
    terminal: bytes | None = None
    stdin: bool = False
    limits: Sequence[tuple[int, int, int]] = ()
    """Resource, soft limit, hard limit."""
    groups: Sequence[bytes] = ()
    """Files of control groups that take a pid."""

    def encode(self) -> tuple[bytes, bytes]:
        """The head, to which the caller may add ``_IN_FILE``, and what follows it."""
        texts = [self.cwd]
        flags = _HAS_STDIN if self.stdin else 0
        if self.terminal is not None:
            flags |= _TERMINAL
            texts.append(self.terminal)
        texts += self.groups
        texts.append(self.program)
        if self.path is not None:
            flags |= _SEARCH
            texts.append(self.path)
        texts += self.argv
        texts += self.env
        texts.append(b"")
        body = b"".join(_LIMIT.pack(*limit) for limit in self.limits) + b"\0".join(texts)
        if len(body) > _INLINE:
            flags |= _IN_FILE
        counts = len(self.argv), len(self.env), len(self.limits), len(self.groups)
        return _ORDER.pack(_START, flags, *counts, len(body), 0), body


class Warden:
    """One warden's socket.  Nothing here waits."""

    __slots__ = ("_socket",)

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end

    def fileno(self) -> int:
        """Readable when there is news."""
        return self._socket.fileno()

    def is_waiting(self) -> bool:
        """Whether it lives and has nothing to tell: somebody may have killed it while it had no command."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except ConnectionError:
            pass
        return False

    def start(self, order: Order, files: Sequence[int]) -> None:
        """Have a command started, with these as its standard files.

        Raises:
            OSError: There is no memory for so long an order.
        """
        head, body = order.encode()
        if len(body) <= _INLINE:
            self._send(head + body, files)
            return
        fd = os.memfd_create("holdfast-order")
        try:
            view = memoryview(body)
            while view:
                view = view[os.write(fd, view) :]
            self._send(head, [*files, fd])
        finally:
            os.close(fd)

    def release(self, *, quietly: bool = False) -> None:
        """The command's number is no longer needed.  ``EMPTY`` follows, unless ``quietly``."""
        self._send(_ORDER.pack(_RELEASE, _QUIETLY if quietly else 0, *[0] * 6))

    def kill(self) -> None:
        """End the tree.  ``EMPTY`` follows, or ``SURVIVORS``."""
        self._send(_ORDER.pack(_KILL, *[0] * 7))

    def _send(self, data: bytes, files: Sequence[int] = ()) -> None:
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", files))] if files else []
        if self._socket.fileno() < 0:
            return  # It was given up.
        with contextlib.suppress(ConnectionError):  # It has ended, and that is told as news.
            self._socket.sendmsg([data], extra)

    def hear(self) -> Report | None:
        """The next piece of news; None if there is none now."""
        try:
            data = self._socket.recv(_MOST)
        except BlockingIOError:
            return None
        except ConnectionError:
            return LOST
        if not data:
            return LOST
        what, value, detail, warden, user, system, peak = _REPORT.unpack_from(data)
        pids = [pid for (pid,) in _PID.iter_unpack(data[_REPORT.size :])]
        return Report(News(what), value, detail, warden, Usage(user, system, peak * 1024), pids)

    def close(self) -> None:
        """Give the warden up; it ends what is left of its tree.  May be called twice."""
        self._socket.close()


NO_WARDEN = Warden(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
"""What a child has that gave its warden back."""
NO_WARDEN.close()


class Nursery:
    """Where wardens come from.  It is started with the first one."""

    def __init__(
        self, *, files_limit: tuple[int, int] | None = None, programs: Sequence[Sequence[str]] | None = None
    ) -> None:
        """
        Args:
            files_limit: The limit of open files for children, where ours was raised.
            programs: Command lines to try, the best first.
        """
        self._arguments = [] if files_limit is None else [str(number) for number in files_limit]
        self._programs = list(programs or _PROGRAMS)
        self._idle: list[Warden] = []
        self._busy = 0
        self._socket: socket.socket | None = None
        self._pid = 0

    def open(self) -> None:
        """Start the nursery, if it does not run.

        Raises:
            OSError: The system would not start it.
        """
        while self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self._pid = self._launch(theirs.fileno())
                self._socket = ours
            except OSError as error:
                ours.close()
                if len(self._programs) == 1 or error.errno not in _UNFIT:
                    raise
                # That it was never made is told at the build; that it cannot be used nobody knows yet.
                level = logging.INFO if error.errno == errno.ENOENT else logging.WARNING
                _log.log(level, "the nursery %s cannot be used: %s", self._programs.pop(0)[0], error.strerror)
            finally:
                theirs.close()
            if self._socket is not None and not self._is_ready():
                self._shut()
                if len(self._programs) == 1:
                    raise OSError("the nursery does not run")
                _log.warning("the nursery %s does not run", self._programs.pop(0)[0])

    def _is_ready(self) -> bool:
        """Wait for the nursery's first word: one that ends before it is of no use here."""
        assert self._socket is not None
        self._socket.settimeout(_READY)
        try:
            return bool(self._socket.recv(1))
        except OSError:
            return False
        finally:
            self._socket.settimeout(None)

    def _launch(self, end: int) -> int:
        program, *rest = self._programs[0]
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        return os.posix_spawn(
            program,
            [program, *rest, *self._arguments],
            {},
            # In this order: the end may have a number that is to become another file.
            file_actions=[(os.POSIX_SPAWN_DUP2, end, _SOCKET), *nowhere],
        )

    def warden(self) -> Warden:
        """A warden, most often one that is ready.

        Raises:
            OSError: There can be none now.
        """
        warden = None
        while self._idle and warden is None:
            warden = self._idle.pop()
            if not warden.is_waiting():
                warden.close()
                warden = None
        warden = warden or self._make()
        self._busy += 1
        if self._busy > 1:
            # Alone, a command is followed by the next when its warden is free again.
            self.prepare()
        return warden

    def prepare(self) -> None:
        """Have a warden ready for the next command."""
        if not self._idle:
            with contextlib.suppress(OSError):  # Whoever needs it will be told.
                self._idle.append(self._make())

    def take_back(self, warden: Warden, *, usable: bool) -> None:
        """A command is over.  If its warden is ``usable`` it can watch over another one."""
        self._busy -= 1
        if usable and self._socket is not None and len(self._idle) < _MOST_IDLE:
            self._idle.append(warden)
        else:
            warden.close()
        while not self._busy and len(self._idle) > 1:
            self._idle.pop().close()

    def _make(self) -> Warden:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._admit(theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return Warden(ours)

    def _admit(self, end: int) -> None:
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _PID.pack(end))]
        for _ in range(2):
            self.open()
            assert self._socket is not None
            try:
                self._socket.sendmsg([b"\0"], extra, socket.MSG_DONTWAIT)
            except BlockingIOError:
                # So many requests wait that somebody must have stopped it.
                os.kill(self._pid, signals.SIGCONT)
                raise
            except ConnectionError:
                self._shut()  # Somebody has killed it: another one takes its place.
            else:
                return
        raise OSError("the nursery does not run")

    def close(self) -> None:
        """End the nursery.  Wardens live on until they are given up.  May be called twice."""
        while self._idle:
            self._idle.pop().close()
        self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with contextlib.suppress(ChildProcessError):  # Somebody else has reaped it.
                if not os.waitpid(self._pid, os.WNOHANG)[0]:
                    os.kill(self._pid, signals.SIGKILL)  # Whatever it is busy with.
                    os.waitpid(self._pid, 0)


_HERE = os.path.dirname(os.path.abspath(__file__))
_PROGRAMS = (
    (os.path.join(_HERE, "nursery"),),
    (sys.executable, "-I", "-S", os.path.join(_HERE, "nursery.py")),
)
