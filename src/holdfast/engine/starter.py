"""Starts children in threads, so that a slow start holds up nobody.

Starting blocks until the program runs: a file on a stalled network disk, or one
that somebody holds a lease on, can take seconds.  One thread is enough for a
thousand starts a second; another is added only while no start makes progress.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import signal as signals
import threading
from collections.abc import Callable
from functools import partial

from holdfast.errors import StartCancelled
from holdfast.model import Spec

from .children import Child

_STUCK = 0.01
"""Seconds without any start finishing before another thread is added."""

_SPARE = 10.0
"""Seconds without work after which a thread that is not the only one ends."""

_PARTING = 0.5
"""Seconds that the end waits for starts that are under way."""

MOST_THREADS = 32
"""Threads at the most: so many starts can be stuck before others have to queue."""

_Job = Callable[[], None]


class Starter:
    """Runs a blocking ``spawn`` in daemon threads.  Implements ``Children``."""

    def __init__(self, spawn: Callable[[Spec], Child], loop: asyncio.AbstractEventLoop) -> None:
        self._spawn = spawn
        self._loop = loop
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._unfinished = 0
        self._finished_at = 0.0
        self._threads = 0
        self._lock = threading.Lock()  # Guards the counts of threads and of starts under way.
        self._idle = threading.Condition(self._lock)
        self._under_way = 0
        self._closed = False
        self._check: asyncio.TimerHandle | None = None

    async def start(self, spec: Spec) -> Child:
        """See ``Children.start``."""
        answer: asyncio.Future[Child] = self._loop.create_future()
        if not self._threads:
            self._add_thread()
        if not self._unfinished:
            self._finished_at = self._loop.time()
        self._unfinished += 1
        self._jobs.put(partial(self._start, spec, answer))
        if self._check is None:
            self._check = self._loop.call_later(_STUCK, self._on_check)
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self.discard(answer.result())
            raise

    def discard(self, child: Child) -> None:
        """See ``Children.discard``.  In a thread of its own: the others may have ended."""
        threading.Thread(target=_discard, args=(child,), name="holdfast-discard", daemon=True).start()

    def close(self) -> None:
        """Begin no more starts, and let the threads end.

        A start that is under way is waited for, so that whoever ends what is left
        finds its child.  One that is stuck is left behind; its thread is a daemon.
        """
        with self._lock:
            self._closed = True
            self._idle.wait_for(lambda: not self._under_way, _PARTING)
        for _ in range(self._threads):
            self._jobs.put(None)
        if self._check is not None:
            self._check.cancel()

    def _add_thread(self) -> None:
        with self._lock:
            self._threads += 1
        threading.Thread(target=self._work, name="holdfast-start", daemon=True).start()

    def _on_check(self) -> None:
        self._check = None
        if not self._unfinished:
            return
        stuck = self._loop.time() - self._finished_at >= _STUCK
        if stuck and self._unfinished >= self._threads and self._threads < MOST_THREADS:
            self._add_thread()
        self._check = self._loop.call_later(_STUCK, self._on_check)

    def _on_finished(self, answer: asyncio.Future[Child], outcome: Child | Exception) -> None:
        self._unfinished -= 1
        self._finished_at = self._loop.time() if self._unfinished else 0.0
        if isinstance(outcome, Exception):
            if not answer.done():
                answer.set_exception(outcome)
        elif answer.done():  # Cancelled meanwhile.
            self.discard(outcome)
        else:
            answer.set_result(outcome)

    # In the threads.

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_SPARE)
            except queue.Empty:
                if self._retire():
                    return
                continue
            if job is None:
                return
            job()
            del job  # Or the last child's request would live on until the next.

    def _retire(self) -> bool:
        """Whether this thread, which has nothing to do, is one too many."""
        with self._lock:
            spare = self._threads > 1
            self._threads -= spare
        return spare

    def _start(self, spec: Spec, answer: asyncio.Future[Child]) -> None:
        outcome: Child | Exception
        try:
            outcome = self._spawn(spec) if self._may_begin(answer) else StartCancelled(spec.argv[0])
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the caller's, who waits for it)
            outcome = error
        try:
            self._loop.call_soon_threadsafe(self._on_finished, answer, outcome)
        except RuntimeError:  # The loop is closed: nobody is left to take the child.
            if not isinstance(outcome, Exception):
                _discard(outcome)
        finally:
            with self._lock:
                self._under_way -= 1
                self._idle.notify()

    def _may_begin(self, answer: asyncio.Future[Child]) -> bool:
        """Whether anybody still wants this start.  From here on it is under way."""
        with self._lock:
            self._under_way += 1
            return not self._closed and not answer.cancelled()


def _discard(child: Child) -> None:
    """End a child that nobody wants.  Waits for its end."""
    child.signal(signals.SIGKILL)
    for fd in {fd for _, fd in child.outputs} | ({child.stdin} if child.stdin is not None else set()):
        os.close(fd)
    ended = select.poll()  # Not select(): descriptors may be above its range.
    ended.register(child.exit_fd, select.POLLIN)
    ended.poll()
    child.reap()
    child.release()
