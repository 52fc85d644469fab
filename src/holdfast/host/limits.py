"""Limits of a tree: which ones the kernel keeps, for the whole tree or for each process, and which we keep.

For a whole tree the kernel keeps them in control groups, where we may make those.  Both versions of its
interface are used, whichever has a controller.  A group of the second version only has the files of
controllers that were enabled above it, which is for whoever runs the host to do.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import resource
from collections.abc import Sequence

from holdfast.model import Limits
from holdfast.value import value

_MOST_SECONDS = 2**31
"""The kernel counts in nanoseconds, and its numbers end."""

_PARTING = 2
"""Seconds of processor time for whoever catches the signal that its time is over."""


def resource_limits(limits: Limits) -> list[tuple[int, int, int]]:
    """What the kernel keeps for each process of a tree: resource, soft limit, hard limit."""
    found = []
    if limits.files is not None:
        # More than we may have ourselves we cannot allow.
        files = min(limits.files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        found.append((resource.RLIMIT_NOFILE, files, files))
    if limits.cpu is not None and limits.cpu < _MOST_SECONDS:
        seconds = max(1, math.ceil(limits.cpu))
        found.append((resource.RLIMIT_CPU, seconds, seconds + _PARTING))
    return found


@value
class Kept:
    """The limits of one tree, and who keeps them."""

    limits: Limits
    controllers: frozenset[str]
    """What the tree's control group limits."""

    def keepers(self) -> dict[str, str]:
        """For each limit, by its name in ``Limits``, who keeps it."""
        found = {}
        if self.limits.memory is not None:
            found["memory"] = "cgroup" if "memory" in self.controllers else "sampled"
        if self.limits.cpu is not None:
            found["cpu"] = "rlimit"
        if self.limits.processes is not None:
            found["processes"] = "cgroup" if "pids" in self.controllers else "sampled"
        if self.limits.files is not None:
            found["files"] = "rlimit"
        return found

    def ours(self) -> Limits:
        """What is left to us to look after.

        The kernel counts processor time for each process alone; the sum is ours.
        """
        return Limits(
            memory=None if "memory" in self.controllers else self.limits.memory,
            cpu=self.limits.cpu,
            processes=None if "pids" in self.controllers else self.limits.processes,
        )


NO_LIMITS = Kept(Limits(), frozenset())


# Control groups.

_PREFIX = "holdfast-"

_MEMORY = ("memory.max", "memory.limit_in_bytes")
_SWAP = ("memory.swap.max", "memory.memsw.limit_in_bytes")
_KILLS = ("memory.events", "memory.oom_control")
_PIDS = ("pids.max",)


@value
class Group:
    """The groups of one tree: one directory per controller, or one for all."""

    paths: Sequence[str]

    def directories(self) -> list[bytes]:
        """What a shim is told, so that a command enters the groups."""
        return [os.fsencode(path) for path in self.paths]

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed anybody here for want of memory."""
        for path in self.paths:
            for name in _KILLS:
                with contextlib.suppress(OSError), open(f"{path}/{name}") as file:
                    facts = dict(line.split() for line in file)
                    if int(facts.get("oom_kill", 0)):
                        return True
        return False

    def remove(self) -> None:
        """Remove the groups; one in which somebody is left stays until ``Groups`` is closed."""
        for path in self.paths:
            _remove(path)


class Groups:
    """Makes groups below our own."""

    def __init__(self, roots: dict[str, str]) -> None:
        """``roots`` names for each controller the directory in which groups can be made."""
        self._roots = roots
        # The pid tells others whether the owner lives; the rest keeps two owners of one pid apart.
        self._prefix = f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-"
        self._numbers = itertools.count()

    @property
    def controllers(self) -> frozenset[str]:
        return frozenset(self._roots)

    def make(self, limits: Limits) -> Group | None:
        """Groups that keep ``limits``, as far as they can; None if they can keep none of them."""
        wanted: dict[str, list[tuple[Sequence[str], int]]] = {}
        if limits.memory is not None and "memory" in self._roots:
            # Memory that is swapped out is memory still, where the kernel counts it.
            wanted["memory"] = [(_MEMORY, limits.memory), (_SWAP, 0)]
        if limits.processes is not None and "pids" in self._roots:
            wanted["pids"] = [(_PIDS, limits.processes)]
        paths: dict[str, None] = {}
        name = f"{self._prefix}{next(self._numbers)}"
        try:
            for controller, settings in wanted.items():
                path = os.path.join(self._roots[controller], name)
                if path not in paths:
                    os.mkdir(path)
                    paths[path] = None
                for files, value in settings:
                    _set(path, files, value, limits)
        except OSError:
            Group(list(paths)).remove()
            return None
        return Group(list(paths)) if paths else None

    def close(self) -> None:
        """Remove what is left of our groups."""
        for root in set(self._roots.values()):
            for name in _names(root):
                if name.startswith(self._prefix):
                    _remove(os.path.join(root, name))


def _set(path: str, files: Sequence[str], value: int, limits: Limits) -> None:
    for name in files:
        file = f"{path}/{name}"
        if not os.path.exists(file):
            continue
        if name == "memory.memsw.limit_in_bytes":  # The sum of both, in the first version.
            value = limits.memory or 0
        with open(file, "w") as out:
            out.write(str(value))
        return
    if files is not _SWAP:
        raise FileNotFoundError(path)


def find_groups() -> Groups:
    """The controllers for which groups can be made here, found out by making one."""
    roots: dict[str, str] = {}
    with contextlib.suppress(OSError):
        mounts = _mounts()
        with open("/proc/self/cgroup") as file:
            for line in file:
                number, controllers, path = line.rstrip("\n").split(":", 2)
                second = number == "0"
                for controller in ("memory", "pids") if second else controllers.split(","):
                    mount = mounts.get("" if second else controller)
                    if controller in ("memory", "pids") and mount is not None and controller not in roots:
                        root = _usable(controller, mount.folder(path))
                        if root is not None:
                            roots[controller] = root
    return Groups(roots)


@value
class _Mount:
    """Where groups can be seen, and which of them: in a container it is often not all."""

    place: str
    root: str

    def folder(self, path: str) -> str:
        inside = path.removeprefix(self.root) if self.root != "/" else path
        return self.place + ("/" + inside.strip("/")).rstrip("/")


def _mounts() -> dict[str, _Mount]:
    """The mount of each controller; the second version goes by the empty name."""
    found: dict[str, _Mount] = {}
    with open("/proc/self/mountinfo") as file:
        for line in file:
            front, _, back = line.partition(" - ")
            kind, _, options = back.split(" ", 2)
            root, place = front.split(" ")[3:5]
            if kind == "cgroup2":
                found.setdefault("", _Mount(place, root))
            elif kind == "cgroup":
                for option in options.strip().split(","):
                    found.setdefault(option, _Mount(place, root))
    return found


def _usable(controller: str, root: str) -> str | None:
    probe = os.path.join(root, f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
    files = {"memory": _MEMORY, "pids": _PIDS}[controller]
    try:
        _sweep(root)
        os.mkdir(probe)
    except OSError:
        return None
    try:
        usable = any(os.access(f"{probe}/{name}", os.W_OK) for name in files)
    finally:
        os.rmdir(probe)
    return root if usable else None


def _sweep(root: str) -> None:
    """Remove what servers that are gone could not remove."""
    for name in _names(root):
        owner = name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            _remove(os.path.join(root, name))


def _names(root: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [name for name in os.listdir(root) if name.startswith(_PREFIX)]
    return []


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):  # Somebody is still in it.
        os.rmdir(path)
