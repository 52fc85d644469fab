"""A run of the app dialects with a process and a clock that are moved by hand."""

from __future__ import annotations

from typing import Any

from holdfast.backend import Valve
from holdfast.dialects.app.conversation import Run
from holdfast.dialects.app.output import OutputRoom
from tests.fakes.app_talk import AppLoop, Pipes, terms
from tests.fakes.dialects import FakeProcess


class Scene:
    """A run, and what it told."""

    def __init__(self, process: FakeProcess | None = None, **options: Any) -> None:
        self.loop = AppLoop()
        self.process = process or Pipes()
        self.valve = Valve()
        self.told: list[object] = []
        self.run = Run(
            self.process,
            terms(**options),
            room=OutputRoom(1 << 30),
            valve=self.valve,
            loop=self.loop.loop,
            tell=lambda stream, data, full: self.told.append((stream.value, data, full)),
            on_over=self._on_over,
            on_lost=lambda: self.told.append("lost"),
        )

    def _on_over(self, run: Run) -> bool:
        self.told.append(("over", run.exit_code))
        return True  # The test may want to see what is kept.

    @property
    def pipes(self) -> Pipes:
        assert isinstance(self.process, Pipes)
        return self.process
