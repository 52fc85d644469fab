"""Events of all processes of the engine in this program."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.announcing import Announcer

if TYPE_CHECKING:
    from holdfast.process_events import EventSink

    from .embedded_process import EmbeddedProcess


class EmbeddedEvents:
    """Tells what happens to the processes of one local host.  Implements ``place.EventSource``."""

    def __init__(self, loop: asyncio.AbstractEventLoop, processes: Mapping[str, EmbeddedProcess]) -> None:
        """``processes`` are those of the host, by identifier, at any time."""
        self._announcer = Announcer(loop)
        self._processes = processes
        self._is_heard = False

    async def subscribe(self, sink: EventSink) -> None:
        self._announcer.subscribe(sink)
        for each in self._processes.values():
            if each.exit is None:
                self._announcer.follow(each.identifier, each.name, each.process)
        self._is_heard = True

    def unsubscribe(self, sink: EventSink) -> None:
        self._is_heard = self._announcer.unsubscribe(sink)

    def started(self, named: EmbeddedProcess) -> None:
        """A process of the host runs."""
        if self._is_heard:
            about = named.listing()
            self._announcer.started(
                named.identifier,
                named.name,
                named.process,
                argv=about.argv,
                terminal=about.terminal,
                kept=about.kept,
            )

    def exited(self, identifier: str) -> None:
        """A process of the host has ended."""
        if self._is_heard and (named := self._processes.get(identifier)) is not None:
            end = named.exit
            if end is not None:
                self._announcer.exited(identifier, named.name, named.process, end)

    def close(self) -> None:
        """There will be no more events."""
        self._is_heard = False
        self._announcer.close()
