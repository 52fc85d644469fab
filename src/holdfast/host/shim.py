"""The server's side of the fork server and its shims: how shims are made, and the socket to each.

The other side is the program in ``native``.  ``fork_server.c`` and ``shim.c`` say what it does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal as signals
import socket
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence

from holdfast.errors import HostUnfit
from holdfast.reports import LOST, Report

from . import tree
from .orders import (
    INLINE_MOST,
    KILL,
    PLACES_MOST,
    REPORT_MOST,
    VERSION,
    HeldPlace,
    StartOrder,
    StateReport,
    ask,
    drop,
    hold,
    place_bits,
    read_report,
    release,
    signal,
)

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fork_server")
"""The fork server, compiled when holdfast was installed."""

FIX = (
    "it is compiled when holdfast is installed: install holdfast again on this host, from a wheel for it or"
    " with a C compiler"
)
"""What to do about a program that cannot be run."""

_SOCKET = 3
"""The descriptor under which the fork server has its end of the socket."""

_READY = 10.0
"""Seconds that a fork server may take until it is ready.  It takes milliseconds, unless the host is busy."""

_BEHIND = 1.0
"""Seconds that a fork server may take until it has room for another message."""

_MOST_IDLE = 32
"""Shims that are kept for the next commands while others run; if no command runs, one is kept."""

_TRIES = 10
"""Attempts to send an order.  After that the shim is disconnected: the host is short of memory."""

_UNFIT = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR, errno.ELIBBAD)
"""Errors of the system about a program that is missing, or made for another machine."""


NOTHING: Mapping[int, int] = {}
"""What a shim holds for a command that does not outlive the server."""


class Shim:
    """The parent of one command; here the server's end of the socket to it.  No method waits."""

    __slots__ = ("_asked", "_socket", "cursor")

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._asked = 0
        self.cursor: int | None = None
        """Our copy of what the shim holds in ``HeldPlace.CURSOR``; ``close`` closes it."""

    def fileno(self) -> int:
        """Return the socket, which is readable when a report has come."""
        return self._socket.fileno()

    def is_waiting(self) -> bool:
        """Whether the shim runs and has sent nothing.  Somebody may kill it while it has no command."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def start(self, order: StartOrder, files: Sequence[int], holds: Mapping[int, int] = NOTHING) -> None:
        """Order the shim to start a command.  A report follows, ``STARTED`` or ``FAILED``.

        Args:
            files: The standard files of the command, or one terminal for all three; the caller closes them.
            holds: What the shim is to hold for the next server, by ``HeldPlace``; the caller keeps its own.

        Raises:
            OSError: The order cannot be sent, for want of memory or descriptors.
        """
        head, body = order.encode(place_bits(holds) if holds else 0)
        if order.confinement is not None and order.confinement.handed is not None:
            files = [*files, order.confinement.handed.fileno()]
        files = [*files, *(holds[place] for place in sorted(holds))]
        if len(body) <= INLINE_MOST:
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
        """Let the shim reap the command.  ``EMPTY`` follows, unless ``quietly``."""
        self._send(release(quietly=quietly))

    def kill(self) -> None:
        """Order the shim to kill the whole tree.  ``EMPTY`` follows, or ``SURVIVORS``."""
        self._send(KILL)

    def signal(self, number: int) -> None:
        """Have the shim send a signal to the command's group, and to nobody else, also after ``release``."""
        self._send(signal(number))

    def hold(self, place: int, fd: int) -> None:
        """Have the shim hold a descriptor for the next server, in place of what it has there.

        Raises:
            OSError: The order cannot be sent, for want of memory or descriptors.
        """
        self._send(hold(place), [fd])

    def drop(self, places: Iterable[int]) -> None:
        """Have the shim close what it holds in these places: the child sees the end of a pipe only then."""
        self._send(drop(places))

    def ask(self) -> None:
        """Ask the shim to report everything again, to ``receive_state`` first."""
        # No two servers ask one shim in the same nanosecond.
        self._asked = time.monotonic_ns() & 0xFFFF_FFFF
        self._send(ask(self._asked))

    def receive_state(self) -> tuple[StateReport, dict[int, int]] | None:
        """Return the answer to ``ask``, with what the shim holds, by ``HeldPlace``; None if it has not come.

        The caller owns these descriptors.  The cursor is not among them: it is in ``cursor``.  Reports from
        before the answer, which another server did not read, are dropped.  After it ``receive`` returns what
        was reported of the command: ``STARTED``, ``EXITED``, ``SURVIVORS``, ``EMPTY``.

        Raises:
            ConnectionError: The shim has ended.
            OSError: There are too many open files for what the shim holds.
        """
        while True:
            try:
                data, files, flags, _ = socket.recv_fds(
                    self._socket, REPORT_MOST, PLACES_MOST, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return None
            state = StateReport.read(data) if data else None
            if state is None or state.asked != self._asked or len(files) != len(state.places):
                for fd in files:
                    os.close(fd)
            if not data:
                raise ConnectionResetError(errno.ECONNRESET, "the shim has ended")
            if state is not None and state.asked == self._asked:
                if flags & socket.MSG_CTRUNC or len(files) != len(state.places):
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                held = dict(zip(state.places, files, strict=True))
                self._keep_cursor(held.pop(HeldPlace.CURSOR, None))
                return state, held

    def _keep_cursor(self, cursor: int | None) -> None:
        if self.cursor is not None:
            os.close(self.cursor)
        self.cursor = cursor

    def is_there(self) -> bool:
        """Whether the shim has not ended.

        As long as it has not, no other process gets its pid, nor that of the command, which the shim does
        not reap before ``release`` or ``kill``.
        """
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, 0)
        return not poll.poll(0)

    def _send(self, data: bytes, files: Sequence[int] = ()) -> None:
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", files))] if files else []
        if self._socket.fileno() < 0:
            return  # Somebody has called ``close``.
        for _ in range(_TRIES):
            try:
                self._socket.sendmsg([data], extra)
            except ConnectionError:
                return  # The shim has ended, and ``receive`` reports that.
            except OSError:
                if files:
                    raise
            else:
                return
        # The shim must not go on without the order.  Disconnected, it kills its tree, and ``receive`` reports
        # that it is lost.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def receive(self) -> Report | None:
        """Return the next report; None if none has come, ``LOST`` if the shim has ended."""
        try:
            data = self._socket.recv(REPORT_MOST)
        except ConnectionError:
            return self._last_report()
        except OSError:
            return None  # No report has come, or the host is short of memory at this moment.
        return read_report(data) if data else LOST

    def _last_report(self) -> Report:
        """Return the report that a shim sent before it ended; ``LOST`` if it sent none.

        If the shim had not read all its orders, the kernel returns an error first, and the report only then.
        """
        with contextlib.suppress(OSError):
            if data := self._socket.recv(REPORT_MOST):
                return read_report(data)
        return LOST

    def close(self) -> None:
        """Close the socket.  The shim kills what is left of its tree, and ends.  May be called twice."""
        if self._socket.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # The keeper may have a copy, which stays open.
        self._socket.close()
        self._keep_cursor(None)


