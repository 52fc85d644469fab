"""Turns the entries of a policy into rules: what they mean on this disk, within the bounds of a search."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Generator, Iterator, Sequence

from holdfast.config import SandboxLimits
from holdfast.errors import BadRequest, LimitReached, SandboxUnavailable
from holdfast.sandbox import Access, Named, Pattern, Rule, Rules, Sandbox, SandboxEntry, Where, parent
from holdfast.value import replace
from holdfast.wildcards import STAR_ONE_AND_SETS, Wildcards

_SPECIAL = re.compile(r"[*?\[{}]")
_UNKNOWN = re.compile(r"[{}]")

_CLOSED = frozenset({errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors about a directory that the command cannot list, either, or that is gone by now."""


class GivenUp(Exception):
    """The search was given up, because nobody waits for its result any more."""


class PolicySearch:
    """How long and how far the disk may be searched.  Another thread may call ``give_up``."""

    __slots__ = ("_deadline", "_given_up", "_limits", "_matches", "_names")

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self._limits = limits or SandboxLimits()
        self._deadline: float | None = None
        self._given_up = False
        self._matches = self._names = 0

    def give_up(self) -> None:
        """Make the search end soon, with ``GivenUp``.  May be called twice, and after its end."""
        self._given_up = True

    def begin(self, sandbox: Sandbox) -> None:
        """Check the size of a policy.  The time of the search begins now.

        Raises:
            LimitReached: The policy is too large.
        """
        # The time does not begin with the request, because that may have waited for a thread.
        self._deadline = time.monotonic() + self._limits.lookup_seconds
        limits, entries = self._limits, sandbox.entries or ()
        places = [entry.place for entry in entries]
        for_each_root = sum(
            isinstance(place, Named) and place.where is Where.PROJECT_ROOTS for place in places
        )
        if len(entries) + for_each_root * max(0, len(sandbox.roots) - 1) > limits.entries:
            raise LimitReached("entries of a sandbox", limits.entries, name="sandbox.entries")
        patterns = [place.text for place in places if isinstance(place, Pattern)]
        if len(patterns) > limits.patterns:
            raise LimitReached("patterns of a sandbox", limits.patterns, name="sandbox.patterns")
        paths = [
            place.below if isinstance(place, Named) else place
            for place in places
            if not isinstance(place, Pattern)
        ]
        for text in (sandbox.cwd, *sandbox.roots, *patterns, *paths):
            if len(text.encode("utf-8", "surrogatepass")) > limits.path_bytes:
                raise LimitReached(
                    "bytes of a path in a sandbox", limits.path_bytes, name="sandbox.path_bytes"
                )

    def check(self) -> None:
        """Check that the search may go on.

        Raises:
            GivenUp: Somebody has called ``give_up``.
            LimitReached: The search takes too long.
        """
        if self._given_up:
            raise GivenUp
        if self._deadline is not None and time.monotonic() >= self._deadline:
            seconds = self._limits.lookup_seconds
            raise LimitReached(
                "seconds to look for a sandbox's paths", seconds, name="sandbox.lookup_seconds"
            )

    def look(self) -> None:
        """Count a name that is looked at, and check that the search may go on.

        Raises:
            GivenUp: Somebody has called ``give_up``.
            LimitReached: The search takes too long, or there are too many names.
        """
        self.check()
        self._names += 1
        if self._names > self._limits.names:
            raise LimitReached("names looked at for a sandbox", self._limits.names, name="sandbox.names")

    def match(self) -> None:
        """Count a path that matches a pattern.

        Raises:
            LimitReached: Too many paths match.
        """
        self._matches += 1
        if self._matches > self._limits.matches:
            raise LimitReached(
                "paths that match a sandbox's patterns", self._limits.matches, name="sandbox.matches"
            )


# Patterns.


