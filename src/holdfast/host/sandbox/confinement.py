"""What a shim needs to put a command into its sandbox."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from holdfast.sandbox import Access, Denial, Rule, Rules

_KEEPERS = 2
"""Bubblewrap, and the first process inside."""

_KEPT = 64
"""Rulesets, and lists of arguments, that are kept for the next command with the same rules."""

_KEPT_BYTES = 64 << 10
"""About the size of one of them.  Larger ones are made anew each time: clients say how large they are."""

_LETTERS = {Access.DENY: b"d", Access.READ: b"r", Access.WRITE: b"w"}


class Held:
    """A descriptor that is open for as long as somebody has this object."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
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


@dataclass(frozen=True, slots=True)
class Confinement:
    """A sandbox, ready to be entered."""

    filter: bytes
    """For seccomp."""
    ruleset: Held | None = None
    """For Landlock."""
    wrapper: bytes | None = None
    """The path of bubblewrap."""
    arguments: Held | None = None
    """What to tell it."""
    masks: tuple[bytes, ...] = ()
    """Directories to make for it, and to take away."""
    network: bool = False
    """Whether the network may be used."""
    domain: bool = False
    """Whether Landlock keeps, under bubblewrap, what mounts cannot: writes to named pipes."""
    rules: tuple[bytes, ...] = ()
    """For the witness, and for that domain: a letter and a path each."""
    witness: bool = False
    guard: bool = False
    """Whether the witness also refuses what the kernel cannot."""
    powerless: bool = False
    """Whether what only root may is given up; bubblewrap does that itself."""

    @property
    def handed(self) -> Held | None:
        """What is handed over with the order."""
        return self.ruleset or self.arguments

    def command(self) -> ConfinedCommand:
        """The account of one command in it, which is empty yet."""
        return ConfinedCommand(exact=self.witness, keepers=0 if self.wrapper is None else _KEEPERS)


@dataclass(slots=True)
class ConfinedCommand:
    """What is known of a command in its sandbox."""

    exact: bool
    """Whether there is a witness."""
    denials: list[Denial] = field(default_factory=list)
    keepers: int = 0
    """Processes of its tree that are not the command's: they keep the sandbox."""


def witness_rules(rules: Rules) -> tuple[bytes, ...]:
    """Return rules as the witness reads them: a letter for the access, then the path."""
    return tuple(_letter(rule) + os.fsencode(rule.path) for rule in rules.rules)


def _letter(rule: Rule) -> bytes:
    if rule.missing:
        return b"m"
    return b"l" if rule.link else _LETTERS[rule.access]
