"""One stream's output up to its cap (pure)."""

from __future__ import annotations


class Capped:
    """Counts a stream's bytes and cuts them at the cap; what comes after is not wanted."""

    __slots__ = ("_cap", "_pieces", "_size", "full")

    def __init__(self, cap: int | None) -> None:
        """Without a cap nothing is cut."""
        self._cap = cap
        self._size = 0
        self._pieces: list[bytes] = []
        self.full = False
        """Whether the cap is reached; also when the output ended right there."""

    def cut(self, data: bytes) -> tuple[bytes, bool]:
        """As much of ``data`` as fits, and whether the cap is reached with it."""
        if self._cap is not None and len(data) >= self._cap - self._size:
            data = data[: self._cap - self._size]
            self.full = True
        self._size += len(data)
        return data, self.full

    def keep(self, data: bytes) -> bool:
        """Keep as much of ``data`` as fits; say whether the cap is reached with it."""
        data, full = self.cut(data)
        self._pieces.append(data)
        return full

    def kept(self) -> bytes:
        """Everything that was kept."""
        return b"".join(self._pieces)
