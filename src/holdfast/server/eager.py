"""Runs a coroutine as far as it goes without waiting.

Most requests are answered without any wait.  Driving their coroutine here costs
a quarter of a microsecond, a task for each costs fifty times that.  Only what
really waits becomes a task.  (From Python 3.12 on, ``asyncio`` calls this eager.)
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Done(Exception):
    """The coroutine has returned ``value`` without waiting."""

    def __init__(self, value: Any) -> None:
        self.value = value


def run_ahead(coroutine: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Run ``coroutine`` up to its first wait; return what is left of it, to be awaited in a task.

    There is no current task up to then, so nothing that needs one, like
    ``asyncio.timeout``, can be used before the first wait.

    Raises:
        Done: It did not wait.
        Exception: It raised before it waited.
    """
    try:
        waiting = coroutine.send(None)
    except StopIteration as stop:
        raise Done(stop.value) from None
    return _rest(coroutine, waiting)


async def _rest(coroutine: Coroutine[Any, Any, T], waiting: Any) -> T:
    return await _carry_on(coroutine, waiting)


@types.coroutine
def _carry_on(coroutine: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine that already waits for ``waiting``."""
    while True:
        try:
            value = yield waiting
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # noqa: BLE001  (it is passed on, whatever it is)
            step, argument = coroutine.throw, error
        else:
            step, argument = coroutine.send, value
        try:
            waiting = step(argument)
        except StopIteration as stop:
            result: T = stop.value
            return result
