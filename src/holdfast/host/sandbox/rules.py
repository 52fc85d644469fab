"""Turns the entries of a policy into rules: what they mean on this disk, at this moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from holdfast.errors import BadRequest
from holdfast.sandbox import Access, Named, Pattern, Rule, Rules, Sandbox, SandboxEntry, Where
from holdfast.value import replace

from .search import PolicySearch, expand

PROTECTED = (".git", ".agents", ".codex", ".aws")
"""Names directly below a writable place that stay as they are.

Other programs trust what is in them, so whoever writes them can do more than the policy seems to allow.
"""

_MINIMAL = ("/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw")
_POINTER_MOST = 4096
"""Bytes of a ``.git`` file that are read."""

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
        BadRequest: A pattern cannot be looked for.
        LimitReached: There is too much to look for.
        SandboxUnavailable: A directory cannot be listed, so that nobody knows what a pattern matches.
    """
    if sandbox.entries is None:
        return EVERYTHING
    search = search or PolicySearch()
    search.begin(sandbox)
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
            guards += _protected(rule.path, named)
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


def _protected(root: str, named: set[str]) -> Iterator[Rule]:
    """Yield the rules that protect names below a writable place, but for those that the policy names."""
    # What the server cannot make the command cannot make, either; and no mask could be made there.
    can_make = os.access(root, os.W_OK | os.X_OK, effective_ids=True)
    for name in PROTECTED:
        path = os.path.join(root, name)
        if path in named:
            continue
        try:
            facts = os.lstat(path)
        except OSError:
            if can_make:
                yield Rule(path, Access.READ, missing=True)
            continue
        if stat.S_ISLNK(facts.st_mode):
            yield Rule(path, Access.READ, file=True, link=True)
            path = os.path.realpath(path)
            try:
                facts = os.lstat(path)
            except OSError:
                continue
        is_file = not stat.S_ISDIR(facts.st_mode)
        yield Rule(path, Access.READ, missing=_is_mask(facts), file=is_file)
        if is_file and name == ".git" and (target := _pointed_at(path)) is not None:
            yield Rule(target, Access.READ)


def _is_mask(facts: os.stat_result) -> bool:
    """Whether it is a mask, which is only there for some sandbox to mount on; see ``mask.c``."""
    return stat.S_ISDIR(facts.st_mode) and facts.st_mode & 0o7222 == 0o1000


def _pointed_at(path: str) -> str | None:
    """Return the directory that a ``.git`` file names; None if it names none."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            text = os.fsdecode(file.read(_POINTER_MOST))
    except OSError:
        return None
    word, _, target = text.partition(":")
    if word != "gitdir" or not (target := target.strip()) or "\0" in target:
        return None
    target = os.path.realpath(os.path.join(os.path.dirname(path), target))
    return target if os.path.isdir(target) else None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; if it is a pipe, do not wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _without_what_is_covered(rules: Rules) -> Rules:
    """Return the rules without those for missing files that cannot come into being anyway."""
    return Rules([rule for rule in rules.rules if not rule.missing or rules.above(rule) is Access.WRITE])
