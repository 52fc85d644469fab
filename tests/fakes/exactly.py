"""A look at a message that leaves nothing out."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def exactly(value: Any, kind: type[T]) -> T:
    """The value as a ``kind``; fails if it has a member too many or too few."""
    shape = msgspec.convert(value, kind)
    # Decoding passes over what it does not know, and fills in what is missing.
    assert msgspec.to_builtins(shape) == value
    return shape
