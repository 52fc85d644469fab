"""The server's side of the keeper: becoming it, forking servers for it, and taking over from one that died.

The keeper is the process that was started.  It restarts the server, makes the shims, and holds what must not
end with the server: the arena, the stage, the listening sockets and our end of every shim's socket.  The
spare is a process that has imported everything, and forks servers.  The other side is ``native/keeper.c``.

Messages are packets that begin with a letter.  From the keeper to the spare: ``F``, fork a server, with one
end of a new socket.  From the spare: ``R``, it can fork; ``P``, the pid of the server, with a descriptor of
the process.  From the keeper to a server: the hand-over ``H``, ``L`` for each listener, ``P`` with up to 200
shims, ``E``; then ``T`` for SIGTERM and SIGINT, and ``U`` for SIGHUP.  From a server: ``K`` after each ``P``
and after ``E``; then ``R`` when the listeners are served, ``A`` to have a shim made, ``L`` for a new
listener, and ``S`` with an exit code when it ends on purpose.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum

from holdfast.errors import HostUnfit
from holdfast.value import value

from .orders import VERSION, StateReport
from .shim import FIX, PROGRAM, ForkServer, Shim

PROTOCOL = 1
"""Of the messages between keeper and server."""

LABEL_MOST = 255
"""Bytes of the label of a listener."""

PATIENCE = 10.0
"""Seconds for which a server may take nothing of the hand-over before the keeper kills it."""

ANSWER = 10.0
"""Seconds that shims may take to answer; they take less than a millisecond, unless somebody stops them."""

_AT_A_TIME = 50
"""Shims that are asked at a time.  Each sends up to five descriptors; a usual bound is 1,024 on their way."""

_HELLO = struct.Struct("<BxxxIQII")
_PID = struct.Struct("<i")
_CODE = struct.Struct("<i")

_SETTLED = 1.0
"""Seconds after the start of a server at which it is assumed to go on running."""

_BATCH = 200
"""The most shims in one message."""


class KeeperOrder(Enum):
    """What a server hears from the keeper after the hand-over."""

    TERMINATE = b"T"
    """SIGTERM or SIGINT came: end everything, then ``KeptForkServer.stop``."""
    HANGUP = b"U"
    """SIGHUP came."""
    LOST = b""
    """The keeper is gone: end everything."""


@value
class Handover:
    """What a server gets from the keeper at its start.  Whoever receives it owns the descriptors."""

    generation: int
    """Which server this is; the first one is 1."""
    arena: int
    stage: tuple[int, int]
    """The ends of the pipe: that for reading, that for writing."""
    listeners: tuple[tuple[str, int], ...]
    """The label and the listening socket of each listener; none for the first server."""
    shims: list[Shim]
    """All shims that were there; some may have ended since."""


def begin(
    arena: int,
    stage: tuple[int, int],
    files_limit: tuple[int, int] | None,
    command: Sequence[str],
    *,
    program: str = PROGRAM,
    patience: float = PATIENCE,
) -> socket.socket:
    """Fork: this process becomes the keeper, and its child, which returns, the spare in a session of its own.

    Returns:
        The spare's end of the socket to the keeper, for ``spare_loop``.

    Args:
        arena: Held by the keeper, and handed to each server; closed in the spare.
        stage: The ends of a pipe, the same.
        files_limit: The soft and hard limit of open files for commands, if this process has raised its own.
        command: A program and its arguments by which a spare is started if the first one dies.  It finds its
            socket as the descriptor that ``HOLDFAST_SPARE`` names in the environment; see ``join``.
        program: The path of the fork server.
        patience: How long a server may take nothing of the hand-over.

    Raises:
        HostUnfit: The program cannot be run.  Then there is no child, or one whose socket has ended.
        OSError: The system cannot fork now.
    """
    if not os.access(program, os.X_OK):
        raise HostUnfit(f"{program} cannot be run: {os.strerror(errno.ENOENT)}; {FIX}")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if not pid:
        theirs.close()
        for fd in (arena, *stage):
            os.close(fd)  # Servers get them from the keeper.
        os.setsid()  # What a terminal sends is for the keeper.
        return ours
    ours.close()
    held = theirs.fileno(), arena, *stage
    for fd in held:
        os.set_inheritable(fd, True)
    limits = ("-", "-") if files_limit is None else files_limit
    words = [held[0], pid, *held[1:], *limits, int(patience * 1000)]
    try:
        os.execv(program, [program, "keep", *map(str, words), "--", *command])
    except OSError as error:
        theirs.close()
        raise HostUnfit(f"{program} cannot be run: {error.strerror}; {FIX}") from error


def join() -> socket.socket | None:
    """Return the socket of a spare that the keeper has started; None in any other process."""
    number = os.environ.pop("HOLDFAST_SPARE", None)
    if number is None:
        return None
    os.set_inheritable(int(number), False)
    return socket.socket(fileno=int(number))


def spare_loop(
    control: socket.socket,
    make_server: Callable[[socket.socket], int],
    prepare: Callable[[], None] = lambda: None,
) -> int:
    """Be the spare until the keeper is gone: fork a server whenever the keeper asks for one.

    Returns twice: in the spare with 0, when the keeper has gone, and in each server with what ``make_server``
    has returned there for its socket to the keeper.  The caller ends with that as exit code.

    ``prepare`` is called in the spare once, some time after the first server was forked: that should not have
    to share the processor with it, and many servers do not live for so long.
    """
    is_prepared, has_forked = False, False
    try:
        control.send(b"R")
        while True:
            if has_forked and not is_prepared and not _has_news(control, _SETTLED):
                is_prepared = True
                prepare()
            message, files = _receive(control, 1)
            _reap()
            if message[:1] != b"F" or not files:
                continue
            if (server := _fork(control, files[0])) is not None:
                break
            has_forked = True
    except ConnectionError:
        return 0
    control.close()
    return make_server(server)


def _has_news(control: socket.socket, seconds: float) -> bool:
    """Whether the keeper says something within so many seconds."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _reap() -> None:
    """Reap the servers that have ended: the keeper asks for another one as soon as one has."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fork(control: socket.socket, end: int) -> socket.socket | None:
    """Fork a server; return its socket there, and None in the spare.

    If that is not possible, the keeper sees that the socket has ended, and asks again later.
    """
    try:
        pid = os.fork()
    except OSError:
        os.close(end)
        return None
    if not pid:
        return socket.socket(fileno=end)
    os.close(end)
    with contextlib.suppress(ProcessLookupError):  # It has ended, and the keeper hears of that.
        process = os.pidfd_open(pid)
        try:
            socket.send_fds(control, [b"P" + _PID.pack(pid)], [process])
        except ConnectionError:
            raise
        except OSError:
            control.send(b"P" + _PID.pack(pid))  # Too many descriptors are on their way.
        finally:
            os.close(process)
    return None


def _receive(control: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """Return the next message, with up to ``most`` descriptors.  Waits for it.

    Raises:
        ConnectionError: Nobody is at the other end.
        OSError: Too many files are open.
    """
    data, files, flags, _ = socket.recv_fds(control, 1 + LABEL_MOST, most, socket.MSG_CMSG_CLOEXEC)
    if flags & socket.MSG_CTRUNC:
        for fd in files:
            os.close(fd)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    if not data:
        raise ConnectionResetError(errno.ECONNRESET, "the keeper is gone")
    return data, files


def receive_handover(control: socket.socket) -> Handover:
    """Return what the keeper hands over to this server.  Waits for it; afterwards ``control`` does not block.

    Raises:
        ConnectionError: The keeper is gone.
        HostUnfit: The keeper is of another version.
        OSError: Too many files are open.
    """
    message, files = _receive(control, 3)
    protocol, version, generation, _, _ = _HELLO.unpack_from(message, 1)
    if (protocol, version) != (PROTOCOL, VERSION):
        raise HostUnfit(f"the keeper is of another version of holdfast; {FIX}")
    arena, out, into = files
    listeners: list[tuple[str, int]] = []
    shims: list[Shim] = []
    while message[:1] != b"E":
        message, files = _receive(control, _BATCH)
        match message[:1]:
            case b"L":
                listeners.append((message[1:].decode(), files[0]))
            case b"P":
                shims += [Shim(socket.socket(fileno=fd)) for fd in files]
                control.send(b"K")
    control.send(b"K")
    control.setblocking(False)
    return Handover(generation, arena, (out, into), tuple(listeners), shims)


def ask_all(
    shims: Sequence[Shim], *, wait: float = ANSWER
) -> Iterator[tuple[Shim, StateReport, dict[int, int]]]:
    """Ask all shims of a hand-over; yield what each answers, in any order.  Waits for the answers.

    A shim that has ended, or does not answer in time, is closed and left out.  A few are asked at a time, and
    whoever answers first is read first: the kernel bounds how many descriptors may be on their way.

    Args:
        wait: Seconds for which those that are asked at a time may take.
    """
    for first in range(0, len(shims), _AT_A_TIME):
        yield from _ask(shims[first : first + _AT_A_TIME], time.monotonic() + wait)


def _ask(shims: Sequence[Shim], deadline: float) -> Iterator[tuple[Shim, StateReport, dict[int, int]]]:
    poll = select.poll()
    waiting: dict[int, Shim] = {}
    for shim in shims:
        shim.ask()
        waiting[shim.fileno()] = shim
        poll.register(shim, select.POLLIN)
    while waiting and (pause := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(pause * 1000):
            shim = waiting[fd]
            try:
                answer = shim.receive_state()
            except ConnectionError:
                poll.unregister(fd)
                waiting.pop(fd).close()
                continue
            if answer is not None:
                poll.unregister(fd)
                del waiting[fd]
                yield shim, *answer
    for shim in waiting.values():
        shim.close()


class KeptForkServer(ForkServer):
    """The keeper as the one that makes shims, and the shims that wait for a command."""

    def __init__(self, control: socket.socket, shims: Iterable[Shim] = ()) -> None:
        """
        Args:
            control: The socket to the keeper, after the hand-over.
            shims: Those of the hand-over that have no command.
        """
        super().__init__()
        self._socket = self._control = control
        self._idle += shims
        self.is_lost = False
        """Whether the keeper is gone."""

    def fileno(self) -> int:
        """Return the socket to the keeper, which is readable when ``receive`` has something to return."""
        return self._control.fileno()

    def receive(self) -> KeeperOrder | None:
        """Return what the keeper orders; None if there is nothing."""
        try:
            order = KeeperOrder(self._control.recv(1))
        except ConnectionError:
            order = KeeperOrder.LOST
        except (OSError, ValueError):
            return None  # There is nothing, or a newer keeper knows more.
        self.is_lost = order is KeeperOrder.LOST
        return order

    def open(self) -> None:
        """Do nothing: the keeper runs, or this server ends."""

    def adopt(self) -> None:
        """Do nothing: orphans become the children of the keeper."""

    def _make(self) -> Shim:
        """Have the keeper make a shim; it keeps a copy of our end of the socket to it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._tell(b"A", theirs.fileno(), ours.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return Shim(ours)

    def listen(self, label: str, fd: int) -> None:
        """Have the keeper hold a listening socket, which the next server gets with this label.

        Raises:
            ValueError: The label is too long.
            OSError: The keeper cannot be told.
        """
        text = label.encode()
        if len(text) > LABEL_MOST:
            raise ValueError(f"a label of {len(text)} bytes, more than {LABEL_MOST}")
        self._tell(b"L" + text, fd)

    def ready(self) -> None:
        """Tell the keeper that the listeners are served."""
        self._tell(b"R")

    def stop(self, code: int) -> None:
        """Tell the keeper that this server ends on purpose.  All shims end, and the keeper with ``code``."""
        self._control.setblocking(True)
        with contextlib.suppress(ConnectionError):
            self._control.send(b"S" + _CODE.pack(code))
        self._control.close()

    def _shut(self) -> None:
        """Keep no more shims for other commands."""
        self._socket = None
