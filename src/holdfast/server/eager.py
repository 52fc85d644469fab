"""Runs a coroutine as far as it goes without waiting.

Most requests are answered without any wait.  Driving their coroutine here costs
a quarter of a microsecond, a task for each costs fifty times that.  Only what
really waits becomes a task.  (From Python 3.12 on, ``asyncio`` calls this eager.)
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


_ASKED = object()
"""In place of what a coroutine waits for, once that was passed on."""


class Rest(Coroutine[Any, Any, T]):
    """What is left of a coroutine that waits.  To be awaited once, in a task, or to be that task's coroutine.

    As a task's coroutine it has begun, unlike others: if the task is cancelled before its first
    step, the coroutine is told so where it waits, and cleans up.

    What is waited for is let go of before the coroutine goes on, and so is an error once it was
    passed on.  An error that gets out leads to the frames here; if they led back to it, directly or
    by a future that holds it, everything on the way would stay until somebody looks for circles.
    """

    __slots__ = ("_coroutine", "_waiting")

    def __init__(self, coroutine: Coroutine[Any, Any, T], waiting: Any) -> None:
        self._coroutine = coroutine
        self._waiting = waiting

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, waiting = self._coroutine, self._waiting
        self._waiting = _ASKED
        while True:
            try:
                value = yield waiting
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001  (it is passed on, whatever it is)
                step: Any = coroutine.throw
                value = error
            else:
                step = coroutine.send
            waiting = None
            try:
                waiting = step(value)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                value = None

    # Implements ``Coroutine``, as a task uses it.

    def send(self, value: Any) -> Any:
        waiting, self._waiting = self._waiting, _ASKED
        return self._coroutine.send(value) if waiting is _ASKED else waiting

    def throw(self, *error: Any) -> Any:
        self._waiting = _ASKED
        try:
            return self._coroutine.throw(*error)
        finally:
            del error

    def close(self) -> None:
        self._coroutine.close()


def run_ahead(coroutine: Coroutine[Any, Any, T]) -> T | Rest[T]:
    """Run ``coroutine`` up to its first wait: its result, or what is left of it.

    There is no current task up to then, so nothing that needs one, like
    ``asyncio.timeout``, can be used before the first wait.
    """
    try:
        waiting = coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    return Rest(coroutine, waiting)