def expand(pattern: str, cwd: str, depth: int | None, search: PolicySearch | None = None) -> Iterator[str]:
    """Yield the paths that match a pattern, each once.  Symbolic links are not followed.

    Args:
        cwd: What a relative pattern is relative to.
        depth: How many directories deep to look below the part without special characters.
        search: How long and how far the disk may be searched.

    Raises:
        BadRequest: The pattern begins at the root, so that the whole disk would have to be searched.
        LimitReached: The search takes too long, or too many paths match.
        SandboxUnavailable: A directory cannot be listed, so that nobody knows what matches in it.
    """
    search = search or PolicySearch()
    if "\0" in pattern:
        raise BadRequest(f"glob {pattern!r} contains a NUL byte")
    if not pattern.startswith("/"):
        pattern = os.path.join(cwd, pattern)
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    fixed = next((index for index, part in enumerate(parts) if _SPECIAL.search(part)), len(parts))
    if fixed == len(parts):
        yield "/" + "/".join(parts)
        return
    if fixed == 0 or _UNKNOWN.search(pattern):
        raise BadRequest(
            f"unreadable glob `{pattern}` cannot be safely expanded;"
            " use a pattern with a non-root directory prefix"
        )
    wanted = Parts(parts[fixed:])
    levels = None if "**" in parts else len(parts) - fixed
    if depth is not None:
        levels = depth if levels is None else min(depth, levels)
    yield from _below("/" + "/".join(parts[:fixed]), wanted, levels, search)


def _below(top: str, wanted: Parts, levels: int | None, search: PolicySearch) -> Iterator[str]:
    """Yield the paths below a directory that match, level by level; ``levels`` None is for no bound."""
    level = [(top, wanted.start)]
    while level and (levels is None or levels > 0):
        deeper: list[tuple[str, int]] = []
        for directory, above in level:
            for entry in _listed(directory):
                search.look()
                bits = wanted.after(above, entry.name)
                if bits & wanted.end:
                    search.match()
                    yield entry.path
                if bits and entry.is_dir(follow_symlinks=False):
                    deeper.append((entry.path, bits))
        level = deeper
        levels = None if levels is None else levels - 1


