"""``holdfast doctor``: what it finds on this host, and how that is printed."""

from __future__ import annotations

import json
import os
import re

import pytest

from holdfast import __version__
from holdfast.cli import doctor as module
from holdfast.cli.doctor import Finding, examine, lines
from holdfast.cli.main import main

NAMES = [
    "python",
    "kernel",
    "proc",
    "forkServer",
    "processes",
    "terminals",
    "trees",
    "controlGroups",
    "memoryLimit",
    "resourceLimits",
    "durability",
    "openFiles",
    "processLimit",
    "fileWatching",
    "temporaryFiles",
    "diskSpace",
    "bubblewrap",
    "landlock",
    "sandboxes",
    "sandboxPresets",
]

ESSENTIAL = {
    "python",
    "kernel",
    "proc",
    "forkServer",
    "processes",
    "terminals",
    "trees",
    "memoryLimit",
    "resourceLimits",
    "fileWatching",
    "temporaryFiles",
    "sandboxes",
}

GOOD = Finding("python", works=True, essential=True, detail="3.11.7")
POOR = Finding("openFiles", works=False, essential=False, detail="256", fix="ulimit -Hn 65536")
BROKEN = Finding("trees", works=False, essential=True, detail="1 is left", fix="mount /proc")
WEAK = Finding("sandboxes", works=True, essential=True, detail="kept", weaknesses=["one way out"])


# This host.


@pytest.mark.slow
def test_everything_is_tried_in_one_order_and_what_fails_has_its_fix() -> None:
    findings = list(examine())

    assert [finding.name for finding in findings] == NAMES
    assert {finding.name for finding in findings if finding.essential} == ESSENTIAL
    for finding in findings:
        assert (finding.fix is None) == finding.works
        assert finding.detail


@pytest.mark.slow
def test_what_this_suite_needs_anyway_is_found_to_work() -> None:
    """The tests of processes could not pass on a host where one of these fails."""
    found = {finding.name: finding.works for finding in examine()}

    needed = ["python", "kernel", "proc", "processes", "terminals", "trees", "memoryLimit", "resourceLimits"]
    assert {name: found[name] for name in needed} == dict.fromkeys(needed, True)


@pytest.mark.slow
def test_the_table_and_the_document_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])
    table = capsys.readouterr().out
    same = main(["doctor", "-o", "json"])
    document = json.loads(capsys.readouterr().out)

    assert list(document) == ["version", "works", "findings"]
    assert document["version"] == __version__
    assert code == same == int(not document["works"])
    shown = re.findall(r"^(ok|no|FAILED) +(\w+(?: \w+)*)  ", table, re.MULTILINE)
    assert [title for _, title in shown] == [
        re.sub("[A-Z]", lambda letter: f" {letter[0].lower()}", one["name"]) for one in document["findings"]
    ]
    assert [word == "ok" for word, _ in shown] == [one["works"] for one in document["findings"]]


# What is printed.


def test_a_fix_and_a_weakness_stand_below_what_they_are_about() -> None:
    assert list(lines([GOOD, POOR, BROKEN, WEAK])) == [
        "ok      python      3.11.7",
        "no      open files  256",
        "                    fix: ulimit -Hn 65536",
        "FAILED  trees       1 is left",
        "                    fix: mount /proc",
        "ok      sandboxes   kept",
        "                    but: one way out",
    ]


def test_colours_are_for_the_first_word_only() -> None:
    """So that whoever cannot tell red from green has the words."""
    assert list(lines([GOOD, POOR, BROKEN], colour=True))[::2] == [
        "\x1b[32mok    \x1b[0m  python      3.11.7",
        "                    fix: ulimit -Hn 65536",
        "                    fix: mount /proc",
    ]


@pytest.mark.slow
def test_nothing_is_coloured_that_is_not_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    main(["doctor"])

    assert "\x1b" not in capsys.readouterr().out


def test_the_members_of_a_finding_are_these() -> None:
    """Programs read them, so a name that changes breaks somebody."""
    assert WEAK.document() == {
        "name": "sandboxes",
        "works": True,
        "essential": True,
        "detail": "kept",
        "fix": None,
        "weaknesses": ["one way out"],
        "facts": {},
    }


# What no host that runs these tests can show.


def test_an_old_python_is_told_what_to_install() -> None:
    old, young = module._python((3, 10, 12)), module._python((3, 11, 0))

    assert (old.works, old.essential, old.fix) == (False, True, module._FIXES["python"])
    assert old.facts["version"] == "3.10.12"
    assert (young.works, young.fix) == (True, None)


def test_a_host_without_an_arena_says_why_and_what_to_do() -> None:
    """A server starts there all the same, so that this is the place where somebody looks."""
    poor, rich = module._durability(lambda: "File too large"), module._durability(lambda: None)

    assert (poor.works, poor.essential, poor.fix) == (False, False, module._FIXES["durability"])
    assert poor.detail == "processes end with the server: File too large"
    assert (rich.works, rich.fix) == (True, None)


@pytest.mark.parametrize(
    ("most", "works", "detail"),
    [
        (None, True, "no limit"),
        (4096, True, "4,096, for about 1,024 programs at once"),
        (4095, False, "4,095, for about 1,023 programs at once"),
    ],
)
def test_room_is_counted_in_programs(most: int | None, works: bool, detail: str) -> None:  # noqa: FBT001
    """Nobody knows what a descriptor is good for."""
    trial = module._room(most, 4096, 4)

    assert (trial.works, trial.detail) == (works, detail)


def test_nothing_is_left_open() -> None:
    before = set(os.listdir("/proc/self/fd"))

    module._file_watching()
    list(module._temporary())

    assert set(os.listdir("/proc/self/fd")) <= before
