"""The files of this host: work on them is done in threads, and news of them come from one inotify."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import errno
import os
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TypeVar

from holdfast.config import FileLimits, SandboxLimits
from holdfast.errors import FileFailed, Forbidden
from holdfast.files import DirEntry, FileMetadata, OpenFile, Purpose, Walk, WalkTerms, watch_callback
from holdfast.host.files import content, making, renaming, trees
from holdfast.host.files import watch as watch_plans
from holdfast.host.files.packing import TreeArchive
from holdfast.host.files.resolver import Resolver
from holdfast.host.files.unpacking import TreeExtraction
from holdfast.host.files.watch import APPEARS, IN_IGNORED, IN_Q_OVERFLOW, Event, Inotify, Plan
from holdfast.host.sandbox.rules import PolicySearch, enclosed, resolve
from holdfast.model import to_bytes, to_text
from holdfast.poller import Poller
from holdfast.principal import is_below
from holdfast.recordings import HostRecording
from holdfast.sandbox import Rules, Sandbox

from .file_trees import LocalTree, run
from .recording import CastFile, TerminalRecording
from .workers import Workers


class LocalFileWatch:
    """Somebody who waits.  Implements ``files.FileWatch``."""

    __slots__ = ("_told", "_watching", "interests")

    def __init__(self, watching: Watching, told: Callable[[], None]) -> None:
        self._watching = watching
        self._told: Callable[[], None] | None = told
        self.interests: dict[int, tuple[int, frozenset[bytes]]] = {}
        """By the kernel's number: what may happen, and the names that may appear."""

    def fire(self) -> None:
        told = self._told
        self.stop()
        if told is not None:
            told()

    def stop(self) -> None:
        self._told = None
        self._watching.drop(self)


