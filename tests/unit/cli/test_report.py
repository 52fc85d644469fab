"""What we say ourselves."""

from __future__ import annotations

import io
import json
import sys

import pytest

from holdfast.cli import report


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_messages_go_to_standard_error_with_our_name(capsys: pytest.CaptureFixture[str]) -> None:
    report.say("words \udcff")

    assert capsys.readouterr() == ("", "holdfast: words \\udcff\n")


def test_a_message_that_nobody_hears_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("nobody")

    monkeypatch.setattr(sys, "stderr", Deaf())
    report.say("words")
    monkeypatch.setattr(sys, "stderr", None)
    report.say("words")


def test_documents_are_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    report.tell("a", "b")
    report.tell_json({"a": "é\n"})

    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["a", "b"]
    assert lines[2].isascii()
    assert json.loads(lines[2]) == {"a": "é\n"}


def test_colours_are_for_terminals_whose_owner_did_not_say_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert report.in_colour(Tty())
    assert not report.in_colour(io.StringIO())

    monkeypatch.setenv("NO_COLOR", "1")
    assert not report.in_colour(Tty())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not report.in_colour(Tty())


def test_a_stream_that_is_gone_is_no_terminal() -> None:
    closed = io.StringIO()
    closed.close()

    assert (report.is_terminal(None), report.is_terminal(closed)) == (False, False)


def test_paint_is_taken_off_again() -> None:
    assert report.paint("green", "x") == "\x1b[32mx\x1b[0m"


def test_a_name_in_a_message_gives_the_terminal_no_orders(capsys: pytest.CaptureFixture[str]) -> None:
    report.say("there is no file \x1b[2J\udcff\nä")

    assert capsys.readouterr().err == "holdfast: there is no file \\x1b[2J\\udcff\nä\n"