def _listed(directory: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a directory; none if the command cannot list it, either."""
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except OSError as error:
        if error.errno not in _CLOSED:
            raise SandboxUnavailable(f"{directory!r} cannot be listed: {error.strerror}") from error


class Parts:
    """The parts of a pattern.  Each matches one name of a path; ``**`` matches any number of names.

    How far a path has come is a set of bits, as in ``Wildcards``: one for each number of parts that its
    names may have used up.  So each name is looked at once, however many ways there are to divide a path
    among the parts.
    """

    __slots__ = ("_loops", "_plain", "_special", "_special_bits", "end", "start")

    def __init__(self, parts: Sequence[str]) -> None:
        self.start = bit = 1
        self._loops = 0
        self._plain: dict[str, int] = {}
        special: dict[str, int] = {}
        for place, part in enumerate(parts):
            if part == "**":
                self._loops |= bit
                if place < len(parts) - 1:
                    continue
                part = "*"  # At the end of a pattern it matches one name at least.
                self._loops |= bit << 1
            bit <<= 1
            bits = special if _SPECIAL.search(part) else self._plain
            bits[part] = bits.get(part, 0) | bit
        self.end = bit
        self._special = Wildcards(special, special=STAR_ONE_AND_SETS)
        self._special_bits = list(special.values())

    def after(self, bits: int, name: str) -> int:
        """Return how far a path has come with one name more; 0 if nothing below it can match."""
        mask = self._plain.get(name, 0)
        for place in self._special.which(name):
            mask |= self._special_bits[place]
        return ((bits << 1) & mask) | (bits & self._loops)


PROTECTED = (".git", ".agents", ".codex", ".aws")
"""Names directly below a writable place that stay as they are.

Other programs trust what is in them, so whoever writes them can do more than the policy seems to allow.
"""

_MINIMAL = ("/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw")
_POINTER_MOST = 4096
"""Bytes of a ``.git`` file that are read."""
_LINKS_MOST = 40
"""Links that the kernel follows on one way."""

EVERYTHING = Rules([Rule("/", Access.WRITE)])
"""Every file may be written."""

READ_ONLY = Rules([Rule("/", Access.READ)])
"""Every file may be read, and none written."""


def resolve(sandbox: Sandbox, tmpdir: str | None, search: PolicySearch | None = None) -> Rules:
    """Return the rules of a sandbox.  It asks the disk, and may take as long as that does.

    Args:
        tmpdir: ``TMPDIR`` of the command.
        search: How long and how far the disk may be searched.

    Raises:
        BadRequest: A pattern cannot be looked for, or a path is relative to nothing.
        LimitReached: There is too much to look for.
        SandboxUnavailable: A directory cannot be listed, so that nobody knows what a pattern matches.
    """
    if sandbox.entries is None:
        return EVERYTHING
    if not sandbox.is_placed:
        raise BadRequest("a sandbox with relative paths needs a directory: Sandbox.at gives it one")
    (search := search or PolicySearch()).begin(sandbox)
    found: dict[str, Rule] = {}
    guards: list[Rule] = []
    named: set[str] = set()
    for entry in sandbox.entries:
        if isinstance(entry.place, Named) and entry.place.where is Where.MINIMAL and entry.access:
            entry = SandboxEntry(entry.place, Access.READ)
        for path in _paths(entry, sandbox, tmpdir, search):
            search.check()
            if "\0" in path:
                raise BadRequest(f"a path of the sandbox contains a NUL byte: {path!r}")
            rule = _rule(path, entry)
            if rule is None:
                continue
            if rule.access is not entry.access:
                guards.append(rule)
                continue
            named |= {path, rule.path}
            found[rule.path] = _stronger(rule, found.get(rule.path))
    asked = Rules(list(found.values()))
    for rule in asked.rules:
        search.check()
        if rule.access is Access.WRITE and not rule.file:
            guards += _protected(rule.path, named, search)
    for guard in guards:
        # A guard only ever takes rights away: what a link or a ``.git`` file names must not become readable.
        if asked.access(guard.path) is Access.WRITE:
            found.setdefault(guard.path, guard)
    return _without_what_is_covered(Rules(list(found.values())))


def enclosed(walls: tuple[str, ...]) -> Rules:
    """Return rules that allow everything inside of these directories, if they exist, and nothing else."""
    inside = (_rule(path, SandboxEntry(path, Access.WRITE)) for path in walls)
    return Rules([rule for rule in inside if rule is not None])


def _stronger(rule: Rule, other: Rule | None) -> Rule:
    """Return the one of two rules for a path that counts, with the aliases of both."""
    if other is None:
        return rule
    first, second = (rule, other) if _rank(rule.access) > _rank(other.access) else (other, rule)
    return replace(first, aliases=tuple(dict.fromkeys((*first.aliases, *second.aliases))))


def _rank(access: Access) -> int:
    """Return the order of accesses for one path: deny wins over write, and write over read."""
    return 3 if access is Access.DENY else access


def _paths(entry: SandboxEntry, sandbox: Sandbox, tmpdir: str | None, search: PolicySearch) -> Iterator[str]:
    """Yield the paths that an entry is about."""
    match entry.place:
        case Pattern(text=text) if entry.access is Access.DENY:
            yield from expand(text, sandbox.cwd, sandbox.pattern_depth, search)
        case Named(where=Where.ROOT):
            yield "/"
        case Named(where=Where.MINIMAL):
            yield from _MINIMAL
        case Named(where=Where.PROJECT_ROOTS, below=below):
            for root in sandbox.roots:
                yield os.path.join(root, below.lstrip("/")) if below else root
        case Named(where=Where.TMPDIR):
            if tmpdir and tmpdir.startswith("/"):
                yield tmpdir
        case Named(where=Where.SLASH_TMP):
            if os.path.isdir("/tmp"):  # noqa: S108  (the place that the policy names)
                yield "/tmp"  # noqa: S108
        case str() as path:
            yield path


def _rule(path: str, entry: SandboxEntry) -> Rule | None:
    """Return the rule for a path; None if nothing is there and nothing has to be done about that.

    If nothing is there that is denied, the rule is a guard: it is about the first missing name on the way,
    and its access may differ from that of the entry.
    """
    path = os.path.normpath("/" + path.lstrip("/"))
    real = os.path.realpath(path)
    facts = _facts(real)
    if facts is None:
        return _guard(real) if entry.access is Access.DENY and not entry.if_there else None
    aliases = () if real == path else (path,)
    return Rule(real, entry.access, file=not stat.S_ISDIR(facts.st_mode), aliases=aliases)


def _facts(path: str) -> os.stat_result | None:
    """Return the ``lstat`` of a path; None if nothing is there, or only the mask of some sandbox."""
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return None if _is_mask(facts) else facts


def _guard(path: str) -> Rule:
    """Return the rule that keeps something from coming into being that is denied and not there.

    A mask can only be made in a directory that exists.  So the rule covers the first name of the path that
    is missing, and nothing can be made below it.  If a file is in the place of a directory, it has to stay,
    or the command could put a directory there instead.
    """
    here = ""
    for name in path.strip("/").split("/"):
        here += "/" + name
        access = Access.DENY if here == path else Access.READ
        facts = _facts(here)
        if facts is None:
            return Rule(here, access, missing=True)
        if not stat.S_ISDIR(facts.st_mode):
            return Rule(here, access, file=True, link=stat.S_ISLNK(facts.st_mode))
    return Rule(path, Access.DENY)  # Somebody has made it meanwhile.


def _protected(root: str, named: set[str], search: PolicySearch) -> Iterator[Rule]:
    """Yield the rules that protect names below a writable place, but for those that the policy names."""
    for name in PROTECTED:
        path = os.path.join(root, name)
        if path in named:
            continue
        real = yield from _held(path, search)
        if real is not None and name == ".git" and (target := _pointed_at(real)) is not None:
            # Git begins where it found the name, and others where the file is.
            for place in dict.fromkeys((root, parent(real))):
                yield from _held(os.path.join(place, target), search)


def _held(path: str, search: PolicySearch) -> Generator[Rule, None, str | None]:
    """Yield the rules that keep a path leading where it leads now, and unwritten what is there.

    Whoever changes a link on the way, or makes the name that a link lacks, decides what the path stands
    for.  So each link stays what it is, and the first missing name stays missing.

    Returns:
        The path of what is there, without links; None if nothing is.
    """
    here, names, passed = "/", path.split("/")[::-1], [parent(path)]
    while names:
        if (name := names.pop()) in ("", "."):
            continue
        if name == "..":
            # A link could take the place of a directory, but not of one that something below keeps.
            if not any(f"{place}/".startswith(f"{here}/") for place in passed):
                yield Rule(here, Access.READ)
            here = parent(here)
            continue
        search.look()
        step = os.path.join(here, name)
        facts = _facts(step)
        if facts is None:
            # What the server cannot make the command cannot make, either; and no mask could be made there.
            if os.path.lexists(step) or os.access(here, os.W_OK | os.X_OK, effective_ids=True):
                yield Rule(step, Access.READ, missing=True)
            return None
        if stat.S_ISLNK(facts.st_mode):
            yield Rule(step, Access.READ, file=True, link=True)
            passed.append(here)
            try:
                text = os.readlink(step)
            except OSError:
                return None  # It is gone by now.
            if len(passed) > _LINKS_MOST:
                return None
            here = "/" if text.startswith("/") else here
            names += text.split("/")[::-1]
        elif names and not stat.S_ISDIR(facts.st_mode):
            yield Rule(step, Access.READ, file=True)
            return None
        else:
            here = step
    yield Rule(here, Access.READ, file=not os.path.isdir(here))
    return here


def _is_mask(facts: os.stat_result) -> bool:
    """Whether it is a mask, which is only there for some sandbox to mount on; see ``mask.c``."""
    return stat.S_ISDIR(facts.st_mode) and facts.st_mode & 0o7222 == 0o1000


def _pointed_at(path: str) -> str | None:
    """Return what a ``.git`` file names; None if it is no such file, or names nothing."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            text = os.fsdecode(file.read(_POINTER_MOST))
    except OSError:
        return None
    word, _, target = text.partition(":")
    target = target.strip()
    return target if word == "gitdir" and target and "\0" not in target else None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; if it is a pipe, do not wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _without_what_is_covered(rules: Rules) -> Rules:
    """Return the rules without those for missing files that cannot come into being anyway."""
    return Rules([rule for rule in rules.rules if not rule.missing or rules.above(rule) is Access.WRITE])
