"""The nursery in Python, for installations without a compiler.  It has effects.

``nursery.c`` is the same program and says what it is for; the two change together,
and ``warden.py`` has the other side of the messages.  This file is run by itself:
``python -I -S nursery.py [FILES_SOFT FILES_HARD]``, with a socket as descriptor 3.

What must hold:

- SIGCHLD is blocked except while waiting, so no death is missed between a look and the wait.
- A child that was not reaped keeps its number, so no signal ever hits a stranger.
- A warden touches little: every page that it writes to becomes its own.
"""

# house: long because it is run by itself, with -I, and could not import a second file

from __future__ import annotations

import ctypes
import errno
import gc
import os
import resource  # For os.wait4 too, which would import it anew in every warden.
import signal
import socket
import stat
import struct
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False  # By hand, because typing would be a quarter of all that is imported.
if TYPE_CHECKING:
    from typing import NoReturn

SOCKET = 3
INLINE_MOST = 65536  # Bytes of a request that is not in a file of its own.
STANDARD_FILES = 3
SURVIVORS_MOST = 256
HELD_MOST = 256
HOLD = 1.0  # Seconds in which the numbers of the killed are kept from others.
SWEEP = 5.0  # Seconds in which the nursery tries to end what a killed warden left.
PATIENCE = 1.0  # Seconds the killed may take before they are told as survivors.
SOON_MS = 2  # Who is killed is gone in a moment, and then its children are ours.
LATER_MS = 100
POST_TRIES = 1000  # How often it is tried to tell something, and the pause between.
POST_PAUSE_MS = 5
GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.EBADF)  # Any other error is of this moment.
FOUND_MOST = 4096 + 256  # Bytes of a path that was put together, its end mark included.

# What a warden is told: kind, flags, arguments, variables, limits, control groups, size; of a sandbox: bytes
# of the filter, masks, rules.  The last two are for bubblewrap and the witness, which only nursery.c has.
ORDER = struct.Struct("=10I")
START, RELEASE, KILL = 1, 2, 3
TERMINAL, SEARCH, IN_FILE, HAS_STDIN, QUIETLY = 1, 2, 4, 8, 16
CONFINED, RULESET, WRAPPED, WITNESS, POWERLESS = 32, 64, 128, 256, 1024
LIMIT = struct.Struct("=3Q")

# What a warden tells: kind, value, detail, its own pid, user and system time in us, peak memory in KiB.
REPORT = struct.Struct("=IiII3Q")
STARTED, FAILED, EXITED, EMPTY, SURVIVORS = 1, 2, 3, 4, 5
BY_SIGNAL, ALONE = 1, 2
AT_FORK, AT_TERMINAL, AT_DIRECTORY, AT_SEARCH, AT_PROGRAM, AT_LIMIT, AT_GROUP = 1, 2, 3, 4, 5, 6, 7
AT_SANDBOX, AT_HIDDEN = 8, 9
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 24, 28, 47, 4
SECBIT_NOROOT = 0b11  # And locked.
CAPABILITY_VERSION = 0x20080522
LANDLOCK_RESTRICT_SELF = 446
GARBAGE = 0  # Stands for a stage: the request makes no sense.
FAILURE = struct.Struct("=2i")

# What neither a nursery nor a warden may die of; their children hear everything again.
DEAF_NAMES = ("INT", "TERM", "HUP", "QUIT", "PIPE", "USR1", "USR2", "TSTP", "TTIN", "TTOU")
DEAF = [int(getattr(signal, "SIG" + name)) for name in DEAF_NAMES]
SIGNALS = 64

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
POLLIN = 1

# Numbers of rt_sigaction and waitid.  The C library's sigaction refuses the signals that it keeps to itself,
# and its waitid has no place for usage.
RAW_CALLS = {"x86_64": (13, 247), "aarch64": (134, 95), "riscv64": (134, 95)}
RT_SIGACTION, WAITID = RAW_CALLS.get(os.uname().machine, (0, 0)) if sys.maxsize > 1 << 32 else (0, 0)

libc = ctypes.CDLL(None, use_errno=True)
NO_SIGNALS = (ctypes.c_ulong * 32)()
set_limit = libc.prlimit64 if hasattr(libc, "prlimit64") else libc.prlimit

Usage = tuple[int, int, int]
NO_USAGE = (0, 0, 0)


class Failed(Exception):
    """What the command was about to become cannot be."""

    def __init__(self, stage: int, number: int) -> None:
        self.stage = stage
        self.number = number


