"""Undoes the masking of WebSocket payloads (pure).

A compiled routine does it, out of a package that takes as long to import as half
our own code.  Until it is wanted, or for the first small messages, integers do.
"""

from __future__ import annotations

from collections.abc import Callable

_SMALL = 512
"""Bytes from which the compiled routine is worth its import at once."""

Unmask = Callable[[memoryview, bytes], bytes]


def _with_integers(data: memoryview, key: bytes) -> bytes:
    size = len(data)
    if size > _SMALL:
        load()
        return unmask(data, key)
    mask = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(mask, "little")).to_bytes(size, "little")


unmask: Unmask = _with_integers
"""The data as it was before the client masked it.  Look it up at every use: ``load`` replaces it."""


def load() -> None:
    """Have the compiled routine from now on."""
    global unmask
    from websockets.speedups import apply_mask

    unmask = apply_mask
