"""What the gate of instructions lets through, and what it compares with."""

from __future__ import annotations

import re

import pytest

from bench import gate, instructions


@pytest.mark.parametrize(("now", "code"), [(90.0, 0), (100.0, 0), (105.0, 0), (106.0, 1)])
def test_a_request_may_need_a_twentieth_more_than_before_and_no_more(
    now: float, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    results = {"before": {"status": 100.0, "echo": 50.0}, "now": {"status": now, "echo": 50.0}}

    assert instructions.judge(results, gate.FLOOR) == code
    assert ("status" in capsys.readouterr().err) is bool(code)


def test_the_table_shows_how_many_times_fewer_instructions_are_needed() -> None:
    results = {"before": {"status": 3000.0}, "now": {"status": 2000.0}}

    assert instructions.table(results).splitlines()[2] == "| status | 3,000 | 2,000 | 1.50 |"


def test_the_short_form_counts_what_there_is_to_count() -> None:
    assert set(gate.SHORT) < instructions.CASES.keys()


def test_the_version_before_is_a_commit() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}\n", gate.BASELINE.read_text())
