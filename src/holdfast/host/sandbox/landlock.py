"""Landlock, a sandbox backend: the kernel keeps rules for a process and all its children.

It needs neither mounts nor privileges, and keeps less than bubblewrap.  A ruleset is a descriptor.  It is
made here, and the command enters it just before its program runs.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Callable

from holdfast.errors import SandboxUnavailable
from holdfast.sandbox import Access, Protection, Rules, Sandbox

from .backends import GROUPS, HARD_LINKS, LOCKS, SandboxBackend, SandboxProbe, SandboxServices
from .confinement import Confinement, witness_rules
from .filter import program
from .rules import EVERYTHING, READ_ONLY

_CREATE, _ADD = 444, 445
_VERSION = 1
_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_FIRST = (1 << 13) - 1
"""All rights about files of the first version."""
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

LEAST = 3
"""The first version in which a file that may not be written cannot be truncated."""
COMMANDS = 5
"""The first version in which devices that may only be read take no commands (``ioctl``)."""
SCOPES = 6
"""The first version that keeps signals and abstract sockets inside."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
"""The devices that every command may write to."""
_ALWAYS_READABLE = ("/proc",)
"""What every command may read, whatever the policy says."""

_CURE = "run Linux 6.2 or later, with lsm=landlock,... on its command line"

_RULE = 256
"""About how many bytes a rule takes in memory, beside its paths."""

_libc = ctypes.CDLL(None, use_errno=True)
_syscall: Callable[..., int] = _libc.syscall


def version() -> int:
    """Return the version of Landlock that the kernel has; 0 if it has none."""
    return max(0, _syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def ruleset(rules: Rules) -> int:
    """Return the descriptor of a new ruleset.  It does not keep the rules that ``shortfalls`` lists.

    Raises:
        OSError: The kernel refuses the ruleset.
    """
    known = version()
    if rules.access("/") is Access.WRITE and len(rules.rules) == 1:
        # Every file may be written, so only the scopes count.  A ruleset must not be empty: without scopes it
        # handles one right, which the rule for the root then allows everywhere.
        handled = 0 if known >= SCOPES else _REFER
    else:
        handled = _handled(known)
    fd = _create(handled, _ABSTRACT_SOCKETS | _SIGNALS if known >= SCOPES else 0)
    try:
        if handled:
            writing = handled & ~(_MAKE_CHAR | _MAKE_BLOCK)
            for rule in rules.rules:
                if rule.access is not Access.DENY and not rule.missing and not rule.link:
                    _add(fd, rule.path, writing if rule.access is Access.WRITE else handled & _READING)
            for path in DEVICES:
                _add(fd, path, handled & _OF_FILES)
            for path in _ALWAYS_READABLE:
                _add(fd, path, handled & _READING)
    except BaseException:
        os.close(fd)
        raise
    return fd


def shortfalls(rules: Rules) -> tuple[list[str], list[str]]:
    """Return the paths whose rule Landlock cannot keep: a rule further down can only allow more.

    First those that can be read although they are denied, then those that can be written although they may
    only be read, or may not come into being.
    """
    readable, writable = [], []
    for rule in rules.rules:
        above = rules.above(rule)
        if rule.access is Access.DENY and above and not rule.missing:
            readable.append(rule.path)
        elif rule.access < above and above is Access.WRITE:
            writable.append(rule.path)
    return readable, writable


def weaknesses(known: int) -> list[str]:
    """Return what a command can do in this version of Landlock although no rule allows it."""
    found = [
        "attributes of files (mode, owner, times, extended attributes) can be changed everywhere",
        "names and attributes of files can be seen everywhere, and directories be watched",
        "processes of the host can be seen, and priority and processors of those of the same user be changed",
        "System V shared memory, semaphores and message queues of the same user can be used",
        HARD_LINKS,
        LOCKS,
        GROUPS,
    ]
    if known < COMMANDS:
        found.append("devices that can be read can be given commands (ioctl)")
    if known < SCOPES:
        found.append("processes outside can be sent signals")
        found.append("abstract sockets of the host can be reached if the network is on")
    return found


def _handled(known: int) -> int:
    """Return the rights about files that a ruleset controls, as far as the kernel knows them."""
    rights = _FIRST | _REFER | _TRUNCATE
    return rights | _IOCTL_DEV if known >= COMMANDS else rights


def _create(handled: int, scoped: int) -> int:
    """Return the descriptor of a new ruleset, without rules."""
    attributes = struct.pack("=3Q", handled, 0, scoped)
    return _check(_syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)))


