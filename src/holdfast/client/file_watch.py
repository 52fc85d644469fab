"""Waiting for something to appear on a server's host.

A server has one watch per connection, and forgets it with the connection.  So there is one at a
time, and it is asked for again on the next connection.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence

import msgspec

from holdfast.errors import HoldfastError
from holdfast.protocol.files import WATCH_MISSING, MissingChanged, WatchMissingParams
from holdfast.protocol.paths import uri_of
from holdfast.protocol.shapes import reader

from .calls import Answer
from .link import Link


class MissingFiles:
    """The watch of one client, if there is one."""

    def __init__(self, link: Link) -> None:
        self._link = link
        # Never the same again, so that late news of an old watch are told apart.
        self._numbers = itertools.count(1)
        self._watch: RemoteFileWatch | None = None

    async def watch(
        self, missing: Sequence[str], present: str | None, told: Callable[[], None]
    ) -> RemoteFileWatch | None:
        """See ``files.Files.watch_missing``."""
        if self._watch is not None:
            return None
        watch = self._watch = RemoteFileWatch(self, missing, present, told)
        self._ask(watch)
        try:
            watching = await watch.answered
        except BaseException:
            watch.stop()
            raise
        return watch if watching else None

    def _ask(self, watch: RemoteFileWatch) -> None:
        watch.number, watch.asking = next(self._numbers), True
        params = WatchMissingParams(watch.number, watch.missing, watch.present)
        watch.call = self._link.ask(WATCH_MISSING, params, watch.take)

    def notified(self, params: msgspec.Raw) -> None:
        number = _changed(params).watch_id
        if self._watch is not None and self._watch.number == number:
            self._watch.tell()

    def broke(self) -> None:
        # While it is asked for, that goes out again by itself.
        if self._watch is not None and not self._watch.asking:
            self._ask(self._watch)

    def over(self, watch: RemoteFileWatch) -> None:
        """Nobody waits for this one any more."""
        if self._watch is watch:
            self._watch = None
            self._link.forget(watch.call)

    def end(self, watch: RemoteFileWatch) -> None:
        """The server need not look any more: a newer watch, of nothing, takes the place of the last."""
        if self._watch is watch:
            self.over(watch)
            self._link.post(WATCH_MISSING, WatchMissingParams(next(self._numbers), []))


class RemoteFileWatch:
    """Somebody who waits.  Implements ``files.FileWatch``."""

    def __init__(
        self, owner: MissingFiles, missing: Sequence[str], present: str | None, told: Callable[[], None]
    ) -> None:
        self._owner = owner
        self._told = told
        self.missing = [uri_of(path) for path in missing]
        self.present = None if present is None else uri_of(present)
        self.number = 0
        self.call = 0
        self.asking = False
        self.answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether there is something to wait for."""

    def take(self, answer: Answer) -> None:
        """The server has it, or says that there is nothing to wait for."""
        self.asking = False
        if isinstance(answer, HoldfastError):
            self._fail(answer)
            return
        try:
            watching = WATCH_MISSING.read(answer).watching
        except msgspec.DecodeError:
            watching = False
        if self.answered.done():
            if not watching:
                self.tell()  # It has come, or gone, while there was no connection.
            return
        self.answered.set_result(watching)
        if not watching:
            self._owner.over(self)

    def _fail(self, error: HoldfastError) -> None:
        if self.answered.done():
            self.tell()
        else:
            self._owner.over(self)
            self.answered.set_exception(error)

    def tell(self) -> None:
        """Once, and then never again."""
        self._owner.over(self)
        self._told()

    def stop(self) -> None:
        self._owner.end(self)


_changed = reader(MissingChanged)
