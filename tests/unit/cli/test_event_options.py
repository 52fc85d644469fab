"""The options of ``events``."""

from __future__ import annotations

import pytest

from holdfast.cli.main import parse


def test_without_options_everything_is_printed_until_the_user_leaves() -> None:
    arguments = parse(["events"])

    assert (arguments.names, arguments.until_exit, arguments.output) == (None, None, "table")


def test_several_names_can_be_given() -> None:
    assert parse(["events", "--name", "web", "--name", "db"]).names == ["web", "db"]


@pytest.mark.parametrize("options", [["extra"], ["--name"], ["-o", "xml"]])
def test_what_makes_no_sense_is_refused_with_a_code_that_no_process_has(options: list[str]) -> None:
    """With ``--until-exit`` other codes are those of the process."""
    with pytest.raises(SystemExit) as ended:
        parse(["events", *options])

    assert ended.value.code == 125