NO_SHIM = Shim(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
"""Stands for the shim of a child that has given its own one back."""
NO_SHIM.close()


class ForkServer:
    """The program that makes shims, and the shims that wait for a command."""

    def __init__(self, *, files_limit: tuple[int, int] | None = None, program: str = PROGRAM) -> None:
        """
        Args:
            files_limit: The soft and hard limit of open files for children, if the server has raised its own.
            program: The path of the fork server.
        """
        self._arguments = [] if files_limit is None else [str(number) for number in files_limit]
        self._program = program
        self._idle: list[Shim] = []
        self._busy = 0
        self._socket: socket.socket | None = None
        self._pid = 0

    def open(self) -> None:
        """Start the fork server, if it does not run.  Waits until it is ready.

        Raises:
            HostUnfit: The program is missing or not made for this host, or ``/proc`` does not show our
                processes, so that shims could not end what they start.
            OSError: The system cannot start it now.
        """
        if self._socket is not None:
            return
        tree.check_proc()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._pid = self._launch(theirs.fileno())
        except OSError as error:
            ours.close()
            if error.errno not in _UNFIT:
                raise
            raise HostUnfit(f"{self._program} cannot be run: {error.strerror}; {FIX}") from error
        finally:
            theirs.close()
        self._socket = ours
        try:
            self._check_version()
        except BaseException:
            self._shut()
            raise

    def _check_version(self) -> None:
        """Wait for the first byte of the fork server, and check that it is the version of our messages."""
        assert self._socket is not None
        self._socket.settimeout(_READY)
        try:
            said = self._socket.recv(2)
        except OSError as error:
            raise OSError("the fork server does not run") from error
        if not said:
            raise HostUnfit(f"{self._program} ends as soon as it is run; {FIX}")
        if said != bytes([VERSION]):
            raise HostUnfit(f"{self._program} is of another version of holdfast; {FIX}")
        self._socket.settimeout(None)

    def _launch(self, end: int) -> int:
        """Start the program with its end of the socket; return its pid."""
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        return os.posix_spawn(
            self._program,
            [self._program, *self._arguments],
            {},
            # The end comes first: it may have a number that is to become a standard file.
            file_actions=[(os.POSIX_SPAWN_DUP2, end, _SOCKET), *nowhere],
        )

    def shim(self, *, unused: bool = False) -> Shim:
        """Return a shim without a command, most often one that was ready.

        Args:
            unused: Whether it must have had no command before.

        Raises:
            HostUnfit: No shim can be made on this host.
            OSError: The system cannot make one now.
        """
        while self._idle and not unused:
            shim = self._idle.pop()
            if shim.is_waiting():
                break
            shim.close()
        else:
            shim = self._make()
        self._busy += 1
        if self._busy > 1:
            # A command that runs alone needs no second shim: the next command gets its shim.
            self.prepare()
        return shim

    def prepare(self) -> None:
        """Make a shim for the next command, if none is ready.

        Raises:
            HostUnfit: No shim can be made on this host.
        """
        if not self._idle:
            with contextlib.suppress(OSError):  # The start that needs the shim gets the error.
                self._idle.append(self._make())

    def take_back(self, shim: Shim, *, usable: bool) -> None:
        """Take the shim of a command that is over.  If ``usable``, it is kept for another command."""
        self._busy -= 1
        if usable and self._socket is not None and len(self._idle) < _MOST_IDLE:
            self._idle.append(shim)
        else:
            shim.close()
        while not self._busy and len(self._idle) > 1:
            self._idle.pop().close()

    def regain(self, shim: Shim, *, busy: bool) -> None:
        """Take in a shim of the hand-over: one that is ``busy`` has a command, and comes by ``take_back``."""
        if busy:
            self._busy += 1
        else:
            self._idle.append(shim)

    def _make(self) -> Shim:
        """Have the fork server make a shim; return our end of the socket to it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._admit(theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return Shim(ours)

    def _admit(self, end: int) -> None:
        """Send the fork server a shim's end of a socket.  A fork server that was killed is started again."""
        for _ in range(2):
            self.open()
            try:
                self._tell(b"\0", end)
            except ConnectionError:
                self._shut()  # Somebody has killed the fork server: another one takes its place.
            else:
                return
        raise OSError("the fork server does not run")

    def _tell(self, message: bytes, *files: int) -> None:
        """Send a message.  After many starts at once it may have to wait for room, which comes soon."""
        assert self._socket is not None
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", files))] if files else []
        while True:
            try:
                self._socket.sendmsg([message], extra, socket.MSG_DONTWAIT)
                return
            except BlockingIOError:
                if self._pid:
                    os.kill(self._pid, signals.SIGCONT)  # Somebody may have stopped it.
                room = select.poll()
                room.register(self._socket, select.POLLOUT)
                if not room.poll(_BEHIND * 1000):
                    raise

    def adopt(self) -> None:
        """Reap orphans that have become our children.  For a server that is process 1 of a container.

        Such orphans are the shims of a killed fork server, and the tree of a killed shim.
        """
        while tree.reap_orphans(0 if self._socket is None else self._pid):
            self._shut()

    def close(self) -> None:
        """End the fork server.  Shims that have a command run until they are closed.  May be called twice."""
        while self._idle:
            self._idle.pop().close()
        self._shut()

    def _shut(self) -> None:
        """Close the socket to the fork server, and reap it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with contextlib.suppress(ChildProcessError):  # Other code of this program has reaped it.
                if not os.waitpid(self._pid, os.WNOHANG)[0]:
                    os.kill(self._pid, signals.SIGKILL)  # It may be stopped, or busy.
                    os.waitpid(self._pid, 0)


def compiled() -> str | None:
    """Return the path of the compiled fork server; None if it is missing or not executable."""
    return PROGRAM if os.access(PROGRAM, os.X_OK) else None
