"""Signals that ask a command to end, for commands that have something to take away first."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def cancelled_by_signals() -> Iterator[list[int]]:
    """Cancel the current task when a signal asks us to end; the list that is yielded has its number then.

    For SIGINT asyncio does this itself.
    """
    received: list[int] = []
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def on_signal(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in _END_SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield received
    finally:
        for number in _END_SIGNALS:
            loop.remove_signal_handler(number)
