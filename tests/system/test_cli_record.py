"""``run --record``: a session as a recording, as a person makes one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from holdfast.model import Size
from holdfast.terminal.emulator import Emulator
from tests.fakes.terminal import SIZE_TELLER, holdfast, person_at

pytestmark = pytest.mark.slow


def test_a_recording_plays_what_was_shown(tmp_path: Path) -> None:
    path = tmp_path / "session.cast"
    options = ("run", "-t", "--record", str(path), "--")
    with person_at(*options, sys.executable, "-c", SIZE_TELLER, rows=30, cols=90) as person:
        person.expect(b"size 90 30")
        person.type(b"hello\r")
        person.expect(b"got hello")
        person.resize(40, 100)
        person.expect(b"size 100 40")
        person.type(b"\x03")
        code = person.wait()

    header, *events = [json.loads(line) for line in path.read_text().splitlines()]
    said = "".join(data for _, kind, data in events if kind == "o").encode()
    played, seen = Emulator(Size(40, 100)), Emulator(Size(40, 100))
    played.feed(said)
    seen.feed(person.shown)
    assert (header["version"], header["term"]) == (3, {"cols": 90, "rows": 30, "type": "xterm"})
    assert played.snapshot(0, complete=True).data == seen.snapshot(0, complete=True).data
    assert [data for _, kind, data in events if kind != "o"] == ["100x40", str(code)]
    assert all(interval >= 0 for interval, _, _ in events)


def test_what_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "session.cast"

    pipes = holdfast("run", "--record", str(path), "--", "true")
    far = holdfast("run", "--record-on-host", str(path), "--", "true")
    alone = holdfast("run", "-t", "--record-input", "--", "true")

    assert (pipes.returncode, alone.returncode) == (125, 125)
    assert far.returncode == 125
    assert b"add -t" in pipes.stderr
    assert b"add -t" in far.stderr
    assert b"needs --record" in alone.stderr
    assert not path.exists()
