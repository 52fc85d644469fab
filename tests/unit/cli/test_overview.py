"""All commands at once: help, the version, and commands that do not exist."""

from __future__ import annotations

import json

import pytest

from holdfast import __version__
from holdfast.cli.main import COMMANDS, main
from holdfast.cli.overview import parser_of_all


def test_the_version_is_printed_by_command_and_by_option(capsys: pytest.CaptureFixture[str]) -> None:
    """Both are what people try first."""
    code = main(["version"])
    with pytest.raises(SystemExit) as end:
        main(["--version"])

    assert code == 0
    assert end.value.code == 0
    assert capsys.readouterr().out == f"holdfast {__version__}\n" * 2


def test_the_version_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": __version__}


def test_all_commands_know_their_module_and_help_needs_none_of_them() -> None:
    """The parser of everything, for documents and completion, is made of the same parts."""
    shown = parser_of_all().format_help()

    assert all(command.help in shown for command in COMMANDS.values())


WRONG = {
    "no command": ([], "required: COMMAND"),
    "unknown command": (["dance"], "there is no command 'dance'"),
    "a slip": (["rnu"], "there is no command 'rnu'; did you mean 'run'?"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_call_is_refused_with_code_two_and_a_reason(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage errors are told apart from failures by their code."""
    with pytest.raises(SystemExit) as end:
        main(arguments)

    assert end.value.code == 2
    assert words in capsys.readouterr().err
