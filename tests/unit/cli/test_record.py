"""Recordings of what a terminal shows."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from holdfast.cli.record import CastWriter
from holdfast.cli.report import Failure
from holdfast.model import Size
from tests.fakes.casts import eventually_ended
from tests.fakes.terminal import Call


def events(path: Path) -> list[list[object]]:
    return [json.loads(line)[1:] for line in path.read_text().splitlines()[1:]]


def recorded(path: Path, *, with_input: bool) -> CastWriter:
    recorder = CastWriter(str(path), with_input=with_input)
    recorder.begin(Size(24, 80), command=["ls"], env={})
    recorder.output(b"out")
    recorder.input(b"secret")
    recorder.resized(Size(24, 80))
    recorder.resized(Size(30, 90))
    return recorder


def test_what_is_shown_is_recorded_and_what_is_typed_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    recorded(path, with_input=False).end(7)

    assert events(path) == [["o", "out"], ["r", "90x30"], ["x", "7"]]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_typed_is_recorded_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    recorded(path, with_input=True).end(0)

    assert ["i", "secret"] in events(path)


def test_a_recording_can_be_followed_while_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    recorder = recorded(path, with_input=False)

    assert events(path) == [["o", "out"], ["r", "90x30"]]
    recorder.close()


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    path.write_text("precious")

    with pytest.raises(Failure, match="exists; take another name"):
        CastWriter(str(path), with_input=False)
    assert path.read_text() == "precious"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot write"):
        CastWriter(str(tmp_path / "no" / "a.cast"), with_input=False)


def test_a_full_disk_ends_the_recording_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    recorder = recorded(path, with_input=False)
    os.close(recorder._fd)
    recorder._fd = os.open("/dev/full", os.O_WRONLY)

    recorder.output(b"lost")
    recorder.output(b"lost, too")
    recorder.end(0)

    assert capsys.readouterr().err.count("ends here: No space left on device") == 1


@pytest.mark.slow
def test_a_server_records_what_runs_in_the_background(tmp_path: Path, far: Call) -> None:
    path = tmp_path / "job.cast"
    command = ("sh", "-c", "echo one; read line; echo two")

    far("run", "-d", "-t", "--name", "recorded", "--record-on-host", str(path), "--", *command)
    far("write", "recorded", "typed\n")
    far("wait", "-q", "recorded")
    again = far("run", "-d", "-t", "--record-on-host", str(path), "--", "true")

    header, *events = [json.loads(line) for line in eventually_ended(path)]
    assert header["command"] == " ".join(command)
    assert "".join(data for _, kind, data in events if kind == "o").split() == ["one", "typed", "two"]
    assert [kind for _, kind, _ in events if kind != "o"] == ["x"]
    assert again.code == 125
    assert "File exists" in again.err
