"""The picture of the README is that of its recording, and of nobody's machine."""

from __future__ import annotations

import re
import socket
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docs.picture import TITLE, runs_of, svg

ROOT = Path(__file__).resolve().parents[1]
RECORDING = ROOT / "docs" / "recording"

HEADER = '{"version": 3, "term": {"cols": 80, "rows": 24}, "timestamp": 0}'

LARGEST = 60_000
"""Bytes: it is loaded by everybody who opens the README."""


def cast(*lines: str) -> str:
    return "\n".join([HEADER, *lines])


def test_the_picture_is_drawn_from_the_recording() -> None:
    """Who records anew has to draw anew."""
    recorded = (RECORDING / "session.cast").read_text(encoding="utf-8")
    drawn = (RECORDING / "session.svg").read_text(encoding="utf-8")

    assert drawn == svg(recorded, TITLE)
    assert len(drawn) < LARGEST
    assert ET.fromstring(drawn).get("viewBox") == "0 0 570 452"  # noqa: S314  (our own file)


@pytest.mark.parametrize("name", ["session.cast", "session.svg"])
def test_nothing_of_a_machine_is_on_the_picture(name: str) -> None:
    text = (RECORDING / name).read_text(encoding="utf-8")

    assert re.findall(r"/(?:home|root|tmp|work|Users)\b", text) == []
    assert socket.gethostname() not in text


def test_the_picture_is_on_the_first_screen() -> None:
    """A reader decides within a few lines whether to go on."""
    for page, path in (
        ("README.md", "docs/recording/session.svg"),
        ("docs/README.md", "recording/session.svg"),
    ):
        before, found, _ = (ROOT / page).read_text(encoding="utf-8").partition(f"({path})")
        assert found, page
        assert len(before.splitlines()) < 25


def test_text_appears_at_its_time_and_place() -> None:
    """Nobody watches a picture for nine seconds in which nothing happens."""
    runs = runs_of(
        cast('[0.5, "o", "$ "]', '[0.25, "o", "ls\\r\\n"]', '[9, "o", "\\u001b[32mgreen\\u001b[0m\\n"]')
    )

    told = [(run.row, run.column, run.style, run.text, run.time) for run in runs]
    assert told == [(0, 0, "", "$ ", 0.5), (0, 2, "", "ls", 0.75), (1, 0, "green", "green", 1.25)]


def test_what_is_typed_and_what_is_no_output_is_not_shown() -> None:
    assert runs_of(cast('[0.5, "i", "secret"]', '[0.5, "x", "0"]')) == []


def test_text_is_no_markup() -> None:
    drawn = svg(cast('[0.5, "o", "a <b> & c"]'), "<t>")

    texts = "".join(ET.fromstring(drawn).itertext())  # noqa: S314  (our own text)
    assert "a <b> & c" in texts
    assert "<t>" in texts


@pytest.mark.parametrize("data", ["\\u001b[2J", "\\u001b[5A", "50 %\\r60 %", "\\u001b]0;title\\u0007"])
def test_a_recording_that_moves_the_cursor_is_refused(data: str) -> None:
    """It would be drawn wrong, and nobody would notice."""
    with pytest.raises(ValueError, match="not a plain line"):
        runs_of(cast(f'[0.5, "o", "{data}"]'))


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 3"):
        runs_of('{"version": 2}\n')
