"""Bubblewrap, a sandbox backend: the program ``bwrap`` gives each command mounts of its own.

It keeps the most, and needs a host on which a user namespace can be made.
"""

from __future__ import annotations

import os
import platform
import re
import stat
from collections.abc import Iterator, Sequence
from threading import Lock

from holdfast.errors import SandboxUnavailable
from holdfast.sandbox import Access, Protection, Rule, Rules, Sandbox, depth, parent

from . import landlock
from .backends import GROUPS, HARD_LINKS, LOCKS, SandboxBackend, SandboxProbe, SandboxServices
from .confinement import Confinement, Trial, witness_rules
from .filter import program
from .rules import READ_ONLY

_LINKS = "a protected name that is a symbolic link is kept by the server, not by the kernel"
_PIPES = "named pipes of the host can be written to, as far as their permissions allow it"
_PIPES_BELOW = "named pipes can be written to in places that are read-only below writable ones"

_INSTALL = "apt-get install bubblewrap (Fedora: dnf install bubblewrap)"
_ALLOW_NAMESPACES = (
    "sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0;"
    " in a container: --security-opt seccomp=unconfined"
)

_GUARD_FROM = (5, 9)
"""The version of the kernel from which a witness can hand descriptors over, as a guard has to."""

_OF_THE_HOST = ("acpi", "asound", "bus", "driver", "fs", "irq", "scsi", "sys", "sysrq-trigger")
"""Names in ``/proc`` of what is the host's.  What else is there cannot be written, or asks for powers that
nobody has inside."""


def make_backend(services: SandboxServices) -> SandboxBackend:
    """Return the sandbox backend of this module, for the table of them."""
    return Bubblewrap(services)


class Bubblewrap:
    """Confines commands by mounts.  Implements ``backends.SandboxBackend``."""

    protection = Protection.HARD

    def __init__(self, services: SandboxServices) -> None:
        self._services = services
        self._program = _outside(os.getcwd(), _installed())
        self._proc = _of_the_host()
        self._has_domains = landlock.version() >= landlock.LEAST
        self._placeholders: list[Placeholder] = []
        self._lock = Lock()  # Confinements are made in threads.
        self._trial = self._try_out()

    # What works.

    def _try_out(self) -> Trial | None:
        """Begin to run the helper in a sandbox: being installed is not enough."""
        helper = self._services.helper
        if self._program is None or helper is None:
            return None
        told = arguments(READ_ONLY, network=False, hidden="")
        return Trial([self._program, *told, "--", helper, "probe"], within=self._services.patience)

    @property
    def probed(self) -> bool:
        return self._trial is None or self._trial.over

    def probe(self) -> SandboxProbe:
        reason = self._failure()
        if not reason:
            return SandboxProbe()
        cure = _INSTALL if _installed() is None else _ALLOW_NAMESPACES
        return SandboxProbe(reason, cure, needs_fork_server=True)

    def _failure(self) -> str:
        if reason := self._services.unknown_machine():
            return reason
        if self._services.helper is None:
            return "the fork server is not compiled: install a C compiler, then install holdfast again"
        if self._trial is None:
            return "bwrap is not installed: install the package bubblewrap"
        return self._trial.failure()

    # What it guarantees.

    @property
    def exact(self) -> bool:
        return self._services.has_witness()

    @property
    def weaknesses(self) -> tuple[str, ...]:
        return (_LINKS, _PIPES_BELOW if self._has_domains else _PIPES, HARD_LINKS, LOCKS, GROUPS)

    def confine(self, sandbox: Sandbox, rules: Rules) -> Confinement:
        if sandbox.entries is None:
            # Without rules about files there is nothing to mount.
            return landlock.confine_network(self._services, sandbox)
        machine, witness = self._services.machine, self.exact
        assert self._program is not None
        assert machine is not None
        links = [rule.path for rule in rules.rules if rule.link]
        guard = witness and bool(links) and _can_guard(platform.release())
        if links and sandbox.least > (Protection.SOFT if guard else Protection.NONE):
            raise SandboxUnavailable(f"{links[0]!r} is a symbolic link, which no mount can cover")
        hidden = self._unreadable(rules)
        told = arguments(rules, network=sandbox.network, hidden=hidden, proc=self._proc)
        data = b"".join(os.fsencode(word) + b"\0" for word in told)
        return Confinement(
            program(
                machine,
                network=sandbox.network,
                witness=witness,
                files=True,
                attributes=True,
                namespaces=False,
            ),
            wrapper=os.fsencode(self._program),
            arguments=self._services.descriptors.get(data, lambda: _file(data), size=len(data)),
            masks=tuple(map(os.fsencode, masks(rules))),
            network=sandbox.network,
            domain=self._has_domains,
            rules=witness_rules(rules),
            witness=witness,
            guard=guard,
        )

    def _unreadable(self, rules: Rules) -> str:
        """Return a file to mount over files that are denied, if any are; the command cannot write to it."""
        if not any(rule.access is Access.DENY and rule.file for rule in rules.rules):
            return ""
        with self._lock:
            for placeholder in self._placeholders:
                if placeholder.is_good() and rules.access(placeholder.path) is not Access.WRITE:
                    return placeholder.path
            for directory in places():
                if rules.access(os.path.realpath(directory)) is not Access.WRITE:
                    try:
                        self._placeholders.append(Placeholder(directory))
                    except OSError:
                        continue
                    return self._placeholders[-1].path
        raise SandboxUnavailable("every place for a file that covers denied ones can be written")

    def close(self) -> None:
        if self._trial is not None:
            self._trial.stop()
        while self._placeholders:
            self._placeholders.pop().remove()


