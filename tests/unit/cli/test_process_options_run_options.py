"""The options of ``run`` and ``exec``, as they are read."""

from __future__ import annotations

import pytest

from holdfast.cli.main import main, parse

PROCESSES = {
    "a time": (["run", "--timeout", "soon", "--", "true"], "argument --timeout: 'soon' is not a time"),
    "a size": (["exec", "--memory", "much", "true"], "argument --memory: 'much' is not a number of bytes"),
    "an option": (["run", "--dance", "--", "true"], "unrecognized arguments: --dance"),
    "no name": (["wait"], "the following arguments are required: NAME"),
}


@pytest.mark.parametrize(("arguments", "words"), PROCESSES.values(), ids=PROCESSES.keys())
def test_where_the_code_is_a_processes_a_wrong_call_has_ours(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)

    assert end.value.code == 125
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "argv"),
    [
        (["run", "ls", "-l"], ["ls", "-l"]),
        (["run", "--", "ls", "-l"], ["ls", "-l"]),
        (["run", "-t", "--", "ls", "--", "-t"], ["ls", "--", "-t"]),
        (["run", "-t", "ls", "--", "-t"], ["ls", "--", "-t"]),
        (["exec", "-e", "A=1", "sh", "-e"], ["sh", "-e"]),
        (["run", "--", "--", "x"], ["--", "x"]),
        (["run"], []),
    ],
)
def test_what_follows_the_options_is_the_programs(given: list[str], argv: list[str]) -> None:
    """As with docker and ssh: the mark is only needed where there would be doubt."""
    assert parse(given).argv == argv


def test_only_run_can_leave_the_program_at_once() -> None:
    assert (parse(["run", "-d", "ls"]).detach, parse(["exec", "ls"]).detach) == (True, False)
    with pytest.raises(SystemExit):
        parse(["exec", "-d", "ls"])
