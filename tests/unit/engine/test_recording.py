"""Recordings on the host: nobody waits for the disk, and what that costs is told."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from holdfast.engine.recording import CastFile, TerminalRecording
from holdfast.engine.workers import Workers
from holdfast.errors import BadRequest
from holdfast.host.files.making import NewFile
from holdfast.host.files.resolver import Spot
from holdfast.model import Chunk, Exit, Kind, Outcome, Size, Stream
from holdfast.recordings import HostRecording
from holdfast.value import replace
from tests.fakes.process import calls_over, command, eventually, running_backend

SIZE = Size(24, 80)


@pytest.fixture
async def workers() -> Iterator[Workers]:  # type: ignore[misc]  # A generator is what a fixture is.
    made = Workers(2, asyncio.get_running_loop(), "test")
    yield made
    made.close()
    await calls_over(made)


def recording(
    fd: int, workers: Workers, most: int = 1 << 30, *, with_input: bool = False
) -> TerminalRecording:
    """One that is written to this descriptor."""
    directory = os.open("/", os.O_PATH | os.O_DIRECTORY)
    terms = HostRecording("/recording", with_input, most)
    return TerminalRecording(
        CastFile(NewFile(fd, Spot(directory, b"x")), most), terms, workers, clock=monotonic
    )


def said(seq: int, text: bytes) -> Chunk:
    return Chunk(seq, Stream.PTY, text)


def close(made: TerminalRecording) -> None:
    made.exited(1, Exit(3, Outcome(Kind.EXIT, 3)))
    made.closed(2)


def read_all(fd: int) -> list[list[object]]:
    with os.fdopen(fd, "rb") as file:
        return [json.loads(line) for line in file.read().splitlines()][1:]


async def test_a_disk_that_is_too_slow_costs_output_of_the_recording_and_nothing_else(
    workers: Workers,
) -> None:
    """A pipe that nobody reads is a disk that hangs."""
    out, into = os.pipe()
    made = recording(into, workers)
    made.begin(SIZE, ["flood"])
    piece = b"0123456789abcdef" * 4096
    count = 200

    for seq in range(count):
        made.output(said(seq, piece))
        await asyncio.sleep(0)
    waiting = made._waiting
    reading = asyncio.create_task(asyncio.to_thread(read_all, out))
    close(made)
    events = await reading

    assert waiting <= 2 << 20
    shown = sum(len(str(text)) for _, kind, text in events if kind == "o")
    (mark,) = [text for _, kind, text in events if kind == "m"]
    assert mark == f"left out here, because the disk was too slow: {count * len(piece) - shown} bytes"
    assert 0 < shown < count * len(piece)
    assert events[-1][1:] == ["x", "3"]


async def test_what_is_said_after_the_hole_is_recorded_again(workers: Workers) -> None:
    out, into = os.pipe()
    made = recording(into, workers)
    made.begin(SIZE, [])
    made.output(said(1, b"x" * 200_000))
    made.output(said(2, b"y" * (1 << 20)))
    made.output(said(3, b"z"))
    made.output(said(4, b"." * (1 << 20)))
    reading = asyncio.create_task(asyncio.to_thread(read_all, out))
    await eventually(lambda: not made._busy)
    made.output(said(5, b"again"))
    close(made)

    kinds = [(kind, str(text)[:1]) for _, kind, text in await reading]

    assert kinds[-3:] == [("m", "l"), ("o", "a"), ("x", "3")]
    assert ("o", ".") not in kinds


async def test_a_full_disk_ends_the_recording_alone(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    made = recording(os.open("/dev/full", os.O_WRONLY), workers)
    made.begin(SIZE, [])
    made.output(said(1, b"x"))

    await eventually(lambda: made._over)

    made.output(said(2, b"y"))
    close(made)
    assert "No space left" in caplog.text
    assert not made._events


async def test_a_write_that_is_repeated_is_recorded_once(workers: Workers) -> None:
    out, into = os.pipe()
    made = recording(into, workers, with_input=True)
    made.begin(SIZE, [])

    for write_id in ("a", "a", "b", None, None):
        made.input(b"k", write_id)
    close(made)

    found = await asyncio.to_thread(read_all, out)
    assert [text for _, kind, text in found if kind == "i"] == ["k"] * 4


async def test_lines_are_whole_at_the_bound(tmp_path: Path, workers: Workers) -> None:
    """Whatever the bytes are: JSON makes some of them longer."""
    path = tmp_path / "a.cast"
    for most in range(1024, 1400, 7):
        made = recording(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), workers, most)
        made.begin(SIZE, ["program"])
        for seq in range(40):
            made.output(said(seq, b"\x1b[1m" * (seq % 7) + b"text"))
        close(made)
        await eventually(lambda made=made: made._over and not made._busy)  # type: ignore[misc]

        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert path.stat().st_size <= most
        assert lines[-1][1] == "m"


async def test_a_recording_needs_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    async with running_backend() as backend:
        with pytest.raises(BadRequest, match="needs a terminal"):
            await backend.start(replace(command("true"), record=HostRecording(str(path))))

    assert not path.exists()


async def test_a_process_that_is_forgotten_closes_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    async with running_backend() as backend:
        spec = replace(command("sleep", "1000", terminal=SIZE), record=HostRecording(str(path)))
        process = await backend.start(spec)
        process.forget()
        await eventually(lambda: not is_open(path))

    assert len(path.read_text().splitlines()) == 1


def is_open(path: Path) -> bool:
    there = (os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if exists(fd))
    return str(path) in there


def exists(fd: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{fd}")
