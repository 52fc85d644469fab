"""An event loop in a thread of its own, for programs without one."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from holdfast.errors import OutOfTurn

T = TypeVar("T")

_SHUTTING_DOWN = "the interpreter is shutting down"


class LoopThread:
    """Runs coroutines for any number of other threads.

    The thread is a daemon, so a program that does not stop it can exit.  When the interpreter shuts down,
    daemon threads are stopped wherever they are, and no thread can be started.  Calls raise an error then.
    """

    # Finalizers may run when the globals of this module are gone; attributes are still there.
    _is_shutting_down = staticmethod(sys.is_finalizing)
    _OutOfTurn = OutOfTurn

    def __init__(self) -> None:
        """Start the thread.

        Raises:
            OutOfTurn: The interpreter is shutting down.
        """
        self._check_interpreter()
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._calls: set[_ThreadCall[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="holdfast", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._loop.close()
            if "shutdown" in str(error):  # Newer versions refuse threads before ``is_finalizing`` is true.
                raise OutOfTurn(_SHUTTING_DOWN) from error
            raise

    def _check_interpreter(self) -> None:
        if self._is_shutting_down():
            raise self._OutOfTurn("the interpreter is shutting down")

    def _run(self) -> None:
        self._loop.run_forever()
        for call in self._calls.copy():
            call.cancel()
        self._loop.run_until_complete(self._finish())
        self._loop.close()
        # From here on no call is accepted.  One that was accepted and did not run never will.
        for call in self._calls.copy():
            call.fail_unstarted()

    async def _finish(self) -> None:
        await asyncio.gather(*(call.task for call in self._calls.copy() if call.task), return_exceptions=True)

    @property
    def is_ours(self) -> bool:
        """Whether it runs in this process: threads do not survive a fork."""
        return self._pid == os.getpid()

    def call(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run ``coroutine`` in the loop, and return its result.

        If the wait is interrupted, for example by Ctrl-C, the coroutine is cancelled and awaited.

        Raises:
            OutOfTurn: It cannot run: after a fork, after ``stop``, in the thread of the loop, or while
                the interpreter is shutting down.
        """
        if self._is_shutting_down():
            coroutine.close()
            self._check_interpreter()
        call = _ThreadCall(coroutine)
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

    def _hand_over(self, call: _ThreadCall[T]) -> None:
        if not self.is_ours:
            call.fail_unstarted()
            raise OutOfTurn("the host was opened before a fork: open another one in this process")
        if threading.current_thread() is self._thread:
            call.fail_unstarted()
            raise OutOfTurn("a blocking call in the thread that would do the work")
        self._calls.add(call)
        try:
            self._loop.call_soon_threadsafe(call.begin, self._loop)
        except RuntimeError:
            call.fail_unstarted()  # Its result is an error.

    def stop(self) -> None:
        """End the loop and the thread.  Pending calls raise an error.  May be called twice."""
        if self._is_shutting_down():
            return  # The interpreter has stopped the thread, and it never ends.
        if self.is_ours and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _ThreadCall(Generic[T]):
    """One coroutine, from the call to its result."""

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
            self.fail_unstarted()
        else:
            self.task.cancel()

    def fail_unstarted(self) -> None:
        """Fail with an error, if the coroutine has not started to run."""
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
