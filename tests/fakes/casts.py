"""Recordings that somebody else writes, as a test reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fakes.server import eventually_sync


def lines(path: Path) -> list[str]:
    """The whole lines that are there."""
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def eventually_ended(path: Path, last: str = "x") -> list[str]:
    """All lines, once the last one is an end: a thread writes it a moment after the process has ended."""

    def is_over() -> bool:
        told = lines(path)
        return len(told) > 1 and json.loads(told[-1])[1] == last

    eventually_sync(is_over)
    return lines(path)


def events(path: Path, last: str = "x") -> list[tuple[str, Any]]:
    """Kind and text of each event; what was shown in several pieces is one."""
    found: list[tuple[str, Any]] = []
    for line in eventually_ended(path, last)[1:]:
        _, kind, text = json.loads(line)
        if found and found[-1][0] == kind in "oi":
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return found
