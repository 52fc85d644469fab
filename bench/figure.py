"""One number of one run."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True)
class Figure:
    """What was measured, and which direction is better."""

    name: str
    value: float
    unit: str
    higher_is_better: bool = False
