"""An event loop in a thread of its own, for programs that have none."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from holdfast.errors import OutOfTurn

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for any number of other threads.

    The thread is a daemon: a program that forgets to close this ends all the same.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._calls: set[_Call[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="holdfast", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        for call in self._calls.copy():
            call.cancel()
        self._loop.run_until_complete(self._finish())
        self._loop.close()
        # From here on no call can be handed over; whichever was and did not run is over.
        for call in self._calls.copy():
            call.give_up()

    async def _finish(self) -> None:
        await asyncio.gather(*(call.task for call in self._calls.copy() if call.task), return_exceptions=True)

    @property
    def is_ours(self) -> bool:
        """Whether it runs in this process: a fork takes no threads along."""
        return self._pid == os.getpid()

    def call(self, coroutine: Coroutine[object, object, T]) -> T:
        """The result of ``coroutine``, which runs in the loop.

        If the wait is interrupted, by Ctrl-C say, the coroutine is cancelled and waited for.

        Raises:
            OutOfTurn: It cannot run there: after a fork, after the end, or in the thread itself.
        """
        call = _Call(coroutine)
        try:
            self._hand_over(call)
            return call.done.result()
        except BaseException:
            if not call.done.done():
                self._loop.call_soon_threadsafe(call.cancel)
                wait([call.done])
            raise
        finally:
            self._calls.discard(call)

    def _hand_over(self, call: _Call[T]) -> None:
        if not self.is_ours:
            call.give_up()
            raise OutOfTurn("the host was opened before a fork: open another one in this process")
        if threading.current_thread() is self._thread:
            call.give_up()
            raise OutOfTurn("a blocking call in the thread that would do the work")
        self._calls.add(call)
        try:
            self._loop.call_soon_threadsafe(call.begin, self._loop)
        except RuntimeError:
            call.give_up()  # Its result says that it was.

    def stop(self) -> None:
        """End the loop and the thread.  Whoever still waits for a call is told.  May be called twice."""
        if self.is_ours and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _Call(Generic[T]):
    """One coroutine on its way to its result."""

    def __init__(self, coroutine: Coroutine[object, object, T]) -> None:
        self._coroutine = coroutine
        self.task: asyncio.Task[T] | None = None
        self.done: Future[T] = Future()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.done.done():
            self.task = loop.create_task(self._coroutine)
            self.task.add_done_callback(self._finish)

    def cancel(self) -> None:
        if self.task is None:
            self.give_up()
        else:
            self.task.cancel()

    def give_up(self) -> None:
        """It does not run, and will not."""
        if self.task is None and not self.done.done():
            self._coroutine.close()
            self.done.set_exception(OutOfTurn("the host was closed"))

    def _finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.done.set_exception(OutOfTurn("the host was closed"))
        elif (error := task.exception()) is not None:
            self.done.set_exception(error)
        else:
            self.done.set_result(task.result())