def _installed() -> str | None:
    """Return where ``bwrap`` is; None if it is not in ``PATH``."""
    for directory in os.get_exec_path():
        path = os.path.join(directory, "bwrap")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _outside(cwd: str, program: str | None) -> str | None:
    """Return the program, unless it is below a directory that a client may have written to."""
    if program is None:
        return None
    real = os.path.realpath(program)
    return None if cwd != "/" and os.path.commonpath([cwd, real]) == cwd else real


def _can_guard(release: str) -> bool:
    """Whether a kernel lets a witness hand descriptors over; one with Landlock always does."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _GUARD_FROM


def _file(data: bytes) -> int:
    """Return the descriptor of a file in memory with this content."""
    fd = os.memfd_create("holdfast-arguments")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return fd


# What must be covered.


class Placeholder:
    """An empty file that nobody may read, to be mounted over files that are denied."""

    def __init__(self, directory: str) -> None:
        """Make the file, in a directory of its own that only we can enter."""
        import tempfile  # Here, as ``shutil``: few policies need a placeholder, and they take 0.5 MiB.

        self.path = os.path.join(
            os.path.realpath(tempfile.mkdtemp(prefix="holdfast-", dir=directory)), "denied"
        )
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0))

    def is_good(self) -> bool:
        """Whether the file is still there, empty and unreadable."""
        try:
            facts = os.lstat(self.path)
        except OSError:
            return False  # Some hosts clean their directories for temporary files.
        return stat.S_ISREG(facts.st_mode) and not stat.S_IMODE(facts.st_mode) and not facts.st_size

    def remove(self) -> None:
        import shutil

        shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)


def places() -> list[str]:
    """Return directories for a placeholder.  A sandbox has its own ``/dev``, so it does not see the first."""
    import tempfile

    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return ["/dev/shm", *([runtime] if runtime else []), tempfile.gettempdir(), os.path.expanduser("~")]  # noqa: S108


def _of_the_host() -> list[str]:
    """Return what in ``/proc`` is the host's, and can be written by root without any capability.

    Each costs a mount, so those with nothing to write to are left out.
    """
    if os.geteuid():
        return []
    return [path for path in (f"/proc/{name}" for name in _OF_THE_HOST) if _can_be_written(path)]


def _can_be_written(path: str) -> bool:
    """Whether it is a file with any right to write to it, or a directory with such a file in it."""
    try:
        facts = os.lstat(path)
        if stat.S_ISREG(facts.st_mode):
            return bool(facts.st_mode & 0o222)
        return stat.S_ISDIR(facts.st_mode) and any(
            _can_be_written(os.path.join(path, name)) for name in os.listdir(path)
        )
    except OSError:
        return False  # It is not there, or gone by now.


# Rules about files as mounts: the arguments of bubblewrap that keep them.

_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc")


def arguments(rules: Rules, *, network: bool, hidden: str, proc: Sequence[str] = ()) -> list[str]:
    """Return the arguments of bubblewrap, without the command.

    Args:
        network: Whether the command has the network of the host.
        hidden: The path of an empty file that nobody may read, to mount over files that are denied.
        proc: Paths in ``/proc`` that belong to the host, and become read-only.
    """
    top = rules.access("/")
    told = ["--die-with-parent", "--as-pid-1", *_NAMESPACES, *([] if network else ["--unshare-net"])]
    told += [*(_bind(top, "/") if top else ("--tmpfs", "/")), "--dev", "/dev", "--proc", "/proc"]
    for path in proc:
        told += ["--ro-bind", path, path]
    # Empty file systems of ours, which become read-only at the end.
    shut: list[str] = ["/"] if top is Access.DENY else []
    ways = _ways(rules)
    mounts = {
        rule.path: list(_mount(rule, rules, ways, shut, hidden)) for rule in rules.rules if not rule.link
    }
    mounts = {path: list(_bind(Access.WRITE, path)) for path in pinned(rules)} | {
        path: mount for path, mount in mounts.items() if mount
    }
    for path in sorted(mounts, key=lambda path: (depth(path), path)):
        if path != "/":
            told += mounts[path]
    # Only now, when everything below them is mounted.
    for path in reversed(shut):
        told += ["--remount-ro", path]
    return [*told, "--cap-drop", "ALL"]


def _mount(rule: Rule, rules: Rules, ways: set[str], shut: list[str], hidden: str) -> Iterator[str]:
    """Yield the arguments that keep one rule; none if what is mounted above it keeps it already."""
    above = rules.above(rule)
    if rule.missing:
        yield from ("--perms", "0000" if rule.access is Access.DENY else "0555", "--tmpfs", rule.path)
        shut.append(rule.path)
    elif rule.access is Access.DENY:
        if above is Access.DENY and not _is_inside_of_another(rule, rules):
            return
        if rule.file:
            yield from ("--ro-bind", hidden, rule.path)
        else:
            yield from ("--perms", "0111" if rule.path in ways else "0000", "--tmpfs", rule.path)
            shut.append(rule.path)
    elif rule.access is not above:
        yield from _bind(rule.access, rule.path)
    if rule.access and rules.access("/") is Access.DENY:
        for alias in rule.aliases:
            # A link, because a second mount would be without those that keep the rules below this one.
            if rules.access(alias) is Access.DENY and not _is_below_an_alias(alias, rules):
                yield from ("--symlink", rule.path, alias)


def _is_below_an_alias(path: str, rules: Rules) -> bool:
    """Whether another name of some place leads to this one already."""
    aliases = {alias for rule in rules.rules if rule.access for alias in rule.aliases}
    return any(path.startswith(alias + "/") for alias in aliases)


def _bind(access: Access, path: str) -> tuple[str, str, str]:
    """Return the arguments that mount a path of the host on itself."""
    return ("--bind" if access is Access.WRITE else "--ro-bind", path, path)


def _ways(rules: Rules) -> set[str]:
    """Return the directories above what may be read: the command must be able to pass through them."""
    found: set[str] = set()
    for rule in rules.rules:
        path = rule.path if rule.access else "/"
        while path != "/" and (path := parent(path)) not in found:
            found.add(path)
    return found


def _is_inside_of_another(rule: Rule, rules: Rules) -> bool:
    """Whether there is a rule for some directory above it."""
    return rule.path != "/" and rules.covers(parent(rule.path))


def pinned(rules: Rules) -> set[str]:
    """Return the directories that must not be renamed, because something below them is protected.

    A directory *in* which something is mounted can be renamed, one *on* which something is mounted cannot.
    So each of these is mounted on itself.
    """
    found: set[str] = set()
    for rule in rules.rules:
        if rule.access is Access.WRITE or rules.above(rule) is not Access.WRITE:
            continue
        path = parent(rule.path)
        while path != "/" and path not in found and rules.access(parent(path)) is Access.WRITE:
            found.add(path)
            path = parent(path)
    return found


def masks(rules: Rules) -> list[str]:
    """Return the directories that have to be made so that something can be mounted on them."""
    return [rule.path for rule in rules.rules if rule.missing]
