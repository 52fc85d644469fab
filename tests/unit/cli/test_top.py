"""``holdfast top`` without a terminal: one table, or one document."""

from __future__ import annotations

import json
import os
import re

import pytest

from holdfast.cli.top import take_sample
from holdfast.errors import Unsupported
from holdfast.model import CurrentUsage, Listing
from tests.fakes.terminal import Call, holdfast

pytestmark = pytest.mark.slow

QUICK = ("--interval", "200ms")


def test_the_table_is_printed_once(far: Call) -> None:
    far("run", "-d", "--name", "top-busy", "--", "sh", "-c", "while :; do echo x; done")
    far("run", "-d", "--name", "top-idle", "--", "sleep", "1000")
    said = far("top", "--once", *QUICK, "--filter", "top-")
    far("kill", "--grace", "0", "top-busy", "top-idle")

    head, busy, idle = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert head.split() == ["NAME", "STATE", "CPU%", "MEM", "OUT/S", "AGE", "COMMAND"]
    assert re.match(r"top-busy +running +[\d.]+ +\d.* sh -c 'while :; do echo x; done'$", busy)
    assert re.match(r"top-idle +running +0\.0 +\d[\d.KM]+ +0 +\d+s +sleep 1000$", idle)


def test_a_document_has_figures_for_scripts(far: Call) -> None:
    far("run", "-d", "--name", "top-json", "--", "sh", "-c", "while :; do :; done")
    far("run", "-d", "--name", "top-over", "--", "true")
    far("wait", "top-over")
    (live,) = json.loads(far("top", "-o", "json", *QUICK, "--filter", "top-").out)
    both = json.loads(far("top", "-a", "-o", "json", *QUICK, "--filter", "top-", "--sort", "name").out)
    far("kill", "--grace", "0", "top-json")

    assert (live["name"], live["state"], live["processes"], live["outputBytes"]) == (
        "top-json",
        "running",
        1,
        0,
    )
    assert live["cpuPercent"] > 0
    assert live["residentBytes"] > 100_000
    ended = next(each for each in both if each["name"] == "top-over")
    assert (ended["exitCode"], ended["cpuPercent"], ended["residentBytes"]) == (0, None, None)


def test_a_server_without_processes_has_an_empty_table(forgetful: Call) -> None:
    assert forgetful("top", "-o", "json") == (0, "[]\n", "")
    assert len(forgetful("top", "--once").out.splitlines()) == 1


def test_without_a_terminal_the_way_to_a_table_is_told(far: Call, url: str) -> None:
    done = holdfast("top", env={"HOLDFAST_URL": url, "TERM": "xterm"})

    assert (done.returncode, done.stdout) == (125, b"")
    assert b"--once prints the table" in done.stderr


def test_without_a_server_the_advice_is_that_of_all_commands(call: Call) -> None:
    assert call("top", "--once").code == 125
    assert "no server given" in call("top", "--once").err


class OldHost:
    """A host whose server does not know the request."""

    async def processes(self) -> list[Listing]:
        return []

    async def usage(self) -> list[CurrentUsage]:
        raise Unsupported("the usage of processes that run")


async def test_of_an_older_server_the_processes_are_shown_all_the_same() -> None:
    sample = await take_sample(OldHost())  # type: ignore[arg-type]

    assert (sample.processes, sample.usage) == ([], None)


def test_help_says_what_each_key_does(call: Call) -> None:
    shown = call("top", "--help").out

    assert all(f"\n  {keys} " in shown for keys in ("up, down", "enter, a", "l", "k", "s, r", "/", "e", "q"))
    assert max(map(len, shown.splitlines())) <= 100 or os.environ.get("COLUMNS")
