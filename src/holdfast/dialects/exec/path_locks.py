"""Locks on paths: which request about files waits for which.

Requests run side by side: one that hangs on a dead disk must not hold up the
others.  But a client that sends one behind the other may rely on the order, so
those about the same files, of which one changes something, keep it.

What must hold:

1. A lock waits for all earlier ones about the same path, one above it or one below it, if one of the two
   changes something.
2. What a lock costs does not grow with the number of those before it.  So it waits for few of them, who
   wait for the others.
3. A lock that is given up before it is held is released when those before it are: others may wait for them
   through it alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

_DEEPEST = 64
"""Parts of a path that are told apart.  What is deeper counts as its ancestor, and waits a little more."""


class LockStage(Enum):
    """How far a lock is."""

    WAITING = 1
    READY = 2
    """Only waits for one of the places."""
    RUNNING = 3
    GIVEN_UP = 4
    """Its request was cancelled before the lock was ready."""
    OVER = 5


class PathLock:
    """The lock of one request on its paths: waited for, held or released."""

    __slots__ = ("_locks", "_reached", "before", "groups", "nodes", "stage")

    def __init__(self, locks: PathLocks) -> None:
        self._locks = locks
        self._reached: asyncio.Future[None] | None = None
        self.stage = LockStage.WAITING
        self.before = 0
        """Groups that are not over, for which it waits."""
        self.groups: list[_Group] = []
        """The groups that this lock belongs to."""
        self.nodes: list[_Node] = []
        """The nodes of its paths, and of all directories above them."""

    async def acquire(self) -> None:
        """Wait until everything is over that has to come before.  Cancelling gives it up."""
        if self.stage is LockStage.RUNNING:
            return
        self._reached = asyncio.get_running_loop().create_future()
        try:
            await self._reached
        except BaseException:
            self.release()
            raise

    def run(self) -> None:
        """Give the lock one of the places, and let its request go on."""
        self.stage = LockStage.RUNNING
        if self._reached is not None and not self._reached.done():
            self._reached.set_result(None)

    def release(self) -> None:
        """Let others go on.  May be called twice."""
        if self.stage is LockStage.WAITING:
            self.stage = LockStage.GIVEN_UP
        elif self.stage in (LockStage.READY, LockStage.RUNNING):
            self._locks.left(self)


class _Group:
    """Locks that others wait for together."""

    __slots__ = ("count", "order", "waiting")

    def __init__(self, order: int = 0) -> None:
        self.order = order
        """The age of the group: a younger one has a larger number."""
        self.count = 0
        """Locks in it that are not released."""
        self.waiting: list[PathLock] = []


class _Crowd:
    """The locks of one kind at one place, in groups.

    When a lock waits for a group, later locks form a new group.  These wait for that lock, and so for the
    group before theirs.  So whoever waits for the newest group waits for all.
    """

    __slots__ = ("_group", "_last")

    def __init__(self) -> None:
        self._group: _Group | None = None
        self._last: _Group | None = None

    def add(self, lock: PathLock) -> None:
        group = self._group
        if group is None:
            self._group = group = _Group()
        group.count += 1
        lock.groups.append(group)

    def wait(self, before: dict[_Group, None]) -> None:
        """Add the newest group to those to wait for; later locks of this crowd form another one."""
        if self._group is not None and self._group.count:
            self._last, self._group = self._group, None
        if self._last is not None and self._last.count:
            before[self._last] = None


class _Node:
    """A path that locks are about, or that is above one."""

    __slots__ = ("all_changers", "all_readers", "changer", "children", "name", "parent", "readers", "users")

    def __init__(self, parent: _Node | None, name: str) -> None:
        self.parent = parent
        self.name = name
        self.children: dict[str, _Node] = {}
        self.users = 0
        """Locks that are about it or about something below."""
        self.changer: _Group | None = None
        """The last lock that changes exactly this."""
        # Made when first needed: most nodes are above one that is read, and need one of the three.
        self.readers: _Crowd | None = None
        """Locks that read exactly this."""
        self.all_changers: _Crowd | None = None
        """Locks that change this or something below."""
        self.all_readers: _Crowd | None = None


class PathLocks:
    """The locks of one connection, and how many requests run at once."""

    __slots__ = ("_alone", "_joined", "_most", "_ready", "_root", "running")

    def __init__(self, most: int) -> None:
        """``most`` requests run at once."""
        self._most = most
        self._root = _Node(None, "")
        self._joined = 0
        # The only lock that there is, while nobody else has come: it need not be found then.
        self._alone: tuple[PathLock, tuple[str, ...], bool] | None = None
        self._ready: deque[PathLock] = deque()
        self.running = 0
        """Requests that hold their locks and run."""

    def join(self, *keys: str, changes: bool = False) -> PathLock:
        """Return a lock for a request about these paths, behind earlier ones.  The caller releases it."""
        lock = PathLock(self)
        if self._alone is None and not self._root.children:
            self._alone = lock, keys, changes
        else:
            if self._alone is not None:
                self._enter(*self._alone)
                self._alone = None
            self._enter(lock, keys, changes)
        if not lock.before:
            self._make_ready(lock)
            self._go_on()
        return lock

    @asynccontextmanager
    async def hold(self, *keys: str, changes: bool = False) -> AsyncIterator[None]:
        """Hold the lock of a request about these paths."""
        lock = self.join(*keys, changes=changes)
        await lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _line(self, key: str) -> list[_Node]:
        """The node of a path, behind those of everything above it."""
        node, line = self._root, []
        # What is no path is about one thing, whatever its name looks like.
        parts = ["/", *filter(None, key.split("/", _DEEPEST)[:_DEEPEST])] if key.startswith("/") else [key]
        for part in parts:
            child = node.children.get(part)
            if child is None:
                node.children[part] = child = _Node(node, part)
            line.append(child)
            node = child
        return line

    def _enter(self, lock: PathLock, keys: tuple[str, ...], changes: bool) -> None:  # noqa: FBT001
        """Have a lock found by those who come later, and find those before it."""
        self._joined += 1
        lines = [self._line(key) for key in keys]
        before: dict[_Group, None] = {}
        for line in lines:
            _look(line, before, changes=changes)
        for line in lines:
            self._settle(lock, line, changes=changes)
        lock.before = len(before)
        for group in before:
            group.waiting.append(lock)

    def _settle(self, lock: PathLock, line: list[_Node], *, changes: bool) -> None:
        """Note it at what it is about, and at everything above."""
        lock.nodes += line
        for node in line:
            node.users += 1
            crowd = node.all_changers if changes else node.all_readers
            if crowd is None:
                crowd = _Crowd()
                if changes:
                    node.all_changers = crowd
                else:
                    node.all_readers = crowd
            crowd.add(lock)
        node = line[-1]
        if changes:
            node.changer = _Group(self._joined)
            node.changer.count = 1
            lock.groups.append(node.changer)
        else:
            if node.readers is None:
                node.readers = _Crowd()
            node.readers.add(lock)

    def left(self, lock: PathLock) -> None:
        """Take out a lock that was released, and then cancelled locks that waited only for it."""
        if self._alone is not None and self._alone[0] is lock:
            self._alone = None
        over = [lock]
        while over:
            lock = over.pop()
            self.running -= lock.stage is LockStage.RUNNING
            lock.stage = LockStage.OVER
            for node in lock.nodes:
                node.users -= 1
                if not node.users and node.parent is not None:
                    del node.parent.children[node.name]
            for group in lock.groups:
                group.count -= 1
                if not group.count:
                    over += self._pass(group)
            lock.nodes, lock.groups = [], []
        self._go_on()

    def _pass(self, group: _Group) -> list[PathLock]:
        """Let those go on that wait for this group; return cancelled locks among them that are over now."""
        given_up = []
        waiting, group.waiting = group.waiting, []
        for lock in waiting:
            lock.before -= 1
            if not lock.before:
                if lock.stage is LockStage.GIVEN_UP:
                    given_up.append(lock)
                else:
                    self._make_ready(lock)
        return given_up

    def _make_ready(self, lock: PathLock) -> None:
        lock.stage = LockStage.READY
        self._ready.append(lock)

    def _go_on(self) -> None:
        """Give places to those that are ready, in the order in which they became so."""
        while self._ready and self.running < self._most:
            lock = self._ready.popleft()
            if lock.stage is LockStage.READY:
                self.running += 1
                lock.run()


def _look(line: list[_Node], before: dict[_Group, None], *, changes: bool) -> None:
    """Find whom a newcomer waits for that is about the last of these nodes."""
    *above, node = line
    # All who change something above wait for each other: the last one is enough.
    changers = [each.changer for each in above if each.changer is not None and each.changer.count]
    if changers:
        before[max(changers, key=lambda group: group.order)] = None
    crowds = [node.all_changers]
    if changes:
        crowds += [node.all_readers, *(each.readers for each in above)]
    for crowd in crowds:
        if crowd is not None:
            crowd.wait(before)
