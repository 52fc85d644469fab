"""Where the output of a followed process goes."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast.cli.sink import OutputSink
from holdfast.model import Chunk, Stream

CHUNKS = [Chunk(1, Stream.STDOUT, b"o"), Chunk(2, Stream.STDERR, b"e"), Chunk(3, Stream.PTY, b"p")]


async def test_each_stream_goes_where_it_belongs(capfd: pytest.CaptureFixture[str]) -> None:
    sink = OutputSink(asyncio.get_running_loop(), json=False)
    for chunk in CHUNKS:
        await sink.write_chunk(chunk)
    sink.close()

    assert capfd.readouterr() == ("op", "e")
    assert not sink.busy


async def test_as_json_all_are_lines_of_one_output(capfd: pytest.CaptureFixture[str]) -> None:
    sink = OutputSink(asyncio.get_running_loop(), json=True)
    for chunk in CHUNKS:
        await sink.write_chunk(chunk)
    await sink.write_document({"end": True})
    sink.close()

    shown = capfd.readouterr()
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert [line.get("stream") for line in lines] == ["stdout", "stderr", "pty", None]
    assert shown.err == ""
