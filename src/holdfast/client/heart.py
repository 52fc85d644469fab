"""Looks after a connection that is silent."""

from __future__ import annotations

import asyncio

from .channel import Channel


class Heart:
    """Asks for a sign of life after a silence, and cuts a connection that gives none."""

    def __init__(self, channel: Channel, interval: float, loop: asyncio.AbstractEventLoop) -> None:
        """
        Args:
            interval: Seconds of silence before it is asked, and as many again to answer.
        """
        self._channel = channel
        self._interval = interval
        self._loop = loop
        self._pinged = channel.heard
        self._timer = loop.call_later(interval / 2, self._beat)

    def _beat(self) -> None:
        now, heard = self._loop.time(), self._channel.heard
        if now - heard >= self._interval:
            if self._pinged <= heard:
                # Asked first, however long it was silent: it may have been us who did not listen.
                self._pinged = now
                self._channel.ping()
            elif now - self._pinged >= self._interval:
                self._channel.cut(f"nothing was heard for {now - heard:.0f} seconds")
                return
        self._timer = self._loop.call_later(self._interval / 2, self._beat)

    def stop(self) -> None:
        """The connection is gone.  May be called twice."""
        self._timer.cancel()
