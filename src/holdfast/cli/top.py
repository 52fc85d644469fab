"""The command ``top``: the processes of a server as a table that is kept up to date."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Coroutine

from holdfast.api.host import Host
from holdfast.errors import HoldfastError, LinkLost, Unsupported

from .explain import command, explain
from .main import load, parse
from .options import Parser, add_server, wants_json
from .report import ExitCode, Failure, in_colour, plain, tell
from .show import tell_json
from .target import perform, url_of
from .terminal import is_terminal, raw, screen_size
from .top_keys import keys_in
from .top_sample import Sample, ordered, row_document, rows_of
from .top_screen import TableScreen
from .top_table import table_lines
from .top_view import Verb, View, Wish

_INTERVAL = 2.0
"""Seconds between two looks."""

_ONCE = 1.0
"""Seconds between the two looks of ``--once``: few, because somebody waits."""

_GRACE = 5.0
"""Seconds that a process has to end by itself, as with ``holdfast kill``."""

_NOTICE = 5.0
"""Seconds for which it is shown what has become of a request."""

_SMALLEST = 24, 80
"""The size of a terminal that does not tell its size."""


def top(arguments: argparse.Namespace) -> int:
    """Show the table until the user leaves it, or print it once."""
    if arguments.once or wants_json(arguments):
        return perform(arguments, lambda host: _print_once(host, arguments))
    if not (is_terminal(0) and is_terminal(1)) or os.environ.get("TERM", "dumb") == "dumb":
        raise Failure("top needs a terminal that it can draw on; --once prints the table without one")
    url = url_of(arguments)
    view = View(sort=arguments.sort, words=arguments.filter, ended=arguments.all, where=plain(url or ""))
    while True:
        # What another command does on the terminal needs an event loop of its own.
        live = LiveTable(view, arguments.interval or _INTERVAL)
        code = perform(arguments, live.run, on_connection_change=live.on_connection_change)
        if live.wish is None:
            return code
        _visit(arguments, live.wish)


# Once.


async def _print_once(host: Host, arguments: argparse.Namespace) -> int:
    before = await take_sample(host)
    sample = before
    if before.usage:
        # Who is a moment late does not matter: the rates are computed with the time that has passed.
        await _pause(arguments.interval or _ONCE)
        sample = await take_sample(host)
    rows = rows_of(sample, before, now=time.time(), ended=arguments.all)
    rows = ordered(rows, arguments.sort, backwards=False, words=arguments.filter)
    if wants_json(arguments):
        tell_json([row_document(row) for row in rows])
    else:
        size = screen_size() if is_terminal(1) else None
        tell(*table_lines(rows, None if size is None else size[1]))
    return 0


async def take_sample(host: Host) -> Sample:
    """Ask a server for its processes, and what they use."""
    listings = await host.processes()
    try:
        usage = {each.identifier: each for each in await host.usage()}
    except Unsupported:
        return Sample(time.monotonic(), listings, None)
    return Sample(time.monotonic(), listings, usage)


async def _pause(seconds: float) -> None:
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(over, seconds)


# Kept up to date.


class LiveTable:
    """The table on the terminal, from one visit to another command to the next."""

    def __init__(self, view: View, interval: float) -> None:
        self._view = view
        self._interval = interval
        self._screen = TableScreen(1, colours=in_colour(sys.stdout), encoding=sys.stdout.encoding or "utf-8")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: asyncio.Future[int] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sample: Sample | None = None
        self._before: Sample | None = None
        self._is_lost = False
        self._message = ""
        self._message_until = 0.0
        self.wish: Wish | None = None
        """The command for which the user has left the table; None if the user has left for good."""

    async def run(self, host: Host) -> int:
        """Show the table until the user leaves it; return the exit code."""
        self._loop = loop = asyncio.get_running_loop()
        self._done = loop.create_future()
        signals = (signal.SIGTERM, signal.SIGHUP)
        with raw(0):
            try:
                self._screen.enter()
                self._draw()
                loop.add_reader(0, self._on_keys, host)
                for number in signals:
                    loop.add_signal_handler(number, self._finish, 128 + number)
                for number in (signal.SIGWINCH, signal.SIGCONT):
                    loop.add_signal_handler(number, self._on_size)
                self._begin(self._watch(host))
                return await self._done
            finally:
                loop.remove_reader(0)
                for number in (*signals, signal.SIGWINCH, signal.SIGCONT):
                    loop.remove_signal_handler(number)
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
                self._screen.leave()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_finished)

    def _on_finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and self._done is not None and not self._done.done():
            self._done.set_exception(error)

    def _finish(self, code: int) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(code)

    # What the server says.

    async def _watch(self, host: Host) -> None:
        while True:
            sample = await take_sample(host)
            self._before, self._sample = self._sample, sample
            self._show_rows()
            # Soon again after the first one: there are no rates before.
            await _pause(min(self._interval, 0.5) if self._before is None else self._interval)

    def _show_rows(self) -> None:
        if self._sample is not None:
            rows = rows_of(self._sample, self._before, now=time.time(), ended=self._view.ended)
            self._view.update(rows)
        self._draw()

    def on_connection_change(self, connected: bool) -> None:  # noqa: FBT001  (a callback with one fact)
        """Take note that the connection was lost or restored."""
        if connected and self._is_lost:
            self._say("connected again")
        self._is_lost = not connected
        self._draw()

    # What the user does.

    def _on_keys(self, host: Host) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(0, 4096)
        if not data:
            self._finish(128 + signal.SIGHUP)  # The terminal is gone.
        for key in keys_in(data):
            wish = self._view.press(key)
            if wish is not None:
                self._grant(wish, host)
        self._show_rows()

    def _grant(self, wish: Wish, host: Host) -> None:
        match wish.verb:
            case Verb.LEAVE:
                self._finish(0)
            case Verb.INTERRUPT:
                self._finish(ExitCode.INTERRUPTED)
            case Verb.REDRAW:
                self._screen.forget()
            case Verb.END:
                self._begin(self._end(host, wish))
            case Verb.ATTACH | Verb.LOG:
                self.wish = wish
                self._finish(0)

    async def _end(self, host: Host, wish: Wish) -> None:
        self._say(f"ending {wish.name}...")
        try:
            process = await host.place.find(wish.identifier)
            ended = await process.end(grace=_GRACE)
        except LinkLost:
            raise
        except HoldfastError as error:
            self._say(str(explain(error)))
            return
        left = ", ".join(map(str, ended.survivors))
        self._say(f"{wish.name}: these could not be ended: {left}" if left else f"{wish.name} was ended")

    # The screen.

    def _say(self, message: str) -> None:
        self._message, self._message_until = message, time.monotonic() + _NOTICE
        self._draw()

    def _on_size(self) -> None:
        self._screen.forget()
        self._draw()

    def _draw(self) -> None:
        if self._is_lost:
            self._view.notice = "connection lost, trying again..."
        else:
            self._view.notice = self._message if time.monotonic() < self._message_until else ""
        self._screen.draw(self._view.lines(*(screen_size() or _SMALLEST)))


# Another command, and back.


def _visit(arguments: argparse.Namespace, wish: Wish) -> None:
    """Run ``attach`` or ``logs`` on the terminal until the user leaves it."""
    options = ["-f", "--tail", str((screen_size() or _SMALLEST)[0])] if wish.verb is Verb.LOG else []
    other = parse([wish.verb.value, *options, "--", wish.identifier])
    vars(other).update({name: vars(arguments)[name] for name in _server_options()})
    with contextlib.suppress(KeyboardInterrupt):
        try:
            tell(f"holdfast: {command(wish.verb.value, wish.name)}")
            load(other.run)(other)
        except Failure as failure:
            tell(f"holdfast: {failure}")
    tell("", "holdfast: press a key to go back to the table")
    sys.stdout.flush()
    with raw(0):
        os.read(0, 4096)


def _server_options() -> list[str]:
    """Return the names of all options that choose a server and say how to reach it."""
    parser = Parser(add_help=False)
    add_server(parser)
    return [action.dest for action in parser._actions]
