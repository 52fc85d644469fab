"""Our side of the nursery and its wardens: where they come from, and the socket of one.

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
import sys
from array import array
from collections.abc import Sequence

from .orders import INLINE, KILL, LOST, REPORT_MOST, Order, Report, release

_log = logging.getLogger(__name__)

_SOCKET = 3
"""The nursery's descriptor for its end."""

_READY = 10.0
"""Seconds that a nursery may take to be ready; it takes milliseconds."""

_MOST_IDLE = 32
"""Wardens that wait for a command while others have one; without any, one is kept."""

_TRIES = 10
"""Times that a warden is told something before it is given up: the system may be short of memory."""

_UNFIT = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR, errno.ELIBBAD)
"""What the system says of a program that is missing, or made for another machine."""


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
        except OSError:
            pass
        return False

    def start(self, order: Order, files: Sequence[int]) -> None:
        """Have a command started, with these as its standard files.

        Raises:
            OSError: There is no memory for so long an order.
        """
        head, body = order.encode()
        if order.cage is not None and order.cage.handed is not None:
            files = [*files, order.cage.handed.fileno()]
        if len(body) <= INLINE:
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
        self._send(release(quietly=quietly))

    def kill(self) -> None:
        """End the tree.  ``EMPTY`` follows, or ``SURVIVORS``."""
        self._send(KILL)

    def _send(self, data: bytes, files: Sequence[int] = ()) -> None:
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", files))] if files else []
        if self._socket.fileno() < 0:
            return  # It was given up.
        for _ in range(_TRIES):
            try:
                self._socket.sendmsg([data], extra)
            except ConnectionError:
                return  # It has ended, and that is told as news.
            except OSError:
                if files:
                    raise
            else:
                return
        # It must not go on as if nothing had been said: it ends its tree, and that is told as news.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def hear(self) -> Report | None:
        """The next piece of news; None if there is none now."""
        try:
            data = self._socket.recv(REPORT_MOST)
        except ConnectionError:
            return self._last_word()
        except OSError:
            return None  # There is none, or no memory for it at this moment.
        return Report.read(data) if data else LOST

    def _last_word(self) -> Report:
        """What was told by who has gone without reading all that it was told: the system names that first."""
        with contextlib.suppress(OSError):
            if data := self._socket.recv(REPORT_MOST):
                return Report.read(data)
        return LOST

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
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [end]))]
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


def compiled() -> str | None:
    """The nursery that was compiled, if it was."""
    program = _PROGRAMS[0][0]
    return program if os.access(program, os.X_OK) else None


_HERE = os.path.dirname(os.path.abspath(__file__))
_PROGRAMS = (
    (os.path.join(_HERE, "nursery"),),
    (sys.executable, "-I", "-S", os.path.join(_HERE, "nursery.py")),
)
