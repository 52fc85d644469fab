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
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Job(Generic[T]):
    """A call, and who is to be told of it."""

    __slots__ = ("call", "client", "future", "over", "undo")

    def __init__(
        self,
        call: Callable[[], T],
        future: asyncio.Future[T] | None = None,
        undo: Callable[[T], None] | None = None,
        over: Callable[[], None] | None = None,
        client: object = None,
    ) -> None:
        """Without ``future`` nobody waits for it."""
        self.call = call
        self.future = future
        self.undo = undo
        self.over = over
        self.client = client


class _Arrival:
    """What a call led to, on its way to the loop.  A closed loop takes nothing: then it is undone."""

    __slots__ = ("_error", "_job", "_result")

    def __init__(self, job: _Job[Any], result: Any, error: BaseException | None) -> None:
        self._job: _Job[Any] | None = job
        self._result = result
        self._error = error

    def deliver(self) -> None:
        """Give the result to whoever waits, or undo it.  Does nothing the second time."""
        job, self._job = self._job, None
        if job is None:
            return
        future = job.future
        if future is None or future.done():
            self._undo(job)
        elif self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self._result)
        if job.over is not None:
            job.over()

    def __del__(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            self._undo(job)
            if job.over is not None:
                job.over()

    def _undo(self, job: _Job[Any]) -> None:
        if self._error is None and job.undo is not None:
            job.undo(self._result)


class Workers:
    """A bounded number of threads, made when they are needed."""

    def __init__(self, most: int, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._most = most
        self._loop = loop
        self._name = name
        # Calls that no thread has begun, by client.  Under the condition, whose lock nobody holds for long.
        self._jobs: OrderedDict[object, OrderedDict[_Job[Any], None]] = OrderedDict()
        self._news = threading.Condition()
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
        client: object = None,
    ) -> T:
        """The result of ``call``, from another thread.

        Whoever is cancelled does not stop a call that has begun.  ``undo`` is then given its
        result, for instance to close it.  A call that has not begun never will.  ``over`` is
        called when the call is over, or will not be made, in any case.  Calls of several
        clients take turns, however many one of them makes.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        job = _Job(call, future, undo, over, client)
        self._hand_over(job)
        try:
            return await future
        except BaseException:
            self._give_up(job, future)
            raise
        finally:
            # An error leads to this frame, and the future to the error: nobody would free them at once.
            del job, future

    def _give_up(self, job: _Job[T], future: asyncio.Future[T]) -> None:
        """Nobody waits any more, or the call has failed."""
        if not future.cancel() and not future.cancelled():
            # The cancellation came between the result and whoever waited for it.
            if future.exception() is None and job.undo is not None:
                job.undo(future.result())
        elif self._take_back(job):
            self.busy -= 1
            if job.over is not None:
                job.over()

    def begin(self, call: Callable[[], T], told: Callable[[T | None, BaseException | None], object]) -> None:
        """Have ``told`` called on the loop with the result of ``call``, or with its error.

        Raises:
            OSError: The system has no thread for it.
        """
        future: asyncio.Future[T] = self._loop.create_future()

        def done(future: asyncio.Future[T]) -> None:
            error = future.exception()
            told(None if error is not None else future.result(), error)

        self._hand_over(_Job(call, future))
        future.add_done_callback(done)

    def post(self, call: Callable[[], None]) -> None:
        """Have something done, and do not wait for it.  It must not raise."""
        try:
            self._hand_over(_Job(call))
        except OSError:
            call()  # It has to be done.

    def _hand_over(self, job: _Job[Any]) -> None:
        with self._news:
            self._jobs.setdefault(job.client, OrderedDict())[job] = None
            self._news.notify()
        # After the end the others may be gone before they come to this one.  It is the last word of a call
        # that was under way: to close its file.
        if self._closed or (self.busy >= self._threads and self._threads < self._most):
            name = f"{self._name}-{self._threads + 1}"
            try:
                threading.Thread(target=self._work, name=name, daemon=True).start()
                self._threads += 1
            except RuntimeError as error:  # The system has no more; those that there are do it, if any.
                if (self._closed or not self._threads) and self._take_back(job):
                    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        self.busy += 1

    def _take_back(self, job: _Job[Any]) -> bool:
        """Whether the call has not begun; then it never will."""
        with self._news:
            waiting = self._jobs.get(job.client)
            if waiting is None or job not in waiting:
                return False
            del waiting[job]
            if not waiting:
                del self._jobs[job.client]
            return True

    def _work(self) -> None:
        while (job := self._next()) is not None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = job.call()
            except BaseException as failed:  # noqa: BLE001  (whoever waits is told, whatever it is)
                error = failed
            arrival = _Arrival(job, result, error)
            with suppress(RuntimeError):  # The loop is gone, and so is everybody who waits.
                self._loop.call_soon_threadsafe(self._on_arrival, arrival)
            # Or an idle thread would keep what its last call was about.
            del job, result, error, arrival

    def _next(self) -> _Job[Any] | None:
        """The next call, when there is one; None at the end."""
        with self._news:
            while not self._jobs:
                if self._closed:
                    return None
                self._news.wait()
            client, waiting = next(iter(self._jobs.items()))
            job, _ = waiting.popitem(last=False)
            if waiting:
                self._jobs.move_to_end(client)
            else:
                del self._jobs[client]
            return job

    def _on_arrival(self, arrival: _Arrival) -> None:
        self.busy -= 1
        arrival.deliver()

    def close(self) -> None:
        """End the threads, each when its call is over.  Nobody waits for that.

        What is asked for afterwards is done all the same, each in a thread of its own.
        """
        with self._news:
            self._closed = True
            self._news.notify_all()
