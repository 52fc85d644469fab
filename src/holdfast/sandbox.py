"""What a sandboxed command may do: the values, and which of several rules counts (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum, StrEnum

from .value import replace, value


class Access(IntEnum):
    """What may be done with a file, and with everything below a directory.  More is larger."""

    DENY = 0
    READ = 1
    WRITE = 2


class Where(Enum):
    """Places that have a name instead of a path."""

    ROOT = "root"
    MINIMAL = "minimal"
    """What programs need to run at all."""
    PROJECT_ROOTS = "project_roots"
    TMPDIR = "tmpdir"
    """What ``TMPDIR`` of the command says."""
    SLASH_TMP = "slash_tmp"


@value
class Named:
    """A place by its name, or something below it."""

    where: Where
    below: str = ""


@value
class Pattern:
    """All that match: ``*`` and ``?`` stay inside a directory, ``**`` does not."""

    text: str


@value
class Entry:
    """One line of a policy.  A plain text is an absolute path."""

    place: str | Named | Pattern
    access: Access
    if_there: bool = False
    """Whether it means nothing as long as there is nothing at the place."""


class Protection(IntEnum):
    """How well something inside a writable place can be kept from being written.  More is larger."""

    NONE = 0
    SOFT = 1
    """By the server, which makes the calls of the command that change files, or refuses them."""
    HARD = 2
    """By the kernel."""


@value
class Sandbox:
    """What was asked for."""

    entries: tuple[Entry, ...] | None
    """None: all files, as without a sandbox."""
    network: bool
    cwd: str
    """What relative patterns are relative to."""
    roots: tuple[str, ...] = ()
    """The project roots."""
    pattern_depth: int | None = None
    """How many directories deep ``**`` looks."""
    least: Protection = Protection.SOFT
    """What the client is content with, inside of writable places."""

    @property
    def confines(self) -> bool:
        """Whether it forbids anything at all."""
        return self.entries is not None or not self.network


@value
class Rule:
    """What may be done at a path and below it, as far as no rule further below says otherwise."""

    path: str
    """Absolute, and without symbolic links as far as it exists."""
    access: Access
    missing: bool = False
    """Whether there was nothing at the path when the rules were made."""
    file: bool = False
    """Whether it is something else than a directory."""
    link: bool = False
    """Whether it is a symbolic link that must stay what it is."""
    aliases: tuple[str, ...] = ()
    """Other paths to the same place, with symbolic links in them."""


class Rules:
    """A policy in terms of what is there: one rule per path, the upper ones first."""

    __slots__ = ("_access", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: (depth(rule.path), rule.path)))
        self._access = {rule.path: rule.access for rule in self.rules}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and self.rules == other.rules

    def __hash__(self) -> int:
        return hash(self.rules)

    def access(self, path: str) -> Access:
        """What may be done at an absolute path without symbolic links.  The longest rule above it counts."""
        while path not in self._access:
            if path == "/":
                return Access.DENY
            path = parent(path)
        return self._access[path]

    def covers(self, path: str) -> bool:
        """Whether there is any rule for an absolute path, or for a directory above it."""
        while path not in self._access:
            if path == "/":
                return False
            path = parent(path)
        return True

    def within(self, other: Rules) -> Rules:
        """What both allow: for each path the less of the two."""
        places = {rule.path: rule for rule in (*other.rules, *self.rules)}
        return Rules(
            [
                replace(rule, access=min(self.access(path), other.access(path)))
                for path, rule in places.items()
            ]
        )

    def above(self, rule: Rule) -> Access:
        """What would be allowed at the path of a rule if there were none for it."""
        return Access.DENY if rule.path == "/" else self.access(parent(rule.path))


def parent(path: str) -> str:
    """The directory that a path is in."""
    return path[: path.rindex("/")] or "/"


def depth(path: str) -> int:
    """How many names a path has."""
    return 0 if path == "/" else path.count("/")


@value
class Denial:
    """Something that the sandbox refused."""

    op: str
    """What was tried: the name of a system call."""
    subject: str
    """A path, or a kind of socket."""
    count: int = 1


class SandboxBackendName(StrEnum):
    """The sandbox backends that clients know, by their names on the wire: what keeps a sandbox."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"


@value
class Guarantees:
    """What sandboxes on this host are worth."""

    backend: str | None
    """The name of the sandbox backend that keeps them, most often a ``SandboxBackendName``.

    None: no sandbox can be kept, and whoever asks for one is refused.
    """
    protection: Protection = Protection.NONE
    exact: bool = False
    """Whether what was refused is known, and not guessed from the output."""
    weaknesses: tuple[str, ...] = ()
    """What a sandboxed command can do although nobody allowed it."""
    reason: str = ""
    """Why it is none of the better ones."""


NO_SANDBOXES = Guarantees(None)
