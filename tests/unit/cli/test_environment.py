"""Variables from ``-e`` and ``--env-file``."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.environment import variables
from holdfast.cli.failure import Failure


def test_a_name_alone_takes_our_value_or_nothing() -> None:
    assert variables({"A": "1"}, given=["A", "B", "C=x=y", "D="]) == {"A": "1", "C": "x=y", "D": ""}


def test_a_file_has_one_per_line_and_what_is_given_wins(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\n# no\n  A=1\nB= two \nC\nD=\xff\n")

    laid = variables({"C": "3"}, files=[str(file)], given=["A=given"])

    assert laid == {"A": "given", "B": " two ", "C": "3", "D": "\udcff"}


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
