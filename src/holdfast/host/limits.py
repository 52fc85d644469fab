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
"""The largest limit of processor time that is set.  The kernel counts nanoseconds, and would overflow."""

_PARTING = 2
"""Seconds of processor time that a process has to clean up after the signal that its time is over."""


def resource_limits(limits: Limits) -> list[tuple[int, int, int]]:
    """Return what the kernel limits for each process of a tree: resource, soft limit, hard limit."""
    found = []
    if limits.files is not None:
        # A process cannot have more than the server may have itself.
        files = min(limits.files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        found.append((resource.RLIMIT_NOFILE, files, files))
    if limits.cpu is not None and limits.cpu < _MOST_SECONDS:
        seconds = max(1, math.ceil(limits.cpu))
        found.append((resource.RLIMIT_CPU, seconds, seconds + _PARTING))
    return found


# Control groups.

_PREFIX = "holdfast-"

# Files of a control group: the name in the second version of the interface, then that in the first.
_MEMORY = ("memory.max", "memory.limit_in_bytes")
_SWAP = ("memory.swap.max", "memory.memsw.limit_in_bytes")
_KILLS = ("memory.events", "memory.oom_control")
_PIDS = ("pids.max",)


@value
class Group:
    """The control groups of one tree: one directory per controller, or one for all of them."""

    paths: Sequence[str]

    def directories(self) -> list[bytes]:
        """Return the directories in the form in which a shim is told to make a command enter them."""
        return [os.fsencode(path) for path in self.paths]

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of these groups because they ran out of memory."""
        for path in self.paths:
            for name in _KILLS:
                with contextlib.suppress(OSError), open(f"{path}/{name}") as file:
                    facts = dict(line.split() for line in file)
                    if int(facts.get("oom_kill", 0)):
                        return True
        return False

    def remove(self) -> None:
        """Remove the groups.  One that still has a process stays until ``Groups`` is closed."""
        for path in self.paths:
            _remove(path)


class Groups:
    """Makes control groups below our own."""

    def __init__(self, roots: dict[str, str], owner: int | None = None) -> None:
        """
        Args:
            roots: For each controller, the directory in which groups can be made.
            owner: The pid of the process with which the groups end; by default this one.
        """
        self._roots = roots
        self._owner = owner
        self._prefix = f"{_owner(owner)}{os.urandom(4).hex()}-"
        self._numbers = itertools.count()

    def renewed(self) -> Groups:
        """Return an object that makes groups in the same places, and none that this one has made."""
        return Groups(self._roots, self._owner)

    @property
    def controllers(self) -> frozenset[str]:
        """The controllers for which groups can be made: ``memory``, ``pids`` or both."""
        return frozenset(self._roots)

    def make(self, limits: Limits) -> Group | None:
        """Make groups that keep ``limits``, as far as they can; return None if they can keep none of them."""
        wanted: dict[str, list[tuple[Sequence[str], int]]] = {}
        if limits.memory is not None and "memory" in self._roots:
            # Without this a tree could have more memory than its limit, in swap.
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
        """Remove all groups that this object has made and that have no process any more."""
        for root in set(self._roots.values()):
            for name in _names(root):
                if name.startswith(self._prefix):
                    _remove(os.path.join(root, name))


def _set(path: str, files: Sequence[str], value: int, limits: Limits) -> None:
    """Write a limit to the first of these files that the group has; swap need not be limited."""
    for name in files:
        file = f"{path}/{name}"
        if not os.path.exists(file):
            continue
        if name == "memory.memsw.limit_in_bytes":  # The first version limits the sum of memory and swap.
            value = limits.memory or 0
        with open(file, "w") as out:
            out.write(str(value))
        return
    if files is not _SWAP:
        raise FileNotFoundError(path)


def find_groups(owner: int | None = None) -> Groups:
    """Find the controllers for which groups can be made on this host, by making one of each.

    ``owner`` is the pid of the process with which the groups end; by default this one.
    """
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
    return Groups(roots, owner)


@value
class _Mount:
    """A mount of control groups.  In a container it often shows only a part of them."""

    place: str
    """The directory on which the groups are mounted."""
    root: str
    """The group that this directory shows."""

    def folder(self, path: str) -> str:
        """Return the directory of a group, given its path from the root of all groups."""
        inside = path.removeprefix(self.root) if self.root != "/" else path
        return self.place + ("/" + inside.strip("/")).rstrip("/")


def _mounts() -> dict[str, _Mount]:
    """Return the mount of each controller; that of the second version has the empty name."""
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
    """Return ``root`` if a group can be made there whose limit we may write; otherwise None."""
    probe = os.path.join(root, f"{_owner()}{os.urandom(4).hex()}")
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


def _owner(pid: int | None = None) -> str:
    """How the names of our groups begin: others can tell from it whether we live.

    A pid means something only to those who are in the same PID namespace.  Servers of several containers
    may have the same groups above them, and must not take each other for gone.
    """
    return f"{_PREFIX}{_namespace()}-{pid or os.getpid()}-"


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0  # Without /proc nothing works here, and others say so.


def _sweep(root: str) -> None:
    """Remove the groups of servers that are gone, as far as we can tell that they are."""
    ours = f"{_PREFIX}{_namespace()}-"
    for name in _names(root):
        owner = name.removeprefix(ours).partition("-")[0]
        if name.startswith(ours) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            _remove(os.path.join(root, name))


def _names(root: str) -> list[str]:
    """Return the groups in ``root`` that some server of ours has made."""
    with contextlib.suppress(OSError):
        return [name for name in os.listdir(root) if name.startswith(_PREFIX)]
    return []


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):  # A process is still in it.
        os.rmdir(path)
