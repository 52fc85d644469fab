"""The arguments of bubblewrap that keep rules about files, by mounts (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.sandbox import Access, Rule, Rules, depth, parent

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
            yield from _bind(rule.access, alias)


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
