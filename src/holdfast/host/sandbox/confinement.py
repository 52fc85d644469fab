"""Confinements: what a shim needs to keep a command in its sandbox, who makes that, and who tries it out.

``Confiner`` finds out which sandbox backends work on this host, and has the best of them make each
confinement.  Where none works, it refuses.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import select
import signal as signals
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from threading import Lock, Thread

from holdfast.errors import SandboxUnavailable
from holdfast.sandbox import Access, Denial, Guarantees, Rule, Rules, Sandbox
from holdfast.value import value

from .backends import SANDBOX_BACKENDS, SandboxBackendRow, SandboxProbe, SandboxServices
from .filter import MACHINES
from .rules import PolicySearch, resolve

_KEEPERS = 2
"""Processes that bubblewrap adds to a tree: itself, and the first process inside."""

_KEPT = 64
"""Rulesets, and lists of arguments, that are kept for the next command with the same rules."""

_KEPT_BYTES = 64 << 10
"""About the size of one of them.  Larger ones are made anew each time: clients say how large they are."""

_LETTERS = {Access.DENY: b"d", Access.READ: b"r", Access.WRITE: b"w"}


class Held:
    """A descriptor that is open for as long as somebody refers to this object."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        """Take over ``fd``, which nobody else may close."""
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


class DescriptorCache:
    """Descriptors that are kept for the next command with the same rules.  May be used in any thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, Held] = OrderedDict()
        self._lock = Lock()  # Confinements are made in threads.

    def get(self, key: object, make: Callable[[], int], *, size: int) -> Held:
        """Return the descriptor that is kept under ``key``, or a new one.

        Args:
            make: Opens a new one.  It is called under the lock, so that no two threads open the same one.
            size: About how many bytes the descriptor and its key hold.  What is too large is not kept.
        """
        if size > _KEPT_BYTES:
            return Held(make())
        with self._lock:
            held = self._kept.get(key)
            if held is None:
                held = self._kept[key] = Held(make())
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(key)
            return held

    def clear(self) -> None:
        """Forget all descriptors.  Each is closed once no confinement refers to it."""
        self._kept.clear()


@value
class Confinement:
    """Everything that a shim needs to put a command into its sandbox."""

    filter: bytes
    """The filter of system calls, as a program for seccomp."""
    ruleset: Held | None = None
    """The Landlock ruleset that the command enters."""
    wrapper: bytes | None = None
    """The path of bubblewrap, if that makes the sandbox."""
    arguments: Held | None = None
    """A file with the arguments of bubblewrap."""
    masks: tuple[bytes, ...] = ()
    """Directories that the shim makes for bubblewrap to mount on, and removes."""
    network: bool = False
    """Whether the command may use the network."""
    domain: bool = False
    """Whether Landlock keeps, under bubblewrap, what mounts cannot: writes to named pipes."""
    rules: tuple[bytes, ...] = ()
    """The rules for the witness, and for that domain: a letter and a path each."""
    witness: bool = False
    """Whether a witness sees what the sandbox refuses."""
    guard: bool = False
    """Whether the witness also refuses what the kernel cannot."""
    powerless: bool = False
    """Whether the shim drops all capabilities of the command; bubblewrap does that itself."""

    @property
    def handed(self) -> Held | None:
        """The descriptor that the shim gets with its order, if any."""
        return self.ruleset or self.arguments

    def command(self) -> ConfinedCommand:
        """Return an account, still empty, of one command that is started in this confinement."""
        return ConfinedCommand(exact=self.witness, enforcers=0 if self.wrapper is None else _KEEPERS)


class ConfinedCommand:
    """The account of one confined command: what its sandbox has refused it."""

    __slots__ = ("denials", "enforcers", "exact")

    def __init__(self, denials: Iterable[Denial] = (), *, exact: bool, enforcers: int = 0) -> None:
        self.denials = list(denials)
        """What the witness has reported so far; complete when the exit of the command is reported."""
        self.exact = exact
        """Whether there is a witness, so that ``denials`` has every denial."""
        self.enforcers = enforcers
        """Processes of the command's tree that only keep its sandbox."""


def witness_rules(rules: Rules) -> tuple[bytes, ...]:
    """Return rules as the witness reads them: a letter for the access, then the path."""
    return tuple(_letter(rule) + os.fsencode(rule.path) for rule in rules.rules)


