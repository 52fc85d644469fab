"""Start a program: its files, its session, its directory, its name.

The server is never forked: ``posix_spawn`` shares our memory with the child
until the program runs, so that a start costs the same however large we are.  It
is called through ctypes because ``os.posix_spawn`` cannot change the directory.
A controlling terminal needs no help from the child either: a session leader
that opens a terminal, as our file action does, has it as its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import pwd
import resource
import signal as signals
from collections.abc import Mapping, Sequence
from functools import cache

from holdfast.errors import Fault, Search, SpawnFailed
from holdfast.model import Size, Spec, Stream

from .child import Child
from .environ import Environment
from .guardian import Guardian
from .program import DEFAULT_PATH, find
from .pty import open_terminal
from .text import to_bytes

_SETSID = 0x80
_SETSIGMASK = 0x08
_SETSIGDEF = 0x04
_SIGNALS = 64
_ROOM = 1024
"""Bytes for the library's opaque structures; the largest needs 336."""

_libc = ctypes.CDLL(None, use_errno=False)
_posix_spawn = _libc.posix_spawn
_posix_spawn.argtypes = (ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_void_p] * 4)

_closefrom = getattr(_libc, "posix_spawn_file_actions_addclosefrom_np", None)
"""From glibc 2.34 on."""


def _attributes() -> ctypes.Array[ctypes.c_char]:
    """A new session, no signal blocked, none ignored."""
    attributes = ctypes.create_string_buffer(_ROOM)
    _libc.posix_spawnattr_init(attributes)
    _libc.posix_spawnattr_setflags(attributes, ctypes.c_short(_SETSID | _SETSIGMASK | _SETSIGDEF))
    no_signals = ctypes.create_string_buffer(_ROOM)
    _libc.posix_spawnattr_setsigmask(attributes, no_signals)
    # Bit by bit: the library's own functions leave out the two signals it keeps for
    # itself, and a child would then start with those two ignored.
    all_signals = ctypes.create_string_buffer(b"\xff" * (_SIGNALS // 8), _ROOM)
    _libc.posix_spawnattr_setsigdefault(attributes, all_signals)
    return attributes


_ATTRIBUTES = _attributes()


class _Actions:
    """What the child does before the program runs, in order."""

    def __init__(self) -> None:
        self._store = ctypes.create_string_buffer(_ROOM)
        _libc.posix_spawn_file_actions_init(self._store)

    def dup(self, source: int, target: int) -> None:
        _check(_libc.posix_spawn_file_actions_adddup2(self._store, source, target))

    def open(self, target: int, path: bytes, flags: int) -> None:
        _check(_libc.posix_spawn_file_actions_addopen(self._store, target, path, flags, 0))

    def chdir(self, path: bytes) -> None:
        _check(_libc.posix_spawn_file_actions_addchdir_np(self._store, path))

    def close_rest(self) -> None:
        """Close everything but the standard files.

        They would be closed anyway when the program runs.  But until then, which
        can be long, the child would hold the ends of other children's pipes.
        """
        if _closefrom is not None:
            _check(_closefrom(self._store, 3))

    def spawn(self, program: bytes, argv: Sequence[bytes], env: Sequence[bytes]) -> int:
        pid = ctypes.c_int()
        _check(
            _posix_spawn(
                ctypes.byref(pid),
                program,
                self._store,
                _ATTRIBUTES,
                (ctypes.c_char_p * (len(argv) + 1))(*argv),
                (ctypes.c_char_p * (len(env) + 1))(*env),
            )
        )
        return pid.value

    def free(self) -> None:
        _libc.posix_spawn_file_actions_destroy(self._store)


class Spawner:
    """Starts children, one call each.  Safe to call from several threads."""

    def __init__(
        self,
        environment: Environment,
        *,
        guardian: Guardian | None = None,
        files_limit: tuple[int, int] | None = None,
    ) -> None:
        """
        Args:
            environment: What children inherit.
            guardian: Who ends the children if we are killed.
            files_limit: The limit of open files for children, where ours was raised.
        """
        self._environment = environment
        self._guardian = guardian
        # One for all: a method is made anew whenever it is named, and every child keeps this.
        self._before_reap = None if guardian is None else guardian.forget
        self._files_limit = files_limit

    def start(self, spec: Spec) -> Child:
        """Start what ``spec`` says; blocks until the program runs or cannot.

        Raises:
            SpawnFailed: It could not be started; the error names what is at fault.
        """
        try:
            env = self._environment.child(spec.env_policy, spec.env)
            argv, variables = _arguments(spec), _variables(spec, env)
            cwd = to_bytes(spec.cwd)
        except UnicodeEncodeError as error:
            raise _refusal(spec, Fault.ARGUMENT, "argv, env or cwd", "text stands for no bytes") from error
        if b"\0" in cwd:
            raise _refusal(spec, Fault.DIRECTORY, spec.cwd, "the path contains a NUL byte")
        program = _program(spec, env)
        ours: list[int] = []
        theirs: list[int] = []
        stdin: int | None
        actions = _Actions()
        try:
            if spec.terminal is not None:
                stdin, outputs = _terminal(spec.terminal, actions, ours)
            else:
                stdin, outputs = _pipes(spec, actions, ours, theirs)
            actions.chdir(cwd)
            actions.close_rest()
            pid = actions.spawn(program, argv, variables)
        except OSError as error:
            _close(ours)
            raise _diagnosis(spec, error) from error
        finally:
            _close(theirs)
            actions.free()
        return self._adopt(spec, pid, stdin, outputs)

    def _adopt(
        self, spec: Spec, pid: int, stdin: int | None, outputs: tuple[tuple[Stream, int], ...]
    ) -> Child:
        guardian = self._guardian
        if guardian is not None:
            guardian.note(pid)
        if self._files_limit is not None:
            with contextlib.suppress(OSError):  # It may have ended already.
                resource.prlimit(pid, resource.RLIMIT_NOFILE, self._files_limit)
        try:
            return Child(
                pid,
                stdin=stdin,
                outputs=outputs,
                before_reap=self._before_reap,
            )
        except OSError as error:
            # Without a descriptor for its end the child cannot be watched.
            os.killpg(pid, signals.SIGKILL)
            if guardian is not None:
                guardian.forget(pid)
            os.waitpid(pid, 0)
            _close({fd for _, fd in outputs} | ({stdin} if stdin is not None else set()))
            raise SpawnFailed(
                Fault.SYSTEM,
                "pidfd",
                error.strerror or "",
                number=error.errno,
                terminal=spec.terminal is not None,
            ) from error


def seal_descriptors() -> None:
    """Keep what we inherited from our own parent, standard files apart, from our children.

    What we open ourselves is never inherited.  Only of use where a child cannot
    be told to close everything.
    """
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # The one that reads the list is gone by now.
                os.set_inheritable(int(name), False)


def _terminal(size: Size, actions: _Actions, ours: list[int]) -> tuple[int, tuple[tuple[Stream, int], ...]]:
    master, path = open_terminal(size)
    ours.append(master)
    # A second descriptor, so that reading and writing can be watched apart.
    writer = os.dup(master)
    ours.append(writer)
    actions.open(0, path, os.O_RDWR)
    actions.dup(0, 1)
    actions.dup(0, 2)
    return writer, ((Stream.PTY, master),)


def _pipes(
    spec: Spec, actions: _Actions, ours: list[int], theirs: list[int]
) -> tuple[int | None, tuple[tuple[Stream, int], ...]]:
    stdin = None
    if spec.stdin:
        child_end, stdin = _pipe(ours, theirs, child_reads=True)
        actions.dup(child_end, 0)
    else:
        actions.open(0, b"/dev/null", os.O_RDONLY)
    outputs = []
    for stream, number in ((Stream.STDOUT, 1), (Stream.STDERR, 2)):
        child_end, our_end = _pipe(ours, theirs, child_reads=False)
        actions.dup(child_end, number)
        outputs.append((stream, our_end))
    return stdin, tuple(outputs)


def _pipe(ours: list[int], theirs: list[int], *, child_reads: bool) -> tuple[int, int]:
    """A pipe as (child's end, our end); our end does not block."""
    reader, writer = os.pipe()
    child_end, our_end = (reader, writer) if child_reads else (writer, reader)
    ours.append(our_end)
    theirs.append(child_end)
    os.set_blocking(our_end, False)
    return child_end, our_end


def _program(spec: Spec, env: Mapping[str, str]) -> bytes:
    """The file to execute."""
    name, path = spec.argv[0], env.get("PATH")
    try:
        if path is None and spec.terminal is not None and "/" not in name:
            # A terminal's child is searched for in its own PATH only.
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return find(name, DEFAULT_PATH if path is None else path, spec.cwd)
    except OSError as error:
        raise _diagnosis(spec, error, search=Search(path)) from error


def _arguments(spec: Spec) -> list[bytes]:
    argv = [to_bytes(argument) for argument in spec.argv]
    if not argv or not argv[0]:
        raise _refusal(spec, Fault.PROGRAM, "", "the program's name is empty")
    if spec.arg0 is not None:
        argv.append(argv[0])  # Checked with the rest, then no longer needed.
        argv[0] = to_bytes(spec.arg0)
    if any(b"\0" in argument for argument in argv):
        raise _refusal(spec, Fault.ARGUMENT, "argv", "an argument contains a NUL byte")
    return argv[: len(spec.argv)]


def _variables(spec: Spec, env: Mapping[str, str]) -> list[bytes]:
    if spec.terminal is not None and "SHELL" not in env:
        env = {**env, "SHELL": login_shell()}
    # Sorted, so that the same request gives the same bytes.
    variables = [to_bytes(f"{name}={value}") for name, value in sorted(env.items())]
    if any(b"\0" in variable for variable in variables):
        raise _refusal(spec, Fault.ARGUMENT, "env", "a variable contains a NUL byte")
    return variables


def _refusal(spec: Spec, fault: Fault, subject: str, reason: str) -> SpawnFailed:
    """What we can see ourselves, before the system is asked."""
    return SpawnFailed(fault, subject, reason, terminal=spec.terminal is not None)


@cache
def login_shell() -> str:
    """The shell of the user the server runs as."""
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def _check(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))


def _diagnosis(spec: Spec, error: OSError, *, search: Search | None = None) -> SpawnFailed:
    """Say which of the things named in ``spec`` the system's error was about."""
    number = error.errno or errno.EIO
    fault, subject = Fault.PROGRAM, spec.argv[0]
    cwd = to_bytes(spec.cwd)
    if number in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC):
        fault = Fault.SYSTEM
    elif number == errno.E2BIG:
        fault, subject = Fault.ARGUMENT, "argv and env"
    elif not os.path.isdir(cwd) or not os.access(cwd, os.X_OK):
        fault, subject, search = Fault.DIRECTORY, spec.cwd, None
    return SpawnFailed(
        fault,
        subject,
        os.strerror(number),
        number=number,
        terminal=spec.terminal is not None,
        search=search,
    )


def _close(descriptors: Sequence[int] | set[int]) -> None:
    for fd in descriptors:
        os.close(fd)
