"""The variables of ``-e`` and ``--env-file``."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.report import Failure
from holdfast.cli.variables import variables


def test_a_name_alone_takes_our_value_or_nothing() -> None:
    assert variables({"A": "1"}, given=["A", "B", "C=x=y", "D="]) == {"A": "1", "C": "x=y", "D": ""}


def test_a_file_has_one_per_line_and_what_is_given_wins(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\n# no\n  A=1\nB= two \nC\nD=\xff\n")

    laid = variables({"C": "3"}, files=[str(file)], given=["A=given"])

    assert laid == {"A": "given", "B": " two ", "C": "3", "D": "\udcff"}


@pytest.mark.parametrize(
    "odd", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r"], ids=ascii
)
def test_only_the_end_of_a_line_ends_a_value(odd: str, tmp_path: Path) -> None:
    """Python knows many more: a value was cut there, and its rest became another variable or a failure."""
    file = tmp_path / "file"
    file.write_bytes(f"A=one{odd}B=two\nC={odd}x\n{odd}# no\n".encode())

    assert variables({}, files=[str(file)]) == {"A": f"one{odd}B=two", "C": f"{odd}x"}


def test_a_file_of_windows_has_the_same_values(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"A=1\r\n\r\n# no\r\nB=2\r\r\nC=3\r\n")

    assert variables({}, files=[str(file)]) == {"A": "1", "B": "2\r", "C": "3"}


@pytest.mark.parametrize("text", ["", "=x", "A B=1", "A\0=1"])
def test_what_has_no_name_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="is not NAME=VALUE or NAME"):
        variables({}, given=[text])


def test_a_file_is_named_in_a_complaint(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("A=1\n=2\n")

    with pytest.raises(Failure, match="file, line 2: '=2' is not"):
        variables({}, files=[str(file)])
    with pytest.raises(Failure, match=r"cannot read the file of variables .*: No such file"):
        variables({}, files=[str(tmp_path / "none")])