def _add(fd: int, path: str, rights: int) -> None:
    """Add a rule to a ruleset: these rights at a path and below it."""
    try:
        # Links are not followed: what was a directory a moment ago may be a link by now.
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # It is gone, or not on this host: there is nothing to allow.
    try:
        kind = os.fstat(place).st_mode
        if stat.S_ISLNK(kind):
            return
        if not stat.S_ISDIR(kind):
            rights &= _OF_FILES
        beneath = struct.pack("=Qi", rights, place)
        if rights:
            _check(_syscall(_ADD, fd, _BENEATH, beneath, ctypes.c_uint32(0)))
    finally:
        os.close(place)


def _check(result: int) -> int:
    """Return the result of a system call, or raise its error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# The sandbox backend.


def make_backend(services: SandboxServices) -> SandboxBackend:
    """Return the sandbox backend of this module, for the table of them."""
    return Landlock(services)


class Landlock:
    """Confines commands by rulesets and a filter.  Implements ``backends.SandboxBackend``."""

    probed = True

    def __init__(self, services: SandboxServices) -> None:
        self._services = services

    def probe(self) -> SandboxProbe:
        reason = self._failure()
        return SandboxProbe(reason, _CURE) if reason else SandboxProbe()

    def _failure(self) -> str:
        if reason := self._services.unknown_machine():
            return reason
        known = version()
        if known < LEAST:
            return f"the kernel has version {known} of Landlock, needed is {LEAST}"
        try:
            os.close(ruleset(READ_ONLY))
        except OSError as error:
            return f"the kernel refuses a ruleset: {error.strerror}"
        return ""

    # What it guarantees.

    @property
    def protection(self) -> Protection:
        # Landlock can only add rights further down, so the witness has to keep what lies inside.
        return Protection.SOFT if self.exact else Protection.NONE

    @property
    def exact(self) -> bool:
        return self._services.has_witness()

    @property
    def weaknesses(self) -> tuple[str, ...]:
        return tuple(weaknesses(version()))

    def confine(self, sandbox: Sandbox, rules: Rules) -> Confinement:
        if sandbox.entries is None:
            return confine_network(self._services, sandbox)
        machine, witness = self._services.machine, self.exact
        assert machine is not None
        readable, writable = shortfalls(rules)
        if readable:
            raise SandboxUnavailable(
                f"Landlock cannot deny {readable[0]!r} inside of a place that can be read"
            )
        if writable and self.protection < sandbox.least:
            most = self.protection.name.lower()
            raise SandboxUnavailable(
                f"Landlock cannot keep {writable[0]!r} from being written inside of a place that can be,"
                f" not as well as was asked for; `{most}` is all it can do"
            )
        guard = witness and bool(writable)
        devices = tuple(b"w" + os.fsencode(path) for path in DEVICES)
        return Confinement(
            program(
                machine,
                network=sandbox.network,
                witness=witness,
                files=True,
                namespaces=False,
                binds=guard,
                guard=guard,
            ),
            network=sandbox.network,
            ruleset=self._services.descriptors.get(
                (rules, _identity(rules)), lambda: ruleset(rules), size=_size(rules)
            ),
            rules=(*witness_rules(rules), *devices) if witness else (),
            witness=witness,
            guard=guard,
            powerless=True,
        )

    def close(self) -> None:
        pass  # Its rulesets are in the cache, which somebody else clears.


def confine_network(services: SandboxServices, sandbox: Sandbox) -> Confinement:
    """Return what keeps a sandbox without rules about files: the network is off, processes are out of reach.

    Every sandbox backend of ours uses this, because it takes no mount.  Where the kernel has no Landlock,
    the filter alone keeps it.
    """
    assert services.machine is not None
    domain = None
    if version() >= LEAST:
        # A ruleset without any rule: its scopes keep processes outside out of reach.
        domain = services.descriptors.get(EVERYTHING, lambda: ruleset(EVERYTHING), size=0)
    witness = services.has_witness()
    return Confinement(
        program(services.machine, network=sandbox.network, witness=witness, files=False),
        ruleset=domain,
        witness=witness,
    )


def _size(rules: Rules) -> int:
    """Return about how many bytes it takes to keep rules as a key."""
    return sum(_RULE + len(rule.path) + sum(map(len, rule.aliases)) for rule in rules.rules)


def _identity(rules: Rules) -> tuple[tuple[int, int], ...]:
    """Return what is at the paths of rules: a ruleset is about that, not about what comes there later."""
    found = []
    for rule in rules.rules:
        try:
            facts = os.stat(rule.path)
            found.append((facts.st_dev, facts.st_ino))
        except OSError:
            found.append((0, 0))
    return tuple(found)
