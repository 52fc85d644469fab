"""Leaving a process never ends it: ^C where it is only watched, detach keys everywhere, a lost connection."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from tests.fakes.server import eventually_sync, program_at
from tests.fakes.terminal import HOLDFAST, Person, holdfast, person_at

pytestmark = pytest.mark.slow

KEYS = b"\x10\x11"
"""^P ^Q."""

SAYER = "echo ready; while read line; do echo got $line; done; echo eof; exec sleep 1000"


@pytest.fixture
def url() -> Iterator[str]:
    with program_at() as (_, found):
        yield found


def started(url: str, *options: str, script: str = SAYER) -> None:
    done = holdfast("run", "-d", "-H", url, "--name", "web", *options, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr


def state(url: str) -> str:
    found = json.loads(holdfast("ps", "-a", "-H", url, "-o", "json").stdout)
    return str(next(one["state"] for one in found if one["name"] == "web"))


def left(url: str, verb: str) -> bytes:
    """The message, with a command line that works."""
    return f"holdfast: left web running; 'holdfast {verb} -H {url} web' comes back\r\n".encode()


# Watching.


@pytest.mark.parametrize("verb", ["attach --no-stdin", "logs -f"])
@pytest.mark.parametrize("options", [(), ("-i",), ("-t",)], ids=["no input", "pipes", "a terminal"])
def test_the_interrupt_of_whoever_only_watches_leaves_the_process(
    verb: str, options: tuple[str, ...], url: str
) -> None:
    started(url, *options, script="echo ready; exec sleep 1000")
    with person_at(*verb.split(), "-H", url, "web") as person:
        person.expect(b"ready")
        person.type(b"\x03")
        person.expect(left(url, verb))

        assert person.wait() == 130
        assert person.modes() == person.modes_before
    assert state(url) == "running"


@pytest.mark.parametrize("verb", ["attach --no-stdin", "logs -f"])
def test_whoever_wants_no_messages_gets_none(verb: str, url: str) -> None:
    started(url)
    with person_at(*verb.split(), "-q", "-H", url, "web") as person:
        person.expect(b"ready")
        person.type(b"\x03")

        assert person.wait() == 130
        assert b"holdfast" not in person.shown


def test_a_second_interrupt_leaves_what_the_first_did_not_end(url: str) -> None:
    """It is passed on once, for a program that stops its work at ^C, and never becomes an end."""
    started(url, script="trap 'echo heard' INT; echo ready; while :; do sleep 0.1; done")
    with person_at("attach", "-H", url, "web") as person:
        person.expect(b"ready")
        person.type(b"\x03")
        person.expect(b"heard")
        person.type(b"\x03")
        person.expect(left(url, "attach"))

        assert person.wait() == 130
    assert state(url) == "running"


# The detach keys.


@pytest.mark.parametrize("watch", [(), ("--no-stdin",)], ids=["typing", "watching"])
@pytest.mark.parametrize("options", [(), ("-i",), ("-t",)], ids=["no input", "pipes", "a terminal"])
def test_the_detach_keys_leave_every_process(
    options: tuple[str, ...], watch: tuple[str, ...], url: str
) -> None:
    started(url, *options, script="echo ready; exec sleep 1000")
    with person_at("attach", *watch, "-H", url, "web") as person:
        person.expect(b"ready")
        person.type(KEYS)
        person.expect(left(url, " ".join(("attach", *watch))))

        assert person.wait() == 0
        assert person.modes() == person.modes_before
    assert state(url) == "running"


def test_with_pipes_lines_are_edited_as_ever_and_the_keys_work_within_one(url: str) -> None:
    """Our terminal shows what is typed, and takes it back, until Return is pressed."""
    started(url, "-i")
    with person_at("attach", "-H", url, "web") as person:
        person.expect(b"ready")
        person.type(b"hellp\x7fo\n")
        assert b"hellp" in person.expect(b"got hello")
        person.type(b"half a line" + KEYS)
        person.expect(left(url, "attach"))

        assert person.wait() == 0
    assert state(url) == "running"


def test_the_keys_work_after_the_end_of_input_and_where_nobody_reads(url: str) -> None:
    started(url, "-i")
    with person_at("attach", "-H", url, "web") as person:
        person.expect(b"ready")
        person.type(b"\x04")
        person.expect(b"eof")
        person.type(b"nobody reads this\n")
        person.expect(b"nobody reads this")
        person.type(KEYS)
        person.expect(left(url, "attach"))

        assert person.wait() == 0


def test_other_keys_may_be_chosen_even_those_that_mean_something_to_a_terminal(url: str) -> None:
    started(url)
    with person_at("attach", "--detach-keys", "ctrl-c,d", "-H", url, "web") as person:
        person.expect(b"ready")
        person.type(b"\x03d")
        person.expect(left(url, "attach"))

        assert person.wait() == 0
    assert state(url) == "running"


def test_a_process_that_was_started_in_the_foreground_is_left_by_keys_too(url: str) -> None:
    with person_at("run", "-i", "-H", url, "--name", "web", "--", "sh", "-c", SAYER) as person:
        person.expect(b"ready")
        person.type(KEYS)
        person.expect(left(url, "attach"))

        assert person.wait() == 0
    assert state(url) == "running"


def test_in_the_background_the_terminal_is_not_touched(url: str) -> None:
    """Whoever reads or changes a terminal from there is stopped."""
    started(url, script="echo ready; exec sleep 1000")
    ours = " ".join((*HOLDFAST, "attach", "--no-stdin", "-H", url, "web"))
    person = Person("bash", "-i", env={"PS1": "$ "})
    try:
        person.type(f"{ours} & echo be''gun\n".encode())
        person.expect(b"begun")
        person.expect(b"ready")
        person.type(b"kill -INT %1; wait %1; echo code $?\n")
        person.expect(b"code 130")
        person.type(b"exit\n")
        person.wait()
    finally:
        person.close()
    assert state(url) == "running"


# Without a connection.


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("attach", ()),
        ("attach", ("-t",)),
        ("attach --no-stdin", ()),
        ("logs -f", ()),
    ],
    ids=["pipes", "a terminal", "watching", "logs"],
)
def test_without_a_connection_the_interrupt_ends_the_command_and_says_what_is_left(
    command: str, options: tuple[str, ...]
) -> None:
    """The client tries for an hour; it is the user who decides."""
    with program_at("--durability", "off") as (server, url):
        started(url, *options, script="echo ready; exec sleep 1000")
        with person_at(*command.split(), "--reconnect", "1h", "-H", url, "web") as person:
            person.expect(b"ready")
            server.send_signal(signal.SIGTERM)
            person.expect(b"connection lost, trying again...")
            person.type(b"\x03")
            person.expect(
                f"holdfast: no connection to {url}; web is left running there;"
                f" 'holdfast {command} -H {url} web' comes back\r\n".encode()
            )

            assert person.wait() == 130
            assert person.modes() == person.modes_before


def test_any_other_command_says_that_what_runs_goes_on() -> None:
    with program_at("--durability", "off") as (server, url):
        started(url, "-i")
        with person_at("write", "--reconnect", "1h", "-H", url, "web") as person:
            person.type(b"hello\n")
            eventually_sync(lambda: b"got hello" in holdfast("logs", "-H", url, "web").stdout)
            server.send_signal(signal.SIGTERM)
            person.expect(b"connection lost, trying again...")
            person.type(b"\x03")
            person.expect(f"holdfast: no connection to {url}; what runs there goes on\r\n".encode())

            assert person.wait() == 130


def test_what_cannot_be_left_is_said_to_end_with_its_session() -> None:
    with program_at("--durability", "off") as (server, url):
        command = ("exec", "--reconnect", "1h", "-H", url, "--name", "web", "--", "sh", "-c", SAYER)
        with person_at(*command) as person:
            person.expect(b"ready")
            server.send_signal(signal.SIGTERM)
            person.expect(b"connection lost, trying again...")
            person.type(b"\x03")
            person.expect(f"holdfast: no connection to {url}; web ends there with its session, soon".encode())

            assert person.wait() == 130
