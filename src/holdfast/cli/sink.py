"""Where the output of a followed process goes: to our standard output and standard error."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from holdfast.model import Chunk, Stream

from .show import chunk_document, json_line
from .streams import DescriptorWriter


class OutputSink:
    """Writes the output of a process to our standard output and standard error, or as lines of JSON."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, json: bool) -> None:
        """With ``json``, both streams go to standard output, a line for each chunk."""
        self._out = DescriptorWriter(1, loop)
        self._err = self._out if json else DescriptorWriter(2, loop)
        self._json = json

    @property
    def busy(self) -> bool:
        """Whether a write waits for the reader of our output."""
        return self._out.busy or self._err.busy

    async def write_chunk(self, chunk: Chunk) -> None:
        """Write a chunk to the stream that it belongs to; return when the system has it.

        Raises:
            BrokenPipeError: The reading end is closed.
        """
        if self._json:
            await self.write_document(chunk_document(chunk))
        elif chunk.stream is Stream.STDERR:
            await self._err.write(chunk.data)
        else:
            await self._out.write(chunk.data)

    async def write_document(self, document: Mapping[str, Any]) -> None:
        """Write a line of JSON to standard output."""
        await self._out.write(json_line(document).encode() + b"\n")

    def close(self) -> None:
        """Close what was opened here."""
        self._out.close()
        self._err.close()
