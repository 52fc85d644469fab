"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

from .backends import LONG


def effort(most: int) -> settings:
    """``most`` examples in the long form of the tests, and a fifth of them otherwise.

    What the short form leaves out is in the cases that ``tests/fuzz/corpus`` keeps.
    """
    return settings(max_examples=most if LONG else max(10, most // 5), deadline=None)
