"""Threads for calls that may take as long as a disk takes.

Not the executor of the standard library: at the end of the program it waits for
its threads, and one that hangs on a dead network disk would keep the server from
ending.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from holdfast.value import record

T = TypeVar("T")


@record
class _Job(Generic[T]):
    call: Callable[[], T]
    future: asyncio.Future[T] | None
    """None if nobody waits for it."""
    undo: Callable[[T], None] | None
    over: Callable[[], None] | None


class Workers:
    """A bounded number of threads, made when they are needed."""

    def __init__(self, most: int, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._most = most
        self._loop = loop
        self._name = name
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._threads = 0
        self._closed = False
        self.busy = 0
        """Calls that were handed over and are not over; only the loop counts."""

    async def run(
        self,
        call: Callable[[], T],
        *,
        undo: Callable[[T], None] | None = None,
        over: Callable[[], None] | None = None,
    ) -> T:
        """The result of ``call``, from another thread.

        Whoever is cancelled does not stop the call.  ``undo`` is then given its result,
        for instance to close it.  ``over`` is called when the call is over, in any case.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        self._hand_over(_Job(call, future, undo, over))
        return await future

    def post(self, call: Callable[[], None]) -> None:
        """Have something done, and do not wait for it.  It must not raise."""
        try:
            self._hand_over(_Job(call, None, None, None))
        except OSError:
            call()  # It has to be done.

    def _hand_over(self, job: _Job[Any]) -> None:
        if self._closed or (self.busy >= self._threads and self._threads < self._most):
            name = f"{self._name}-{self._threads + 1}"
            try:
                threading.Thread(target=self._work, name=name, daemon=True).start()
                self._threads += 1
            except RuntimeError as error:  # The system has no more; those that there are do it, if any.
                if self._closed or not self._threads:
                    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        self.busy += 1
        self._jobs.put(job)
        if self._closed:
            # The others end before they come to this one.  It is the last word of a call that was
            # under way: to close its file.
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = job.call()
            except BaseException as failed:  # noqa: BLE001  (whoever waits is told, whatever it is)
                error = failed
            with suppress(RuntimeError):  # The loop is gone, and so is everybody who waits.
                self._loop.call_soon_threadsafe(self._done, job, result, error)
            # Or an idle thread would keep what its last call was about.
            del job, result, error

    def _done(self, job: _Job[Any], result: Any, error: BaseException | None) -> None:
        self.busy -= 1
        future = job.future
        if future is None or future.done():
            if error is None and job.undo is not None:
                job.undo(result)
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
        if job.over is not None:
            job.over()

    def close(self) -> None:
        """End the threads, each when its call is over.  Nobody waits for that.

        What is asked for afterwards is done all the same, each in a thread of its own.
        """
        self._closed = True
        for _ in range(self._threads):
            self._jobs.put(None)
