"""What a sandboxed command may do: the values, and which of several rules counts (pure)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
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


READ_ALL = SandboxEntry(Named(Where.ROOT), Access.READ)
WRITE_ROOTS = SandboxEntry(Named(Where.PROJECT_ROOTS), Access.WRITE)
WRITE_SLASH_TMP = SandboxEntry(Named(Where.SLASH_TMP), Access.WRITE)
WRITE_TMPDIR = SandboxEntry(Named(Where.TMPDIR), Access.WRITE)


class Protection(IntEnum):
    """How well a place stays unwritten that lies inside of a writable one.  A larger value is better."""

    NONE = 0
    SOFT = 1
    """The server keeps it: it makes the calls of the command that change files, or refuses them."""
    HARD = 2
    """The kernel keeps it."""


AnyPath = str | os.PathLike[str]
"""A path as programs write it."""


@value
class Sandbox:
    """What a client asks that a command may do, and no more.

    Most often it is made by ``read_only``, ``workspace`` or ``full_access``.
    """

    entries: tuple[SandboxEntry, ...] | None
    """The lines of the policy; None if the command may read and write all files."""
    network: bool
    """Whether the command may use the network."""
    cwd: str = ""
    """The directory that relative paths and patterns are relative to.  Empty: that of the command."""
    roots: tuple[str, ...] = ()
    """The directories that ``Where.PROJECT_ROOTS`` stands for."""
    pattern_depth: int | None = None
    """How many directories deep ``**`` looks."""
    least: Protection = Protection.SOFT
    """The least protection inside of writable places that the client accepts."""

    # Presets.

    @classmethod
    def read_only(cls, *, network: bool = False, deny: Iterable[AnyPath] = ()) -> Sandbox:
        """Return a sandbox in which everything can be read and nothing written.

        Args:
            network: Whether the command may use the network.
            deny: Paths, or patterns as in ``Pattern``, that cannot even be read.  What is relative begins
                at the directory of the command.
        """
        return cls((READ_ALL, *_denied(deny)), network)

    @classmethod
    def workspace(
        cls,
        *,
        write: Iterable[AnyPath] = (),
        network: bool = False,
        deny: Iterable[AnyPath] = (),
        tmp: bool = True,
    ) -> Sandbox:
        """Return a sandbox in which the command's directory can be written and everything be read.

        ``.git`` and its like directly below a writable place stay as they are.

        Args:
            write: Further places that can be written, if they exist.  What is relative begins at the
                directory of the command.
            network: Whether the command may use the network.
            deny: Paths, or patterns as in ``Pattern``, that cannot even be read, relative to the same.
            tmp: Whether ``/tmp``, and the directory that ``TMPDIR`` of the command names, can be written.
        """
        entries = [READ_ALL, WRITE_ROOTS]
        entries += (SandboxEntry(path, Access.WRITE) for path in _texts("write", write))
        entries += (WRITE_SLASH_TMP, WRITE_TMPDIR) if tmp else ()
        return cls((*entries, *_denied(deny)), network, roots=(".",))

    @classmethod
    def full_access(cls, *, network: bool = True) -> Sandbox:
        """Return one in which all files can be read and written; with the network it forbids nothing."""
        return cls(None, network)

    # Facts.

    @property
    def is_placed(self) -> bool:
        """Whether all its paths are absolute, so that its meaning depends on no directory of a command."""
        patterns = [entry.place.text for entry in self.entries or () if isinstance(entry.place, Pattern)]
        paths = [entry.place for entry in self.entries or () if isinstance(entry.place, str)]
        if not self.cwd:
            paths += patterns
        return not any(map(_is_relative, (*self.roots, *paths)))

    def at(self, cwd: str) -> Sandbox:
        """Return the sandbox for a command in a directory, with all paths absolute.

        ``Host.start`` does this.  Where no command is started, for example in a request about files, a
        preset needs it.

        Args:
            cwd: The directory, as an absolute path.  It does not count if the sandbox has one of its own.
        """
        base = self.cwd or cwd
        entries = self.entries
        if entries is not None:
            entries = tuple(
                replace(entry, place=_absolute(entry.place, base)) if isinstance(entry.place, str) else entry
                for entry in entries
            )
        return replace(
            self, entries=entries, cwd=base, roots=tuple(_absolute(root, base) for root in self.roots)
        )

    @property
    def confines(self) -> bool:
        """Whether the sandbox forbids anything at all."""
        return self.entries is not None or not self.network

    @property
    def has_patterns(self) -> bool:
        """Whether the disk has to be searched for what the policy means."""
        return any(isinstance(entry.place, Pattern) for entry in self.entries or ())


def _denied(patterns: Iterable[AnyPath]) -> Iterable[SandboxEntry]:
    return (SandboxEntry(Pattern(text), Access.DENY) for text in _texts("deny", patterns))


def _texts(what: str, given: Iterable[AnyPath]) -> list[str]:
    if isinstance(given, str | os.PathLike):
        # Each character of a text would be a path of its own.
        raise TypeError(f"{what} is a sequence of paths, like [{os.fspath(given)!r}]")
    texts = [os.fspath(one) for one in given]
    if "" in texts:
        raise ValueError(f"{what} has an empty path in it")
    return texts


def _is_relative(path: str) -> bool:
    return not path.startswith("/")


def _absolute(path: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, path)) if _is_relative(path) else path


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
