"""Undoes the masking of WebSocket payloads (pure)."""

from __future__ import annotations

_SMALL = 512
"""Below this, plain integers are as fast as the library's compiled routine is to load."""


def unmask(data: memoryview, key: bytes) -> bytes:
    """``data`` as it was before the client masked it."""
    size = len(data)
    if size > _SMALL:
        # Loaded with the first large message: the package takes a while to import,
        # and many servers only ever see small ones.
        from websockets.speedups import apply_mask

        return apply_mask(data, key)
    mask = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(mask, "little")).to_bytes(size, "little")
