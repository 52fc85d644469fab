"""What ended processes have left behind, for as long as it may stay."""

from __future__ import annotations

from holdfast.backend import KeptProcess
from holdfast.model import Leftovers


class Strays:
    """Ended processes whose clients have forgotten them, and whose leftovers must not be."""

    __slots__ = ("_processes", "_tidy_at")

    def __init__(self) -> None:
        self._processes: list[KeptProcess] = []
        self._tidy_at = 16

    def keep(self, process: KeptProcess) -> None:
        """Remember ``process``, if it has left anybody behind."""
        if not process.has_leftovers:
            return
        if len(self._processes) >= self._tidy_at:
            self._processes = [kept for kept in self._processes if kept.has_leftovers]
            self._tidy_at = 2 * len(self._processes) + 16
        self._processes.append(process)

    def end(self) -> None:
        """End them all."""
        for process in self.take():
            process.forget(Leftovers.END)

    def take(self) -> list[KeptProcess]:
        """Give them to somebody else, who ends them."""
        processes, self._processes = self._processes, []
        return processes
