"""What may have to wait elsewhere and never does on this host (pure)."""

from __future__ import annotations

from holdfast.backend import KeptProcess
from holdfast.model import Size, WriteStatus


class Prompt:
    """The half of ``backend.Process`` that is asked for at once here."""

    __slots__ = ()

    async def close_stdin(self: KeptProcess, *, write_id: str | None = None) -> WriteStatus:
        return self.close_stdin_now(write_id=write_id)

    async def resize(self: KeptProcess, size: Size) -> None:
        self.resize_now(size)

    async def signal(self: KeptProcess, number: int, *, tree: bool = False) -> None:
        self.signal_now(number, tree=tree)