def wait_for(fd: int, wait_ms: int | None) -> bool:
    """Whether ``fd``, if it is one, has something to read; a child's death ends the wait too."""
    polled = ctypes.create_string_buffer(struct.pack("ihh", fd, POLLIN, 0), 8)
    pause = None if wait_ms is None else (ctypes.c_long * 2)(0, wait_ms * 1_000_000)
    return bool(libc.ppoll(polled, ctypes.c_ulong(1), pause, NO_SIGNALS) > 0)


def receive(peer: socket.socket, size: int, *, files: int) -> tuple[bytes, list[int]]:
    """A message that is there, and the descriptors that came with it."""
    flags = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
    data, extras, _, _ = peer.recvmsg(size, socket.CMSG_LEN(4 * files), flags)
    if extras and extras[0][1] == socket.SCM_RIGHTS:
        return data, list(struct.unpack(f"={len(extras[0][2]) // 4}i", extras[0][2]))
    return data, []


def post(peer: socket.socket, message: bytes) -> bool:
    """Send a message to somebody who may be gone; say whether nothing else was in the way."""
    for _ in range(POST_TRIES):
        try:
            peer.send(message, socket.MSG_NOSIGNAL)
        except OSError as error:
            if error.errno in GONE:
                return True
            wait_for(-1, POST_PAUSE_MS)  # For want of memory, say.
        else:
            return True
    return False


# Children.


def children() -> list[int] | None:
    """Our children; None if that cannot be known now.

    The kernel's list may miss some while others end: ask again.
    """
    with suppress(OSError):
        return [int(word) for word in contents("/proc/thread-self/children").split()]
    with suppress(OSError):  # A kernel without that list.
        names = [name for name in os.listdir("/proc") if name.isdigit()]
        return [int(name) for name in names if facts(name)[1:2] == [b"%d" % os.getpid()]]
    return None


def contents(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(fd, 4096), b""))
    finally:
        os.close(fd)


def facts(pid: int | str) -> list[bytes]:
    """State, parent and more of a process; nothing if there is none."""
    try:
        return contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def both(one: Usage, other: Usage) -> Usage:
    return one[0] + other[0], one[1] + other[1], max(one[2], other[2])


def usage_of(pid: int) -> Usage:
    """What an ended child that is not yet reaped has used; nothing where we do not know how to ask."""
    used = (ctypes.c_long * 18)()
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    if not WAITID or libc.syscall(ctypes.c_long(WAITID), os.P_PID, pid, None, options, used) < 0:
        return NO_USAGE
    return used[0] * 1_000_000 + used[1], used[2] * 1_000_000 + used[3], used[4]


# Starting.


class Request:
    """What to start, taken apart."""

    def __init__(self, order: tuple[int, ...], body: bytes) -> None:
        _, flags, arguments, variables, limits, groups, size, filtering, masks, rules = order
        at = limits * LIMIT.size
        if at + filtering > size or len(body) < size or flags & (WRAPPED | WITNESS):
            raise Failed(GARBAGE, 0)
        self.limits = list(LIMIT.iter_unpack(body[:at]))
        self.filter = body[at : at + filtering] if flags & CONFINED else None
        texts = iter(body[at + filtering : size].split(b"\0")[:-1])
        try:
            self.cwd = next(texts)
            self.terminal = next(texts) if flags & TERMINAL else None
            self.groups = [next(texts) for _ in range(groups)]
            self.name = next(texts)
            self.path = next(texts) if flags & SEARCH else None
            for _ in range(masks + rules):
                next(texts)
            self.argv = [next(texts) for _ in range(arguments)]
            self.env = [next(texts) for _ in range(variables)]
        except StopIteration:
            raise Failed(GARBAGE, 0) from None


def look_up(name: bytes, path: bytes, cwd: bytes) -> bytes:
    """The file that ``name`` stands for, in ``path`` as seen from ``cwd``."""
    reason = errno.ENOENT
    for entry in path.split(b":"):
        if entry.startswith(b"/"):
            found = entry + b"/" + name
        else:
            found = cwd + (b"" if cwd.endswith(b"/") else b"/") + entry + (b"/" if entry else b"") + name
        if len(found) >= FOUND_MOST:
            reason = errno.ENAMETOOLONG
            continue
        try:
            mode = os.stat(found).st_mode
        except OSError as error:
            if error.errno in (errno.EACCES, errno.ENAMETOOLONG):
                reason = error.errno
            continue
        if stat.S_ISREG(mode) and os.access(found, os.X_OK, effective_ids=True):
            return found
        reason = errno.EACCES
    raise Failed(AT_SEARCH, reason)


