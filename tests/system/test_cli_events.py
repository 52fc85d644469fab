"""What happens to the processes of a server, as it happens, on a terminal and for scripts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.server import program_at
from tests.fakes.terminal import HOLDFAST, holdfast, person_at

pytestmark = pytest.mark.slow


@pytest.fixture
def url() -> Iterator[str]:
    with program_at() as (_, found):
        yield found


def run(url: str, name: str, *options: str, script: str) -> None:
    done = holdfast("run", "-d", "-H", url, "--name", name, *options, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr


def test_a_person_sees_what_happens_and_leaves_with_an_interrupt(url: str) -> None:
    """Nothing of it is ended."""
    run(url, "asks", "-i", script="read answer; exit 4")
    with person_at("events", "-H", url) as person:
        person.expect(b"  waiting    asks\r\n")
        run(url, "web", script="exit 3")
        person.expect(b"  started    web  pid ")
        person.expect(b"  sh -c 'exit 3'\r\n")
        person.expect(b"  exited     web  exit 3\r\n")
        person.type(b"\x03")

        assert person.wait() == 130
    assert holdfast("ps", "-q", "-H", url).stdout.split() == [b"asks"]


def test_a_script_reads_documents_until_a_process_has_ended(url: str) -> None:
    """Only of those that it has named."""
    run(url, "asks", "-i", script="read answer; exit 4")
    command = [*HOLDFAST, "events", "-H", url, "-o", "json", "--name", "asks", "--until-exit", "asks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reading:
        assert reading.stdout is not None
        told: list[dict[str, Any]] = [json.loads(reading.stdout.readline())]
        run(url, "other", script="exit 0")
        assert holdfast("write", "-H", url, "asks", "yes\n").returncode == 0
        told += map(json.loads, reading.stdout)

    assert reading.returncode == 4
    assert {each["name"] for each in told} == {"asks"}
    assert told[0]["kind"] == "waiting"
    assert (told[-1]["kind"], told[-1]["exitCode"]) == ("exited", 4)
    assert told[-1]["outcome"]["kind"] == "exit"
