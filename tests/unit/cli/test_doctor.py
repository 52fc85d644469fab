"""``holdfast doctor``: what it finds on this host, and what it says of what is missing."""

from __future__ import annotations

import json
import shutil

import pytest

from holdfast.cli import doctor as module
from holdfast.cli.doctor import Finding, examine
from holdfast.cli.main import main
from holdfast.host.sandbox import landlock
from holdfast.host.warden import compiled

pytestmark = pytest.mark.slow

NAMES = ["nursery", "terminals", "control groups", "sandbox: bubblewrap", "sandbox: landlock", "sandboxes"]


def found() -> dict[str, Finding]:
    return {finding.name: finding for finding in examine()}


def test_everything_is_tried_in_one_order() -> None:
    assert [finding.name for finding in examine() if finding.name.strip() != "but"] == NAMES


def test_what_works_needs_no_cure_and_what_does_not_has_one() -> None:
    for finding in examine():
        assert bool(finding.cure) == (not finding.works)
        assert finding.detail


def test_only_what_clients_rely_on_is_needed() -> None:
    assert {finding.name for finding in examine() if finding.needed} == {"terminals", "sandboxes"}


def test_it_is_printed_as_a_table_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])
    table = capsys.readouterr().out.splitlines()
    same = main(["doctor", "--output", "json"])
    listed = json.loads(capsys.readouterr().out)

    assert code == same == int(any(one["needed"] and not one["works"] for one in listed))
    lines = [line for line in table if not line.startswith(" ")]
    assert len(lines) == len(listed)
    for line, one in zip(lines, listed, strict=True):
        assert line.split()[0] == ("ok" if one["works"] else "MISSING" if one["needed"] else "no")
        assert one["name"] in line
        assert line.endswith(one["detail"])


def test_a_host_without_sandboxes_is_told_and_the_code_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ways are named, each with its cure."""
    monkeypatch.setattr(module, "compiled", lambda: None)
    monkeypatch.setattr(landlock, "version", lambda: 0)

    code = main(["doctor"])

    said = capsys.readouterr().out
    assert code == 1
    assert "MISSING sandboxes" in said
    assert said.count("cure: install a C compiler") == 2
    assert "cure: use a kernel from" in said


def test_a_host_without_bubblewrap_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled() is None:
        pytest.skip("there is no compiled nursery")
    monkeypatch.setattr(shutil, "which", lambda name: None)

    finding = found()["sandbox: bubblewrap"]

    assert (finding.works, finding.cure) == (False, module._CURES["no bwrap"])


def test_weaknesses_are_told_of_what_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compiled", lambda: None)

    told = [finding.detail for finding in examine() if finding.name.strip() == "but"]

    works = landlock.version() >= landlock.LEAST
    assert told == (landlock.weaknesses(landlock.version()) if works else [])


def test_a_host_without_terminals_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(size: object) -> None:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(module, "open_terminal", fail)

    finding = found()["terminals"]

    assert (finding.works, finding.needed, finding.cure) == (False, True, module._CURES["no terminals"])