class Watching:
    """All watches of a backend."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._inotify: Inotify | None = None
        self._waiting: dict[int, set[LocalFileWatch]] = {}

    def add(self, plan: Plan, told: Callable[[], None]) -> LocalFileWatch:
        """Watch what the plan says, which is closed.  ``told`` is called once at the most.

        Raises:
            OSError: The kernel has no more watches.
        """
        watch = LocalFileWatch(self, told)
        try:
            inotify = self._inotify or self._open()
            for target in plan.targets.values():
                number = inotify.add(target.fd, target.mask)
                self._waiting.setdefault(number, set()).add(watch)
                mask, names = watch.interests.get(number, (0, frozenset()))
                watch.interests[number] = (mask | target.mask, names | target.names)
        except BaseException:
            watch.stop()
            raise
        finally:
            plan.close()
        return watch

    def _open(self) -> Inotify:
        self._inotify = inotify = Inotify()
        self._poller.add(inotify.fd, self)
        return inotify

    def on_ready(self, events: int) -> None:
        """Implements ``poller.Source``."""
        if self._inotify is not None:
            for event in self._inotify.read():
                self._on_event(event)

    def _on_event(self, event: Event) -> None:
        if event.mask & IN_Q_OVERFLOW:
            for watch in {watch for waiting in self._waiting.values() for watch in waiting}:
                watch.fire()
            return
        for watch in list(self._waiting.get(event.watch, ())):
            mask, names = watch.interests[event.watch]
            if event.name in names if event.mask & APPEARS else event.mask & (mask | IN_IGNORED):
                watch.fire()

    def drop(self, watch: LocalFileWatch) -> None:
        """Watch no longer what only this one waited for."""
        interests, watch.interests = watch.interests, {}
        for number in interests:
            waiting = self._waiting[number]
            waiting.discard(watch)
            if not waiting:
                del self._waiting[number]
                if self._inotify is not None:
                    self._inotify.remove(number)

    def close(self) -> None:
        """Tell nobody anything any more."""
        inotify, self._inotify = self._inotify, None
        if inotify is not None:
            self._poller.remove(inotify.fd)
            inotify.close()
        for watch in {watch for waiting in self._waiting.values() for watch in waiting}:
            watch.stop()


T = TypeVar("T")


class LocalFiles:
    """Implements ``files.Files``."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        limits: FileLimits | None = None,
        *,
        sandbox_limits: SandboxLimits | None = None,
        tmpdir: str | None = None,
    ) -> None:
        """``tmpdir`` is what a sandbox means by that name."""
        self._limits = limits or FileLimits()
        self._sandbox_limits = sandbox_limits or SandboxLimits()
        self.workers = Workers(self._limits.threads, loop, "holdfast-files")
        self.lookups = Workers(self._sandbox_limits.lookup_threads, loop, "holdfast-lookups")
        """Threads for policies with patterns.  A search takes the processor for as long as it lasts, and
        the event loop waits for its turn behind every thread that has something to do."""
        self._watching = Watching(poller)
        self._tmpdir = tmpdir
        self._walls: tuple[str, ...] | None = None

    def within(self, walls: tuple[str, ...]) -> LocalFiles:
        """A view of the files that ends at these directories."""
        view = copy.copy(self)
        view._walls = walls
        return view

    async def read(
        self, path: str, *, at_once: int, follow: bool = True, sandbox: Sandbox | None = None
    ) -> bytes | OpenFile:
        self._check(path)

        def work(resolver: Resolver) -> bytes | int:
            return content.read(resolver, to_bytes(path), at_once=at_once, limit=self._limits.read_bytes)

        found = await self._look(sandbox, work, undo=_let_go, follow=follow)
        return LocalFile(found, self.workers) if isinstance(found, int) else found

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        follow: bool = True,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        work = partial(content.write, permissions=permissions)
        await self._do(sandbox, work, path, data, follow=follow)

    async def make_directory(
        self, path: str, *, recursive: bool, follow: bool = True, sandbox: Sandbox | None = None
    ) -> None:
        work = partial(making.make_directory, recursive=recursive)
        await self._do(sandbox, work, path, follow=follow)

    async def metadata(
        self, path: str, *, follow: bool = True, sandbox: Sandbox | None = None
    ) -> FileMetadata:
        return await self._do(sandbox, content.metadata, path, follow=follow)

    async def canonical(self, path: str, *, sandbox: Sandbox | None = None) -> str:
        return to_text(await self._do(sandbox, content.canonical, path))

    async def list(
        self, path: str, *, dangling: bool = True, sandbox: Sandbox | None = None
    ) -> Sequence[DirEntry]:
        work = partial(trees.listed, limit=self._limits.entries, dangling=dangling)
        return await self._do(sandbox, work, path)

    async def walk(self, path: str, terms: WalkTerms, *, sandbox: Sandbox | None = None) -> Walk:
        return await self._do(sandbox, trees.walk, path, terms)

    async def remove(
        self,
        path: str,
        *,
        recursive: bool,
        force: bool,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> None:
        work = partial(trees.remove, recursive=recursive, force=force)
        await self._do(sandbox, work, path, follow=follow)

    async def copy(
        self, source: str, destination: str, *, recursive: bool, sandbox: Sandbox | None = None
    ) -> None:
        self._check(destination)
        work = partial(trees.copy, recursive=recursive)
        await self._do(sandbox, work, source, to_bytes(destination))

    async def rename(self, source: str, destination: str, *, sandbox: Sandbox | None = None) -> None:
        self._check(destination)
        await self._do(sandbox, renaming.rename, source, to_bytes(destination))

    async def open(
        self,
        path: str,
        purpose: Purpose,
        *,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> OpenFile:
        self._check(path)

        def work(resolver: Resolver) -> int:
            return content.open_for(resolver, to_bytes(path), purpose, permissions)

        return LocalFile(await self._look(sandbox, work, undo=_let_go), self.workers)

    async def record(self, terms: HostRecording) -> TerminalRecording:
        """Make the file of a recording, for a process that is about to start."""
        self._check(terms.path)

        def work(resolver: Resolver) -> making.NewFile:
            return making.make_file(resolver, to_bytes(terms.path))

        file = await self._look(terms.sandbox, work, undo=making.NewFile.discard)
        return TerminalRecording(CastFile(file, terms.max_bytes), terms, self.workers, clock=monotonic)

    async def archive(self, path: str, *, sandbox: Sandbox | None = None) -> LocalTree:
        self._check(path)

        def work(resolver: Resolver) -> TreeArchive:
            return TreeArchive(resolver, to_bytes(path))

        return LocalTree(await self._look(sandbox, work, undo=_close_tree), self.workers)

    async def extract(
        self, path: str, *, outside_links: bool = False, sandbox: Sandbox | None = None
    ) -> LocalTree:
        self._check(path)

        def work(resolver: Resolver) -> TreeExtraction:
            return TreeExtraction(resolver, to_bytes(path), outside_links=outside_links)

        return LocalTree(await self._look(sandbox, work, undo=_close_tree), self.workers)

    async def watch_missing(
        self,
        missing: Sequence[str],
        present: str | None,
        on_change: Callable[[], None] | None = None,
        *,
        told: Callable[[], None] | None = None,
    ) -> LocalFileWatch | None:
        callback = watch_callback(on_change, told)
        self._check(*missing, *(() if present is None else (present,)))
        paths = [to_bytes(path) for path in missing]
        there = None if present is None else to_bytes(present)
        plan = await self._run(partial(watch_plans.plan, paths, there), _close_plan)
        if plan is None:
            return None
        try:
            watching = self._watching.add(plan, callback)
        except OSError:
            return None  # The kernel has no more watches.
        try:
            # It may have come while we were at it.
            if not await self._run(partial(watch_plans.appeared, paths)):
                return watching
        except BaseException:
            watching.stop()
            raise
        watching.stop()
        return None

    def close(self) -> None:
        """Watch nothing any more, and let the threads end.  A call that hangs is left behind."""
        self._watching.close()
        self.workers.close()
        self.lookups.close()

    # How it is done.

    async def _do(
        self,
        sandbox: Sandbox | None,
        work: Callable[..., T],
        path: str,
        *facts: object,
        follow: bool = True,
    ) -> T:
        self._check(path)
        return await self._look(
            sandbox, lambda resolver: work(resolver, to_bytes(path), *facts), follow=follow
        )

    async def _look(
        self,
        sandbox: Sandbox | None,
        work: Callable[[Resolver], T],
        *,
        undo: Callable[[T], None] | None = None,
        follow: bool = True,
    ) -> T:
        """The result of something that may have to find out first what a sandbox means."""
        search = PolicySearch(self._sandbox_limits)

        def rules() -> Rules | None:
            if sandbox is None or sandbox.entries is None:
                return None
            return resolve(sandbox, self._tmpdir, search)

        try:
            if sandbox is not None and sandbox.has_patterns:
                found = await run(self.lookups, rules)
                return await self._run(lambda: work(self._resolver(found, follow=follow)), undo)
            return await self._run(lambda: work(self._resolver(rules(), follow=follow)), undo)
        finally:
            search.give_up()  # If nobody waits any more the thread is needed elsewhere.

    def _resolver(self, rules: Rules | None, *, follow: bool) -> Resolver:
        if self._walls is not None:
            walls = enclosed(self._walls)
            rules = walls if rules is None else rules.within(walls)
        return Resolver(rules, follow=follow)

    def _check(self, *paths: str) -> None:
        """Say at once what can be told from the text alone; links are followed, and checked, later."""
        for path in paths if self._walls is not None else ():
            if not any(is_below(path, wall) for wall in self._walls or ()):
                raise Forbidden("path", path)

    async def _run(self, work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        return await run(self.workers, work, undo=undo)


class LocalFile:
    """A file of this host, opened.  Implements ``files.OpenFile``.

    It is not closed while a thread uses it: the number of its descriptor could be
    another file's by then.
    """

    __slots__ = ("_closed", "_fd", "_users", "_workers")

    def __init__(self, fd: int, workers: Workers) -> None:
        self._fd = fd
        self._workers = workers
        self._users = 0
        self._closed = False

    async def read(self, offset: int, length: int) -> bytes:
        return await self._use(partial(content.read_block, self._fd, offset, length))

    async def write(self, offset: int, data: bytes) -> None:
        await self._use(partial(content.write_block, self._fd, offset, data))

    async def _use(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise FileFailed(errno.EBADF)
        self._users += 1
        return await run(self._workers, work, over=self._on_over)

    def _on_over(self) -> None:
        self._users -= 1
        self._end()

    def close(self) -> None:
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._closed and not self._users and self._fd >= 0:
            # On some disks that takes its time, too.
            fd, self._fd = self._fd, -1
            self._workers.post(partial(_close, fd))


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):
        os.close(fd)


def _let_go(found: object) -> None:
    if isinstance(found, int):
        _close(found)


def _close_plan(plan: Plan | None) -> None:
    if plan is not None:
        plan.close()


def _close_tree(tree: TreeArchive | TreeExtraction) -> None:
    tree.close()