def become(order: tuple[int, ...], body: bytes, files: list[int]) -> NoReturn:
    """In the child: turn into the program.  Raises if that cannot be."""
    stage = AT_FORK
    try:
        if order[1] & IN_FILE:
            body = os.pread(files.pop(), order[6], 0)
        ruleset = files.pop() if order[1] & RULESET else -1
        # Here and not in the warden, which would keep the memory that this takes.
        request = Request(order, body)
        os.setsid()
        stage = AT_GROUP
        for group in request.groups:
            fd = os.open(group, os.O_WRONLY)
            os.write(fd, b"0")
            os.close(fd)
        if request.terminal is not None:
            stage = AT_TERMINAL
            # A session leader that opens a terminal has it as its own.
            files = [os.open(request.terminal, os.O_RDWR)] * STANDARD_FILES
        else:
            stage = AT_FORK
            if not order[1] & HAS_STDIN:
                files = [os.open("/dev/null", os.O_RDONLY), *files]
            files = [*files, -1, -1, -1]
        for at in range(STANDARD_FILES):
            os.dup2(files[at], at)
        stage = AT_DIRECTORY
        os.chdir(request.cwd)
    except OSError as error:
        raise Failed(stage, error.errno or 0) from None
    program = request.name if request.path is None else look_up(request.name, request.path, request.cwd)
    for kind, soft, hard in request.limits:
        if set_limit(0, ctypes.c_int(kind), (ctypes.c_uint64 * 2)(soft, hard), None) < 0:
            raise Failed(AT_LIMIT, ctypes.get_errno())
    for number in DEAF:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if request.filter is not None:
        check(program)
        confine(request.filter, ruleset, powerless=bool(order[1] & POWERLESS))
    # Not os.execve: that wants variables with different names, and an argument.
    argv = (ctypes.c_char_p * (len(request.argv) + 1))(*request.argv)
    env = (ctypes.c_char_p * (len(request.env) + 1))(*request.env)
    libc.execve(program, argv, env)
    number = ctypes.get_errno()
    hidden = request.filter is not None and number in (errno.EACCES, errno.ENOENT)
    raise Failed(AT_HIDDEN if hidden else AT_PROGRAM, number)


def check(program: bytes) -> None:
    """What is wrong with a program is said before the sandbox hides it."""
    try:
        mode = os.stat(program).st_mode
    except OSError as error:
        raise Failed(AT_PROGRAM, error.errno or 0) from None
    if not stat.S_ISREG(mode) or not os.access(program, os.X_OK, effective_ids=True):
        raise Failed(AT_PROGRAM, errno.EACCES)


def give_up_power() -> None:
    """All that root has and others have not, also for programs that are run later."""
    for number in range(64):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)  # Fails for who has no power to begin with.
    libc.prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if libc.capset(struct.pack("=Ii", CAPABILITY_VERSION, 0), bytes(24)) < 0:
        raise Failed(AT_SANDBOX, ctypes.get_errno())


def confine(instructions: bytes, ruleset: int, *, powerless: bool) -> None:
    """Give up rights for good."""
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0:
        raise Failed(AT_SANDBOX, ctypes.get_errno())
    if powerless:
        give_up_power()
    if ruleset >= 0 and libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0) < 0:
        raise Failed(AT_SANDBOX, ctypes.get_errno())
    kept = ctypes.create_string_buffer(instructions, len(instructions))
    program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(kept))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) < 0:
        raise Failed(AT_SANDBOX, ctypes.get_errno())


def spawn(order: tuple[int, ...], body: bytes, files: list[int]) -> int:
    """The pid of the command, which runs its program.  Raises `Failed`."""
    try:
        heard, said = os.pipe()
        pid = os.fork()
    except OSError as error:
        raise Failed(AT_FORK, error.errno or 0) from None
    if pid == 0:
        try:
            become(order, body, files)
        except Failed as failed:
            os.write(said, FAILURE.pack(failed.stage, failed.number))
        except Exception:  # noqa: BLE001  (whatever it is: silence would mean that the program runs)
            os.write(said, FAILURE.pack(GARBAGE, 0))
        finally:
            os._exit(127)
    os.close(said)
    failure = os.read(heard, FAILURE.size)
    os.close(heard)
    if failure:
        os.waitpid(pid, 0)
        raise Failed(*FAILURE.unpack(failure))
    return pid


