"""The ways to keep a sandbox, the best first, and which of them work on this host.

Bubblewrap, where a user namespace can be made; else Landlock, which needs
nothing; else whoever asks for a sandbox is refused.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
from functools import partial
from threading import Lock

from holdfast.errors import SandboxUnavailable
from holdfast.sandbox import Access, Backing, Guarantees, Protection, Rule, Rules, Sandbox

from . import landlock
from .cage import Cage, DescriptorCache, Held
from .filter import MACHINES, Machine, program
from .mounts import arguments, masks
from .placeholder import Placeholder, places
from .rules import EVERYTHING, resolve
from .search import Search
from .trial import PATIENCE, Trial

_READ_ALL = Rules([Rule("/", Access.READ)])

_LINKS = "a protected name that is a symbolic link is kept by the server, not by the kernel"
_PIPES = "named pipes of the host can be written to, as far as their permissions allow it"
_PIPES_BELOW = "named pipes can be written to in places that are read-only below writable ones"

_OF_THE_HOST = ("acpi", "asound", "bus", "driver", "fs", "irq", "scsi", "sys", "sysrq-trigger")
"""In ``/proc``.  What else is there cannot be written, or asks for powers that nobody has inside."""

_RULE = 256
"""Bytes of a rule and what is known of its place, beside the paths."""

_LETTERS = {Access.DENY: b"d", Access.READ: b"r", Access.WRITE: b"w"}


class Ladder:
    """Makes cages."""

    def __init__(
        self,
        helper: str | None,
        *,
        only: Backing | None = None,
        off: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        """
        Args:
            helper: The compiled fork server, if any: the witness, and the first in bubblewrap's sandboxes.
            only: The one way that may be used.
            off: Use none.
            patience: Seconds for what is tried out; what has not ended then does not work.
        """
        self._helper = helper
        self._bubblewrap: str | None = None
        self._machine = MACHINES.get(platform.machine())
        self._domains = landlock.version() >= landlock.LEAST
        self._descriptors = DescriptorCache()
        self._hidden: list[Placeholder] = []
        self._lock = Lock()  # Cages are made in threads.
        self._proc = _of_the_host()
        self._only, self._off = only, off
        self._patience = patience
        self._probing = Lock()
        self._found: Guarantees | None = None
        self._findings: dict[Backing, str] = {}
        # They run while others get ready; what they found is asked for later.
        self._witness = Trial([self._helper, "probe"], within=patience) if self._helper and not off else None
        self._bubblewrap_trial = None if off or only is Backing.LANDLOCK else self._try_out_bubblewrap()

    # What works.

    @property
    def tried_out(self) -> bool:
        """Whether ``guarantees`` and ``findings`` would answer at once."""
        return self._found is not None or all(trial.over for trial in self._trials())

    @property
    def findings(self) -> dict[Backing, str]:
        """Of each way that was tried: why it does not work; empty if it does."""
        _ = self.guarantees
        return self._findings

    @property
    def guarantees(self) -> Guarantees:
        """What sandboxes are worth on this host, as it was found when this was made.

        Until it is known this waits, no longer than the patience that was given.
        """
        with self._probing:
            if self._found is None:
                self._found = self._probe()
            return self._found

    def _trials(self) -> list[Trial]:
        return [trial for trial in (self._witness, self._bubblewrap_trial) if trial is not None]

    def _probe(self) -> Guarantees:
        if self._off:
            return Guarantees(None, reason="sandboxes are switched off")
        witness = self._witness is not None and not self._witness.failure()
        ways = {Backing.BUBBLEWRAP: self._try_bubblewrap, Backing.LANDLOCK: self._try_landlock}
        self._findings = {way: check() for way, check in ways.items() if self._only in (None, way)}
        reasons = "; ".join(f"{way.value}: {reason}" for way, reason in self._findings.items() if reason)
        if self._findings.get(Backing.BUBBLEWRAP) == "":
            weak = (_LINKS, _PIPES_BELOW if self._domains else _PIPES, landlock.LOCKS, landlock.GROUPS)
            return Guarantees(Backing.BUBBLEWRAP, Protection.HARD, exact=witness, weaknesses=weak)
        if self._findings.get(Backing.LANDLOCK) == "":
            protection = Protection.SOFT if witness else Protection.NONE
            known = tuple(landlock.weaknesses(landlock.version()))
            return Guarantees(Backing.LANDLOCK, protection, exact=witness, weaknesses=known, reason=reasons)
        return Guarantees(None, reason=reasons)

    def _try_out_bubblewrap(self) -> Trial | None:
        found = _outside(os.getcwd(), shutil.which("bwrap"))
        if found is None or self._helper is None:
            return None
        self._bubblewrap = found
        told = arguments(_READ_ALL, network=False, hidden="")
        return Trial([found, *told, "--", self._helper, "probe"], within=self._patience)

    def _try_bubblewrap(self) -> str:
        if self._machine is None:
            return f"system calls of {platform.machine()} are not known"
        if self._helper is None:
            return "the fork server is not compiled: install a C compiler, then install holdfast again"
        if self._bubblewrap_trial is None:
            return "bwrap is not installed: install the package bubblewrap"
        return self._bubblewrap_trial.failure()

    def _try_landlock(self) -> str:
        if self._machine is None:
            return f"system calls of {platform.machine()} are not known"
        known = landlock.version()
        if known < landlock.LEAST:
            return f"the kernel has version {known} of Landlock, needed is {landlock.LEAST}"
        try:
            os.close(landlock.ruleset(_READ_ALL))
        except OSError as error:
            return f"the kernel refuses a ruleset: {error.strerror}"
        return ""

    # Cages.

    def cage(self, sandbox: Sandbox, tmpdir: str | None, search: Search | None = None) -> Cage:
        """What keeps ``sandbox``.  It asks the disk, for as long as ``search`` allows.

        Raises:
            BadRequest: A pattern cannot be looked for.
            LimitReached: There is too much to look for.
            SandboxUnavailable: It cannot be kept on this host.
        """
        if self.guarantees.backing is None or self._machine is None:
            raise SandboxUnavailable(self.guarantees.reason)
        if sandbox.entries is None:
            return self._without_files(sandbox, self._machine)
        rules = resolve(sandbox, tmpdir, search)
        if self.guarantees.backing is Backing.BUBBLEWRAP:
            return self._bubblewraps(sandbox, rules, self._machine)
        return self._landlocks(sandbox, rules, self._machine)

    def _without_files(self, sandbox: Sandbox, machine: Machine) -> Cage:
        """Only the network is off, and other processes are out of reach."""
        witness = self.guarantees.exact
        return Cage(
            program(machine, network=sandbox.network, witness=witness, files=False),
            ruleset=self._domain(),
            witness=witness,
        )

    def _bubblewraps(self, sandbox: Sandbox, rules: Rules, machine: Machine) -> Cage:
        witness = self.guarantees.exact
        assert self._bubblewrap is not None
        links = [rule.path for rule in rules.rules if rule.link]
        guard = witness and _can_guard(platform.release())
        if links and sandbox.least > (Protection.SOFT if guard else Protection.NONE):
            raise SandboxUnavailable(f"{links[0]!r} is a symbolic link, which no mount can cover")
        hidden = self._unreadable(rules)
        told = arguments(rules, network=sandbox.network, hidden=hidden, proc=self._proc)
        data = b"".join(os.fsencode(word) + b"\0" for word in told)
        return Cage(
            program(
                machine,
                network=sandbox.network,
                witness=witness,
                files=True,
                attributes=True,
                namespaces=False,
            ),
            wrapper=os.fsencode(self._bubblewrap),
            arguments=self._descriptors.get(data, lambda: _file(data), size=len(data)),
            masks=tuple(map(os.fsencode, masks(rules))),
            network=sandbox.network,
            domain=self._domains,
            rules=_texts(rules),
            witness=witness,
            guard=guard and bool(links),
        )

    def _landlocks(self, sandbox: Sandbox, rules: Rules, machine: Machine) -> Cage:
        readable, writable = landlock.shortfalls(rules)
        if readable:
            raise SandboxUnavailable(
                f"Landlock cannot deny {readable[0]!r} inside of a place that can be read"
            )
        if writable and self.guarantees.protection < sandbox.least:
            most = self.guarantees.protection.name.lower()
            raise SandboxUnavailable(
                f"Landlock cannot keep {writable[0]!r} from being written inside of a place that can be,"
                f" not as well as was asked for; `{most}` is all it can do"
            )
        witness = self.guarantees.exact
        guard = witness and bool(writable)
        return Cage(
            program(
                machine, network=sandbox.network, witness=witness, files=True, namespaces=False, binds=guard
            ),
            network=sandbox.network,
            ruleset=self._descriptors.get(
                (rules, _identity(rules)), lambda: landlock.ruleset(rules), size=_size(rules)
            ),
            rules=(*_texts(rules), *(b"w" + os.fsencode(path) for path in landlock.DEVICES))
            if witness
            else (),
            witness=witness,
            guard=guard,
            powerless=True,
        )

    def _domain(self) -> Held | None:
        """Landlock without any rule about files: processes outside are out of reach."""
        if landlock.version() < landlock.LEAST:
            return None
        return self._descriptors.get(EVERYTHING, partial(landlock.ruleset, EVERYTHING), size=0)

    def _unreadable(self, rules: Rules) -> str:
        """A file to put over those that are denied, if there are any; the command must not get at it."""
        if not any(rule.access is Access.DENY and rule.file for rule in rules.rules):
            return ""
        with self._lock:
            for place in self._hidden:
                if place.is_good() and rules.access(place.path) is not Access.WRITE:
                    return place.path
            for directory in places():
                if rules.access(os.path.realpath(directory)) is not Access.WRITE:
                    try:
                        self._hidden.append(Placeholder(directory))
                    except OSError:
                        continue
                    return self._hidden[-1].path
        raise SandboxUnavailable("every place for a file that covers denied ones can be written")

    def close(self) -> None:
        """Give everything back.  May be called twice."""
        for trial in self._trials():
            trial.stop()
        self._descriptors.clear()
        while self._hidden:
            self._hidden.pop().remove()


def _texts(rules: Rules) -> tuple[bytes, ...]:
    """The rules as the witness reads them."""
    return tuple(_letter(rule) + os.fsencode(rule.path) for rule in rules.rules)


def _letter(rule: Rule) -> bytes:
    if rule.missing:
        return b"m"
    return b"l" if rule.link else _LETTERS[rule.access]


def _can_guard(release: str) -> bool:
    """Whether the kernel lets a witness hand descriptors over; one with Landlock always does."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= (5, 9)


def _size(rules: Rules) -> int:
    """How much it takes to keep them, about."""
    return sum(_RULE + len(rule.path) + sum(map(len, rule.aliases)) for rule in rules.rules)


def _identity(rules: Rules) -> tuple[tuple[int, int], ...]:
    """What is at the paths: a ruleset is about that, and not about whatever comes there later."""
    found = []
    for rule in rules.rules:
        try:
            facts = os.stat(rule.path)
            found.append((facts.st_dev, facts.st_ino))
        except OSError:
            found.append((0, 0))
    return tuple(found)


def _file(data: bytes) -> int:
    fd = os.memfd_create("holdfast-arguments")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return fd


def _outside(cwd: str, program: str | None) -> str | None:
    """The program, unless it is below a directory that a client may have written to."""
    if program is None:
        return None
    real = os.path.realpath(program)
    return None if cwd != "/" and os.path.commonpath([cwd, real]) == cwd else real


def _of_the_host() -> list[str]:
    """What in ``/proc`` is the host's and root may write to, also without any power of root's.

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
