"""``holdfast ps``."""

from __future__ import annotations

import json
import re

import pytest

from tests.fakes.server import program_at
from tests.fakes.terminal import Call, person_at

pytestmark = pytest.mark.slow


def test_those_that_run_are_shown_and_with_a_also_those_that_have_ended(far: Call) -> None:
    far("run", "--name", "ps-ended", "--", "sh", "-c", "exit 3")
    far("run", "-d", "--name", "ps-runs", "--", "sleep", "1000")

    live, everything = far("ps").out, far("ps", "-a").out
    far("kill", "--grace", "0", "ps-runs")

    assert re.search(r"^ps-runs +\d+ +running +\d+s ago +sleep 1000$", live, re.MULTILINE)
    assert "ps-ended" not in live
    assert re.search(r"^ps-ended +\d+ +exit 3 ", everything, re.MULTILINE)
    assert live.splitlines()[0].split() == ["NAME", "PID", "STATE", "STARTED", "COMMAND"]


def test_names_alone_are_for_other_programs(far: Call) -> None:
    far("run", "-d", "--name", "ps-named", "--", "sleep", "1000")

    names = far("ps", "-q").out.splitlines()
    listed = json.loads(far("ps", "-o", "json").out)
    far("kill", "--grace", "0", "ps-named")

    assert "ps-named" in names
    (one,) = [one for one in listed if one["name"] == "ps-named"]
    assert (one["state"], one["argv"], one["kept"]) == ("running", ["sleep", "1000"], True)


def test_a_terminal_gets_colours_and_lines_that_fit_unless_told_otherwise() -> None:
    with program_at() as (_, url):
        with person_at("run", "-d", "--name", "p", "-H", url, "--", "sleep", "1" * 60) as starter:
            starter.wait()
        with person_at("ps", "-H", url, cols=60) as person:
            person.wait()
            coloured = person.shown
        with person_at("ps", "--no-trunc", "-H", url, cols=60, env={"NO_COLOR": "1"}) as person:
            person.wait()
            plain = person.shown

    assert b"\x1b[32mrunning\x1b[0m" in coloured
    assert (
        max(len(line.replace(b"\x1b[32m", b"").replace(b"\x1b[0m", b"")) for line in coloured.split(b"\r\n"))
        <= 60
    )
    assert b"\x1b" not in plain
    assert b"1" * 60 in plain
