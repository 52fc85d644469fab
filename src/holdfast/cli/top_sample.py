"""What ``top`` knows of the processes of a server at one moment: rows, rates, their order (pure)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.model import CurrentUsage, Listing
from holdfast.value import value

from .explain import state_of
from .report import plain
from .show import is_live, listing_document


@value
class Sample:
    """What a server said of its processes, and when."""

    at: float
    """By a clock that does not jump; rates are computed with it."""
    processes: Sequence[Listing]
    usage: Mapping[str, CurrentUsage] | None
    """By identifier; None if the server is older than the request."""


@value
class ProcessRow:
    """A process, as ``top`` shows it."""

    listing: Listing
    name: str
    """Without characters that could control a terminal, as are the other texts."""
    state: str
    command: str
    age: float
    """Seconds since it was asked for."""
    usage: CurrentUsage | None = None
    cpu: float | None = None
    """Processor time per time, in percent of one processor; None if it is not known."""
    rate: float | None = None
    """Bytes of output per second; None if it is not known."""

    @property
    def memory(self) -> int | None:
        """Resident bytes of the whole tree."""
        return None if self.usage is None else self.usage.resident_bytes


# From samples to rows.


def rows_of(sample: Sample, before: Sample | None, *, now: float, ended: bool = False) -> list[ProcessRow]:
    """Return a row for each process.

    Args:
        before: An earlier sample; without one there are no rates.
        now: The time in seconds since 1970.
        ended: Also those that have ended.
    """
    return [_row(listing, sample, before, now) for listing in sample.processes if ended or is_live(listing)]


def _row(listing: Listing, sample: Sample, before: Sample | None, now: float) -> ProcessRow:
    usage = None if sample.usage is None else sample.usage.get(listing.identifier)
    cpu, rate = _rates(listing, sample, before)
    return ProcessRow(
        listing,
        plain(listing.name),
        _state(listing),
        plain(shlex.join(listing.argv)),
        max(0.0, now - listing.started),
        usage,
        cpu,
        rate,
    )


def _state(listing: Listing) -> str:
    # Not every server can tell this.
    if is_live(listing) and getattr(listing, "waiting_for_input", None):
        return "waiting"
    return plain(state_of(listing.state, listing.outcome, listing.exit_code))


def _rates(listing: Listing, sample: Sample, before: Sample | None) -> tuple[float | None, float | None]:
    """Return percent of a processor, and bytes of output per second."""
    if before is None or sample.usage is None or before.usage is None:
        return None, None
    now, then = sample.usage.get(listing.identifier), before.usage.get(listing.identifier)
    if now is None or then is None:
        return None, None
    # A server may tell the same figures twice, if it has looked only once.
    seconds = (sample.at - now.age) - (before.at - then.age)
    spent, said = now.cpu_us - then.cpu_us, now.output_bytes - then.output_bytes
    # Less than before: from an older server, on which another process has the identifier by now.
    if seconds <= 0 or spent < 0 or said < 0:
        return None, None
    return spent / seconds / 10_000, said / seconds


# Their order, and which of them are shown.

SORT_KEYS: dict[str, Callable[[ProcessRow], Any]] = {
    "cpu": lambda row: -(row.cpu or 0.0),
    "memory": lambda row: -(row.memory or 0),
    "output": lambda row: -(row.rate or 0.0),
    "age": lambda row: row.age,
    "name": lambda row: row.name,
    "state": lambda row: row.state,
}
"""What rows can be sorted by: the largest first, the youngest first, names from A to Z."""


def ordered(rows: Sequence[ProcessRow], key: str, *, backwards: bool, words: str) -> list[ProcessRow]:
    """Return the rows in which all of ``words`` are, in the order of one of ``SORT_KEYS``."""
    wanted = words.lower().split()
    chosen = [
        row for row in rows if all(word in f"{row.name} {row.state} {row.command}".lower() for word in wanted)
    ]
    # By name first: of two that are equal, the same one is always above.
    chosen.sort(key=lambda row: row.name)
    return sorted(chosen, key=SORT_KEYS[key], reverse=backwards)


# JSON.


def row_document(row: ProcessRow) -> Mapping[str, Any]:
    """Describe a row for ``top -o json``: as ``ps -o json`` does, and what the process uses."""
    usage = row.usage
    return {
        **listing_document(row.listing),
        "cpuPercent": None if row.cpu is None else round(row.cpu, 1),
        "cpuMs": None if usage is None else usage.cpu_us // 1000,
        "residentBytes": None if usage is None else usage.resident_bytes,
        "processes": None if usage is None else usage.processes,
        "outputBytes": None if usage is None else usage.output_bytes,
        "outputBytesPerSecond": None if row.rate is None else round(row.rate),
    }
