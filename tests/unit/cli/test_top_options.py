"""The options of ``top``."""

from __future__ import annotations

import pytest

from holdfast.cli import top_options
from holdfast.cli.main import parse
from holdfast.cli.top_sample import SORT_KEYS


def test_the_table_can_be_sorted_by_what_the_options_offer() -> None:
    """The options are read without what sorts: help must not wait for that."""
    assert tuple(SORT_KEYS) == top_options._SORT_KEYS


def test_without_options_the_table_is_sorted_by_processor_time() -> None:
    arguments = parse(["top"])

    assert (arguments.sort, arguments.filter, arguments.once, arguments.all) == ("cpu", "", False, False)
    assert arguments.interval is None


@pytest.mark.parametrize("options", [["--sort", "colour"], ["--interval", "0"], ["extra"]])
def test_what_makes_no_sense_is_refused(options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["top", *options])

    assert ended.value.code == 2
