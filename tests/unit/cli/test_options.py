"""Options that several commands share."""

from __future__ import annotations

import argparse

import pytest

from holdfast.cli import options
from tests.fakes.terminal import person_at


def parser() -> options.Parser:
    made = options.Parser(prog="holdfast x", allow_abbrev=False)
    options.add_server(made)
    options.add_output(made)
    options.add_quiet(made, "nothing")
    options.add_detach_keys(made)
    options.add_names(made, several=False)
    return made


def test_all_have_their_defaults_and_are_read() -> None:
    absent = vars(parser().parse_args(["p"]))
    given = vars(
        parser().parse_args(
            [
                "-H",
                "ws://h:1",
                "--token-file",
                "t",
                "--reconnect",
                "5s",
                "-o",
                "json",
                "-q",
                "--detach-keys",
                "ctrl-a",
                "p",
            ]
        )
    )

    assert absent == {
        "url": None,
        "token_file": None,
        "reconnect": 60.0,
        "output": "table",
        "quiet": False,
        "detach_keys": None,
        "name": "p",
    }
    assert given == {
        "url": "ws://h:1",
        "token_file": "t",
        "reconnect": 5.0,
        "output": "json",
        "quiet": True,
        "detach_keys": b"\x01",
        "name": "p",
    }


def test_several_names_are_one_at_least() -> None:
    made = options.Parser(prog="holdfast x")
    options.add_names(made, several=True)

    assert made.parse_args(["a", "b"]).names == ["a", "b"]
    with pytest.raises(SystemExit):
        made.parse_args([])


@pytest.mark.parametrize(("passes_code", "code"), [(False, 2), (True, 125)])
def test_a_complaint_is_short_and_its_code_is_no_processes(
    passes_code: bool,  # noqa: FBT001
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = parser()
    made.passes_code = passes_code

    with pytest.raises(SystemExit) as end:
        made.parse_args(["--dance"])

    assert end.value.code == code
    assert capsys.readouterr().err.endswith("See 'holdfast x --help'.\n")


@pytest.mark.parametrize("columns", [None, "", "x", "-1", "0", "50", "200"])
def test_help_is_as_wide_as_argparse_would_make_it(
    columns: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for the width in another way, which is to change nothing but the time."""
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    usual = argparse.RawDescriptionHelpFormatter("x")

    assert options.HelpFormatter("x")._width == usual._width


@pytest.mark.slow
def test_help_fits_the_terminal() -> None:
    with person_at("run", "--help", cols=60) as person:
        person.wait()
        shown = person.shown

    of_options = [line for line in shown.split(b"\r\n") if line.startswith(b"  ")]
    assert 50 < max(map(len, of_options)) <= 60