def _letter(rule: Rule) -> bytes:
    if rule.missing:
        return b"m"
    return b"l" if rule.link else _LETTERS[rule.access]


# Trials of what confinements need: whether a program works on this host.

PATIENCE = 5.0
"""Seconds that a program has by default.  It takes milliseconds, unless a disk or a mount hangs."""

_END = 1.0
"""Seconds to wait for the end of a killed program.  After that it hangs in the kernel."""

_SAID_MOST = 500
"""Bytes of the program's standard error that are passed on."""


class Trial:
    """One run of a program that is tried out.  May be used in any thread."""

    def __init__(self, argv: list[str], *, within: float = PATIENCE) -> None:
        """Start the program, which has to end ``within`` so many seconds.  Does not wait."""
        self._name = argv[0]
        self._within = within
        self._deadline = time.monotonic() + within
        self._pid = 0
        self._pidfd = -1
        self._lock = Lock()
        self._result: str | None = None
        self._is_stopped = False
        self._stop: Held | None = Held(os.eventfd(0))  # Readable once it is stopped; None once it is over.
        self._said = os.memfd_create("holdfast-trial")
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
        actions = [*nowhere, (os.POSIX_SPAWN_DUP2, self._said, 2)]
        try:
            # It gets a group of its own, so that everything it has started can be killed with it.
            self._pid = os.posix_spawn(
                argv[0],
                argv,
                {},
                file_actions=actions,
                setpgroup=0,
                setsigmask=[],
                setsigdef=[signals.SIGCHLD],  # It waits for its children, though we may ignore ours.
            )
            self._pidfd = os.pidfd_open(self._pid)
        except ProcessLookupError:
            # It has ended.  Where SIGCHLD is ignored its pid may be another process's by now.
            self._pid = 0
            self._finish(self._unknown())
        except OSError as error:
            self._finish(f"{argv[0]}: {error.strerror}")

    @property
    def over(self) -> bool:
        """Whether ``failure`` would answer at once."""
        return self._result is not None or self._ends_within(0)

    def failure(self) -> str:
        """Wait for the end of the program, or of its time.  Return what was wrong; empty if nothing was."""
        with self._lock:
            if self._result is None:
                self._finish(self._outcome())
            assert self._result is not None
            return self._result

    def stop(self) -> None:
        """Kill the program, if it still runs.  May be called twice, and after its end.

        Whoever waits for the program in another thread is told so at once.
        """
        self._is_stopped, stop = True, self._stop
        if stop is not None:
            os.eventfd_write(stop.fileno(), 1)
        with self._lock:
            if self._result is None:
                self._finish(self._outcome())

    def _outcome(self) -> str:
        """Wait as ``failure`` does, and return the same."""
        if not self._ends_within(self._deadline - time.monotonic(), or_until=self._stop):
            if self._is_stopped:
                return f"{self._name} was stopped while it was tried out"
            return f"{self._name} hangs: it did not end within {self._within:g} s"
        code = self._reap()
        if code == 0:
            return ""
        text = os.pread(self._said, _SAID_MOST, 0).decode(errors="replace").strip()
        return text or (self._unknown() if code is None else f"{self._name} ended with {code}")

    def _unknown(self) -> str:
        return f"{self._name} ended with an unknown code"

    def _ends_within(self, seconds: float, *, or_until: Held | None = None) -> bool:
        """Wait so long for the end of the program, without reaping it.  Return whether it has ended.

        Args:
            or_until: A descriptor.  Once it is readable this waits no longer.
        """
        pidfd = self._pidfd
        if pidfd < 0:
            return True  # Another thread has reaped it meanwhile.
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if or_until is not None:
            poll.register(or_until, select.POLLIN)
        return any(fd == pidfd for fd, _ in poll.poll(max(0.0, seconds) * 1000))

    def _reap(self) -> int | None:
        """Reap the program; return its exit code, or None if other code of this process has reaped it."""
        pid, self._pid = self._pid, 0
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:
            return None

    def _finish(self, result: str) -> None:
        """Note the result, kill the program if it still runs, and release everything."""
        self._result = result
        self._stop = None
        os.close(self._said)
        if self._pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signals.SIGKILL)
            if self._ends_within(_END) and self._pidfd >= 0:
                self._reap()
            else:
                # A program that hangs in the kernel cannot be killed.  Only this thread waits for it.
                Thread(target=self._reap, name="holdfast-trial", daemon=True).start()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class Confiner:
    """Makes confinements, by the best sandbox backend that works on this host.  May be used in any thread."""

    def __init__(
        self,
        helper: str | None,
        *,
        only: str | None = None,
        off: bool = False,
        patience: float = PATIENCE,
        table: Sequence[SandboxBackendRow] = SANDBOX_BACKENDS,
    ) -> None:
        """Begin to try out the sandbox backends, without waiting for the results.

        Args:
            helper: The path of the compiled fork server, if there is one.
            only: The name of the one sandbox backend that may be used.
            off: Use none.
            patience: Seconds that a program may take which is tried out; after that it counts as failed.
            table: The sandbox backends, the best first.
        """
        self._off = off
        self._descriptors = DescriptorCache()
        # It runs while others get ready, and so does what the sandbox backends try out.
        self._witness = Trial([helper, "probe"], within=patience) if helper and not off else None
        services = SandboxServices(
            helper, MACHINES.get(platform.machine()), self._witness, patience, self._descriptors
        )
        wanted = [row for row in table if not off and only in (None, row.name)]
        self._backends = {row.name: row.make(services) for row in wanted}
        self._filesystems = {row.name: row.filesystem for row in wanted}
        self._findings: dict[str, SandboxProbe] = {}
        self._found: Guarantees | None = None
        self._lock = Lock()  # Whoever asks first probes, and the others wait for the result.

    @property
    def tried_out(self) -> bool:
        """Whether ``guarantees`` and ``findings`` would answer at once."""
        if self._found is not None:
            return True
        witness = self._witness is None or self._witness.over
        return witness and all(backend.probed for backend in self._backends.values())

    @property
    def findings(self) -> dict[str, SandboxProbe]:
        """The probe of each sandbox backend that may be used, by its name.  Waits as ``guarantees`` does."""
        _ = self.guarantees
        return self._findings

    @property
    def guarantees(self) -> Guarantees:
        """What sandboxes are worth on this host, as it was found when this object was made.

        Waits until the sandbox backends are tried out, no longer than the patience that was given.
        """
        with self._lock:
            if self._found is None:
                self._found = self._probe()
            return self._found

    def _probe(self) -> Guarantees:
        if self._off:
            return Guarantees(None, reason="sandboxes are switched off")
        self._findings = {name: backend.probe() for name, backend in self._backends.items()}
        reasons: list[str] = []
        for name, backend in self._backends.items():
            if self._findings[name].works:
                reason = "; ".join(reasons)
                return Guarantees(
                    name,
                    backend.protection,
                    backend.exact,
                    backend.weaknesses,
                    reason,
                    filesystem=self._filesystems[name],
                )
            reasons.append(f"{name}: {self._findings[name].reason}")
        return Guarantees(None, reason="; ".join(reasons))

    def confine(
        self, sandbox: Sandbox, tmpdir: str | None, search: PolicySearch | None = None
    ) -> Confinement:
        """Return what keeps ``sandbox``.  Asks the disk, for as long as ``search`` allows.

        Args:
            tmpdir: ``TMPDIR`` of the command.

        Raises:
            BadRequest: A pattern cannot be looked for.
            LimitReached: There is too much to look for.
            SandboxUnavailable: No sandbox can be kept on this host, or not this one.
        """
        best = self.guarantees
        if best.backend is None:
            raise SandboxUnavailable(self._advised(best.reason))
        rules = resolve(sandbox, tmpdir, search)
        try:
            return self._backends[best.backend].confine(sandbox, rules)
        except SandboxUnavailable as refused:
            raise SandboxUnavailable(self._advised(refused.reason, best.backend)) from refused

    def _advised(self, reason: str, kept_by: str | None = None) -> str:
        """Return why a sandbox is refused, with what keeps sandboxes here and what might keep this one."""
        if kept_by is not None:
            reason = f"{reason}; sandboxes are kept by {kept_by} here"
        better = itertools.takewhile(lambda name: name != kept_by, self._findings)
        cures = [f"{name}: {self._findings[name].cure}" for name in better if self._findings[name].cure]
        return f"{reason}; what may help: {'; '.join(cures)}" if cures else reason

    def close(self) -> None:
        """Release everything.  May be called twice."""
        if self._witness is not None:
            self._witness.stop()
        for backend in self._backends.values():
            backend.close()
        self._descriptors.clear()
