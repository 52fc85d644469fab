"""``fs/watchMissing``: one watch per connection, for what is not there yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.files import FileWatch

from . import file_messages as m

if TYPE_CHECKING:
    from .conversation import ExecConversation


class MissingWatch:
    """The watch of one connection.  A newer one takes the place of the last."""

    __slots__ = ("_latest", "_watch")

    def __init__(self) -> None:
        self._latest = 0
        self._watch: FileWatch | None = None

    def begin(self, number: int) -> bool:
        """End the last watch for one of this number; False if that is not a newer one."""
        if number <= self._latest:
            return False
        self.stop()
        self._latest = number
        return True

    def is_latest(self, number: int) -> bool:
        return number == self._latest

    def put(self, watch: FileWatch) -> None:
        self._watch = watch

    def stop(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()


async def watch_missing(talk: ExecConversation, params: m.WatchMissing) -> m.WatchMissingResult:
    """Be told once, when one of these paths, or a missing parent of one, appears."""
    state = talk.files.missing
    if not state.begin(params.watch_id) or not params.missing:
        return m.WatchMissingResult(watching=False)
    news = _News(talk, params.watch_id)
    watch = await talk.backend.files.watch_missing(params.missing, params.present, news.told)
    if watch is None:
        return m.WatchMissingResult(watching=False)
    if news.early or not state.is_latest(params.watch_id):
        # It has come while we were getting ready, or a newer watch has: the client has to look again.
        watch.stop()
        return m.WatchMissingResult(watching=False)
    news.ready = True
    state.put(watch)
    return m.WatchMissingResult(watching=True)


class _News:
    """What a watch tells: nothing before the answer that there is one."""

    __slots__ = ("_number", "_talk", "early", "ready")

    def __init__(self, talk: ExecConversation, number: int) -> None:
        self._talk = talk
        self._number = number
        self.early = False
        self.ready = False

    def told(self) -> None:
        if self.ready:
            self._talk.client.send(b'{"method":"fs/missingChanged","params":{"watchId":%d}}' % self._number)
        else:
            self.early = True
