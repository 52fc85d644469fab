"""What a sandboxed command may do: the values, and which of several rules counts (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum, StrEnum
from typing import TYPE_CHECKING

from . import old_names, renamed
from .value import replace, value


class Access(IntEnum):
    """What may be done with a file, or with everything below a directory.  A larger value allows more."""

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
    """All paths that match a pattern: ``*`` and ``?`` stay inside a directory, ``**`` does not."""

    text: str


@value
class SandboxEntry:
    """One line of a policy.  A plain text is an absolute path."""

    place: str | Named | Pattern
    access: Access
    if_there: bool = False
    """Whether the entry counts only if there is something at the place."""


class Protection(IntEnum):
    """How well a place stays unwritten that lies inside of a writable one.  A larger value is better."""

    NONE = 0
    SOFT = 1
    """The server keeps it: it makes the calls of the command that change files, or refuses them."""
    HARD = 2
    """The kernel keeps it."""


@value
class Sandbox:
    """What a client asks that a command may do, and no more."""

    entries: tuple[SandboxEntry, ...] | None
    """The lines of the policy; None if the command may read and write all files."""
    network: bool
    """Whether the command may use the network."""
    cwd: str
    """The directory that relative patterns are relative to."""
    roots: tuple[str, ...] = ()
    """The directories that ``Where.PROJECT_ROOTS`` stands for."""
    pattern_depth: int | None = None
    """How many directories deep ``**`` looks."""
    least: Protection = Protection.SOFT
    """The least protection inside of writable places that the client accepts."""

    @property
    def confines(self) -> bool:
        """Whether the sandbox forbids anything at all."""
        return self.entries is not None or not self.network

    @property
    def has_patterns(self) -> bool:
        """Whether the disk has to be searched for what the policy means."""
        return any(isinstance(entry.place, Pattern) for entry in self.entries or ())


@value
class Rule:
    """What may be done at a path and below it, except where a rule with a longer path applies."""

    path: str
    """Absolute, and without symbolic links as far as it exists."""
    access: Access
    missing: bool = False
    """Whether there was nothing at the path when the rules were made."""
    file: bool = False
    """Whether something else than a directory is at the path."""
    link: bool = False
    """Whether a symbolic link is at the path that must stay what it is."""
    aliases: tuple[str, ...] = ()
    """Other paths to the same place, with symbolic links in them."""


class Rules:
    """A policy in terms of what is on the disk: one rule per path, those of upper directories first."""

    __slots__ = ("_access", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: (depth(rule.path), rule.path)))
        self._access = {rule.path: rule.access for rule in self.rules}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and self.rules == other.rules

    def __hash__(self) -> int:
        return hash(self.rules)

    def access(self, path: str) -> Access:
        """Return what may be done at an absolute path, which must not have symbolic links in it.

        The rule with the longest path counts that is at the path or above it.
        """
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
        """Return the rules that allow what both allow: for each path the lesser access of the two."""
        places = {rule.path: rule for rule in (*other.rules, *self.rules)}
        return Rules(
            [
                replace(rule, access=min(self.access(path), other.access(path)))
                for path, rule in places.items()
            ]
        )

    def above(self, rule: Rule) -> Access:
        """Return what would be allowed at the path of a rule if that rule did not exist."""
        return Access.DENY if rule.path == "/" else self.access(parent(rule.path))


def parent(path: str) -> str:
    """Return the directory that a path is in."""
    return path[: path.rindex("/")] or "/"


def depth(path: str) -> int:
    """Return how many names a path has; the root has none."""
    return 0 if path == "/" else path.count("/")


@value
class Denial:
    """Something that the sandbox of a command refused."""

    op: str
    """What was tried: the name of a system call."""
    subject: str
    """A path, or a kind of socket."""
    count: int = 1
    """How often it was refused."""


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
    """How well a place stays unwritten that lies inside of a writable one."""
    exact: bool = False
    """Whether each denial is seen and reported.  Otherwise it is guessed from the command's output."""
    weaknesses: tuple[str, ...] = ()
    """What a sandboxed command can do although no policy allows it; each in words for a user."""
    reason: str = ""
    """Why no better sandbox backend is used."""
    filesystem: str = ""
    """What keeps the rules about files; empty if that is the sandbox backend itself."""

    @property
    def backing(self) -> str | None:
        """The old name of ``backend``; a member of ``SandboxBackendName`` where there is one."""
        renamed("Guarantees.backing", "backend")
        return next((name for name in SandboxBackendName if name == self.backend), self.backend)


NO_SANDBOXES = Guarantees(None)


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"Backing": "SandboxBackendName", "Entry": "SandboxEntry"})
