"""What the command line tells its user."""

from __future__ import annotations

import io
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


def test_lines_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    report.tell("a", "b")

    assert capsys.readouterr() == ("a\nb\n", "")


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

    assert (report.is_terminal_stream(None), report.is_terminal_stream(closed)) == (False, False)


def test_paint_is_taken_off_again() -> None:
    assert report.paint("green", "x") == "\x1b[32mx\x1b[0m"


def test_a_name_in_a_message_gives_the_terminal_no_orders(capsys: pytest.CaptureFixture[str]) -> None:
    report.say("there is no file \x1b[2J\udcff\nä")

    assert capsys.readouterr().err == "holdfast: there is no file \\x1b[2J\\udcff\\nä\n"


def test_a_name_in_a_message_does_not_look_like_another_message(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has chosen the name could have us say anything."""
    report.say("x\nholdfast: all is well\u2028holdfast: all is well\rholdfast: all is well")

    assert capsys.readouterr().err.splitlines() == [
        "holdfast: x\\nholdfast: all is well\\u2028holdfast: all is well\\rholdfast: all is well"
    ]


def test_names_are_one_per_line_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    report.tell_names(["plain", "two words", "\x1b]0;owned\x07\x1b[2Jinnocent\nroot-shell", "\u202etxt.exe"])

    assert capsys.readouterr().out == (
        "plain\ntwo words\n\\x1b]0;owned\\x07\\x1b[2Jinnocent\\nroot-shell\n\\u202etxt.exe\n"
    )


def test_a_cut_says_so() -> None:
    assert [report.cut("abcdef", width) for width in (6, 5, 2)] == ["abcdef", "ab...", "..."]


def test_a_failure_has_our_code_unless_it_says_otherwise() -> None:
    assert (str(report.Failure("words")), report.Failure("words").code) == ("words", 125)
    assert report.Failure("words", 7).code == 7
