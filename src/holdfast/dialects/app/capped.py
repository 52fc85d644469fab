"""The output of one stream up to its cap (pure)."""

from __future__ import annotations


class OutputRoom:
    """Bytes that all output which is kept for results shares."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size


class Capped:
    """The output of one stream up to its cap, the number of bytes that an app client wants."""

    __slots__ = ("_cap", "_data", "_room", "_size", "crowded", "full")

    def __init__(self, cap: int | None, room: OutputRoom) -> None:
        """Without a cap nothing is cut that is not kept."""
        self._cap = cap
        self._room = room
        self._size = 0
        self._data = bytearray()  # Not a list of pieces: a child may write one byte at a time.
        self.full = False
        """Whether the cap is reached; also when the output ended right there."""
        self.crowded = False
        """Whether it was cut below its cap because others took the room."""

    def cut(self, data: bytes) -> tuple[bytes, bool]:
        """As much of ``data`` as fits, and whether the cap is reached with it."""
        if self._cap is not None and len(data) >= self._cap - self._size:
            data = data[: self._cap - self._size]
            self.full = True
        self._size += len(data)
        return data, self.full

    def keep(self, data: bytes) -> bool:
        """Keep as much of ``data`` as fits; say whether no more does."""
        data, _ = self.cut(data)
        if len(data) > self._room.left:
            data = data[: self._room.left]
            self.full = self.crowded = True
        self._room.left -= len(data)
        self._data += data
        return self.full

    @property
    def data(self) -> bytes | bytearray:
        """Everything that was kept.  Not to be changed."""
        return self._data

    def give_back(self) -> None:
        """Leave the room to others; the result is made, and nothing is kept any more."""
        self._room.left += len(self._data)
        self._data = bytearray()