class Warden:
    """The parent of one command and of everything that the command leaves behind."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._leader = 0
        self._told = self._released = self._quiet = self._killing = self._orphaned = False
        self._usage: Usage = NO_USAGE
        self._held: set[int] = set()

    def live(self) -> NoReturn:
        killing_since = 0.0
        said = False
        while True:
            if self._leader and not (self._end_all() if self._killing else self._reap()):
                if not self._quiet:
                    self._tell(EMPTY, usage=self._usage)
                self._hold()
                if self._killing:
                    # Our own number stays ours for as long as anybody listens.
                    with suppress(OSError):
                        while not self._orphaned and self._control.recv(REPORT.size):
                            pass
                    os._exit(0)
                # Nobody is left: the next command may come.
                self._leader = 0
                self._told = self._released = self._quiet = False
                self._usage = NO_USAGE
            if not self._leader:
                if self._orphaned:
                    os._exit(0)
                self._killing = False  # It came when nobody was left.
            wait_ms = None
            if self._killing:
                wait_ms = SOON_MS
                now = time.monotonic()
                killing_since = killing_since or now
                if now - killing_since > PATIENCE:
                    if not said:
                        self._tell_survivors()
                        said = True
                    wait_ms = LATER_MS
            if wait_for(-1 if self._orphaned else self._control.fileno(), wait_ms):
                self._obey()

    def _tell(
        self, what: int, value: int = 0, detail: int = 0, warden: int = 0, usage: Usage = NO_USAGE
    ) -> None:
        self._send(REPORT.pack(what, value, detail, warden, *usage))

    def _send(self, message: bytes) -> None:
        """News that nobody hears of would be waited for without end: try again, and if it does not help, end.

        Then it is seen that something is wrong, and the nursery ends the tree.
        """
        if not self._orphaned and not post(self._control, message):
            os._exit(3)

    def _tell_survivors(self) -> None:
        alive = [pid for pid in children() or () if facts(pid)[:1] not in ([], [b"Z"])][:SURVIVORS_MOST]
        self._send(
            REPORT.pack(SURVIVORS, len(alive), 0, 0, *NO_USAGE) + struct.pack(f"={len(alive)}i", *alive)
        )

    def _reap(self) -> bool:
        """Reap who has ended; say whether anybody is left.

        The command itself is kept until its number is no longer needed: whoever
        asked for it sends signals to that number.
        """
        while not self._told or self._released:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return True
            if ended.si_pid == self._leader and not self._told:
                self._tell_exit(ended)
            else:
                self._reap_one(ended.si_pid)
        for pid in children() or ():
            if pid != self._leader:
                self._reap_one(pid)
        return True

    def _tell_exit(self, ended: os.waitid_result) -> None:
        self._told = True
        detail = 0 if ended.si_code == os.CLD_EXITED else BY_SIGNAL
        known = children()
        if known is not None and all(pid == self._leader for pid in known):
            detail |= ALONE
        usage = both(self._usage, usage_of(self._leader))
        self._tell(EXITED, ended.si_status, detail, usage=usage)

    def _end_all(self) -> bool:
        """Kill who lives and reap who is dead; say whether anybody lives."""
        while True:
            known = children()
            alive = known is None
            dead = []
            for pid in known or ():
                if pid not in self._held:
                    with suppress(ChildProcessError):
                        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                        if ended is not None:
                            dead.append(ended)
                            continue
                    kill(pid)
                    alive = True
            if not dead:
                return alive
            for ended in dead:
                self._bury(ended)

    def _hold(self) -> None:
        """Keep the numbers of those who are held."""
        until = time.monotonic() + HOLD
        while self._held and time.monotonic() < until:
            wait_for(-1, LATER_MS)

    def _bury(self, ended: os.waitid_result) -> None:
        """Reap a child that was killed.

        One that had left the group of the command keeps its number for a moment:
        others than us leave such a process alive, so somebody may be about to kill
        it by its number, and must not hit a stranger.
        """
        pid = ended.si_pid
        if pid == self._leader and not self._told:
            self._tell_exit(ended)
        escaped = pid != self._leader and os.getpgid(pid) != self._leader
        if escaped and not self._orphaned and len(self._held) < HELD_MOST:
            self._held.add(pid)
            self._usage = both(self._usage, usage_of(pid))
        else:
            self._reap_one(pid)

    def _reap_one(self, pid: int) -> None:
        with suppress(ChildProcessError):
            reaped, _, used = os.wait4(pid, os.WNOHANG)
            if reaped:
                times = round(used.ru_utime * 1e6), round(used.ru_stime * 1e6)
                self._usage = both(self._usage, (*times, used.ru_maxrss))

    def _obey(self) -> None:
        try:
            data, files = receive(self._control, ORDER.size + INLINE_MOST, files=STANDARD_FILES + 2)
        except OSError as error:
            if error.errno not in GONE:
                return  # It is still there when we ask again.
            data, files = b"", []
        if not data:
            self._orphaned = self._released = self._killing = True
            return
        if len(data) < ORDER.size:
            os._exit(3)
        order = ORDER.unpack_from(data)
        what, flags, size = order[0], order[1], order[6]
        if what == START:
            whole = bool(files) if flags & IN_FILE else size == len(data) - ORDER.size
            if self._leader or not whole:
                os._exit(3)
            self._start(order, data[ORDER.size :], files)
        elif what == RELEASE:
            self._released = True
            self._quiet = bool(flags & QUIETLY)
        elif what == KILL:
            self._released = self._killing = True

    def _start(self, order: tuple[int, ...], body: bytes, files: list[int]) -> None:
        try:
            self._leader = spawn(order, body, files)
        except Failed as failed:
            if failed.stage == GARBAGE:
                os._exit(3)
            self._tell(FAILED, failed.number, failed.stage)
            os._exit(0)
        for fd in files:
            os.close(fd)
        self._tell(STARTED, self._leader, warden=os.getpid())


class Nursery:
    """The parent of all wardens."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._wardens: set[int] = set()
        self._sweep_until = 0.0

    def live(self) -> NoReturn:
        while True:
            ready = wait_for(SOCKET, SOON_MS if self._sweep_until else None)
            self._bury()
            if ready:
                self._admit()

    def _bury(self) -> None:
        """Take note of wardens that have ended.  One that did not end by itself left its tree to us."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0]:
                pid, status = ended
                if os.WIFSTOPPED(status):
                    os.kill(pid, signal.SIGCONT)  # A command can stop its warden, but not for long.
                elif pid in self._wardens:
                    self._wardens.discard(pid)
                    if status:
                        self._sweep_until = time.monotonic() + SWEEP
        if self._sweep_until:
            known = children()
            strays = [pid for pid in known or () if pid not in self._wardens]
            for pid in strays:
                kill(pid)
            if (known is not None and not strays) or time.monotonic() > self._sweep_until:
                self._sweep_until = 0.0

    def _admit(self) -> None:
        try:
            data, files = receive(self._server, 1, files=1)
        except OSError:
            return
        if not data:
            os._exit(0)
        for fd in files:
            # With everything given it asks the kernel nothing.
            control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fd)
            try:
                pid = os.fork()
            except OSError as error:
                post(control, REPORT.pack(FAILED, error.errno or 0, AT_FORK, 0, *NO_USAGE))
            else:
                if pid == 0:
                    self._be_warden(control)
                self._wardens.add(pid)
            control.close()

    def _be_warden(self, control: socket.socket) -> NoReturn:
        try:
            self._server.close()
            settle(b"holdfast-warden")
            Warden(control).live()
        finally:  # After a mistake of ours too: the nursery then ends the tree.
            os._exit(3)


def settle(name: bytes) -> None:
    """Be on our own, have a name, and take in whose parent has ended."""
    with suppress(OSError):
        os.setsid()
    libc.prctl(PR_SET_NAME, name, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def hear_everything() -> None:
    """Ignore no signal, not even those that the C library keeps to itself."""
    by_default = (ctypes.c_ulong * 8)()
    for number in range(1, SIGNALS + 1):
        if RT_SIGACTION:
            libc.syscall(ctypes.c_long(RT_SIGACTION), number, by_default, None, ctypes.c_size_t(8))
        else:
            libc.signal(number, None)


def main(arguments: list[str]) -> int:
    if len(arguments) not in (0, 2):
        sys.stderr.write("usage: nursery.py [FILES_SOFT FILES_HARD], with a socket as descriptor 3\n")
        return 2
    # Before the limit falls, so that no number is above it.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > SOCKET:
            with suppress(OSError):
                os.close(int(name))
    if arguments:
        files = (ctypes.c_uint64 * 2)(int(arguments[0]), int(arguments[1]))
        set_limit(0, resource.RLIMIT_NOFILE, files, None)
    os.set_inheritable(SOCKET, False)
    settle(b"holdfast-nurse")
    hear_everything()
    for number in DEAF:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, (signal.SIGCHLD,))
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, SOCKET)
    try:
        server.send(b"\0", socket.MSG_NOSIGNAL)
    except OSError:
        return 1
    # A collection would write to every object that the wardens share with us.
    gc.disable()
    gc.freeze()
    Nursery(server).live()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
