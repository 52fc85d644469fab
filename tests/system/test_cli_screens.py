"""Programs that own the whole screen, in ``holdfast run -it`` and ``attach`` at a real terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fakes.server import program_at
from tests.fakes.terminal import person_at

pytestmark = pytest.mark.slow

EDITOR = shutil.which("vim") or shutil.which("vi")
DETACH = b"\x10\x11"
PLAIN = {"LESS": "", "LESSHISTFILE": "-", "VIMINIT": ":"}
"""Whatever the user of this machine prefers."""


@pytest.mark.skipif(EDITOR is None, reason="neither vim nor vi is installed")
def test_an_editor_is_left_found_again_with_its_screen_and_saves(tmp_path: Path) -> None:
    """What was typed before the connection went is what people come back for."""
    assert EDITOR is not None
    target = tmp_path / "text"
    target.write_text("first line\n")
    with program_at() as (_, url):
        command = ("run", "-i", "-t", "-H", url, "--name", "editor", "-w", str(tmp_path))
        with person_at(*command, "--", EDITOR, "-u", "NONE", "text", env=PLAIN) as person:
            person.expect(b"first line")
            person.type(b"osecond line")
            person.expect(b"second line")
            person.type(DETACH)
            person.expect(b"comes back")
            left = person.wait()
        # Nothing of what it said before is shown, so that only what is drawn anew can be seen.
        with person_at("attach", "-H", url, "--tail", "0", "editor", env=PLAIN) as person:
            person.expect(b"second line")
            person.type(b" and more\x1b:wq\r")
            ended = person.wait()
            restored = person.modes() == person.modes_before

    assert (left, ended, restored) == (0, 0, True)
    assert target.read_text() == "first line\nsecond line and more\n"


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_a_pager_is_drawn_anew_when_it_is_found_and_for_another_size(tmp_path: Path) -> None:
    target = tmp_path / "lines"
    target.write_text("".join(f"line {number}\n" for number in range(1, 200)))
    with program_at() as (_, url):
        options = ("-t", "-H", url, "--name", "pager", "-e", "LESS=", "-e", "LESSHISTFILE=-")
        with person_at("run", *options, "--", "less", str(target), rows=10) as person:
            person.expect(b"line 9")
            person.type(DETACH)
            person.expect(b"comes back")
        with person_at("attach", "-H", url, "--tail", "0", "pager", rows=10) as person:
            person.expect(b"line 1\r")
            shown = person.expect(b"line 8")
            person.resize(21, 80)
            # A pager that is told of a size while it draws for another may not see it before the next key.
            person.insist(b"r", b"line 20\r")
            person.type(b"q")

            assert person.wait() == 0
            assert b"line 10" not in shown
            assert person.modes() == person.modes_before
