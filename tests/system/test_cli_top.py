"""``holdfast top`` at a real terminal: what it shows, what its keys do, and the terminal afterwards."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.faults import Fault, Trouble, Way, bad_network
from tests.fakes.server import eventually_sync, program_at
from tests.fakes.terminal import HOLDFAST, SIZE_TELLER, Person, holdfast, person_at

pytestmark = pytest.mark.slow

QUICK = ("--interval", "100ms")
UP, DOWN = b"\x1b[A", b"\x1b[B"
SCREEN_BACK = b"\x1b[?1049l"


@pytest.fixture
def url() -> Iterator[str]:
    """A server of its own for each test: the table has nothing of another one's."""
    with program_at() as (_, url):
        yield url


@pytest.fixture
def jobs(url: str) -> None:
    """Two processes: one writes all the time, one does nothing."""
    for name, script in (("loud", "while :; do echo x; done"), ("quiet", "sleep 1000; :")):
        assert holdfast("run", "-d", "--name", name, "-H", url, "--", "sh", "-c", script).returncode == 0


def running(url: str) -> list[str]:
    return holdfast("ps", "-q", "-H", url).stdout.decode().split()


def is_as_before(person: Person) -> bool:
    return person.modes() == person.modes_before and person.shown.rstrip().endswith(SCREEN_BACK)


def test_figures_are_kept_up_to_date_until_the_user_leaves(url: str, jobs: None) -> None:
    with person_at("top", "-H", url, *QUICK) as person:
        person.expect(b"2 processes")
        person.expect(b"> loud")
        # Another sample with other figures, without anything typed.
        for _ in range(3):
            person.expect(b"running")
        raw = person.modes() != person.modes_before
        person.type(b"q")
        code = person.wait()

        assert (code, raw, is_as_before(person)) == (0, True, True)
        assert re.search(rb"loud +running +[\d.]+ +[\d.]+[KM] +[\d.]+[KMG]", person.shown)
    assert sorted(running(url)) == ["loud", "quiet"]


def test_the_screen_is_emptied_once_and_then_changed_where_it_has_to_be(url: str, jobs: None) -> None:
    """Whatever is emptied and drawn again flickers."""
    with person_at("top", "-H", url, *QUICK, "--sort", "name") as person:
        person.expect(b"> loud")
        for _ in range(5):
            person.expect(b"\x1b[?2026l")
        person.type(b"q")
        person.wait()

        assert person.shown.count(b"\x1b[2J") == 1
        assert person.shown.count(b"COMMAND") == 1


def test_a_process_is_ended_after_a_question_and_spared_without_a_yes(url: str, jobs: None) -> None:
    with person_at("top", "-H", url, *QUICK, "--sort", "name") as person:
        person.expect(b"> loud")
        person.type(DOWN)
        person.expect(b"> quiet")
        person.type(b"k")
        person.expect(b"end quiet and everything it has started? (y/n)")
        person.type(b"n")
        person.expect(b"q quit")
        spared = running(url)
        person.type(b"k")
        person.expect(b"end quiet and everything it has started? (y/n)")
        person.type(b"y")
        person.expect(b"quiet was ended")
        person.type(b"q")

        assert person.wait() == 0
    assert sorted(spared) == ["loud", "quiet"]
    assert running(url) == ["loud"]


def test_words_and_orders_are_typed(url: str, jobs: None) -> None:
    with person_at("top", "-H", url, *QUICK) as person:
        person.expect(b"2 processes")
        person.type(b"/qui")
        person.expect(b"/qui_")
        person.type(b"\r")
        person.expect(b"with 'qui'")
        person.type(b"s")
        person.expect(b"by memory, with 'qui'")
        person.type(b"\x1b")
        person.expect(b"2 processes")
        person.type(b"\x03")

        assert person.wait() == 130
        assert is_as_before(person)


def test_a_process_is_attached_to_and_left_for_the_table(url: str) -> None:
    run = ("run", "-d", "-t", "--name", "teller", "-H", url, "--", sys.executable, "-c", SIZE_TELLER)
    assert holdfast(*run).returncode == 0
    with person_at("top", "-H", url, *QUICK, "--filter", "teller", rows=30, cols=100) as person:
        person.expect(b"> teller")
        person.type(b"\r")
        person.expect(SCREEN_BACK)
        person.expect(b"size 100 30")
        person.type(b"hello\r")
        person.expect(b"got hello")
        person.type(b"\x10\x11")
        person.expect(b"press a key to go back to the table")
        person.type(b" ")
        person.expect(b"> teller")
        person.type(b"q")

        assert person.wait() == 0
        assert is_as_before(person)
    assert "teller" in running(url)


def test_the_log_is_shown_and_its_end_is_the_table(url: str, tmp_path: Path) -> None:
    # Written so that what it says is not to be found in its command line.
    script = f"echo said be''fore; until [ -e {tmp_path}/end ]; do sleep 0.05; done; echo said af''ter"
    assert holdfast("run", "-d", "--name", "log", "-H", url, "--", "sh", "-c", script).returncode == 0
    with person_at("top", "-H", url, *QUICK, "--filter", "log") as person:
        person.expect(b"> log")
        person.type(b"l")
        person.expect(b"said before")
        person.type(b"\x03")  # Leaves the log, and ends nothing.
        person.expect(b"press a key to go back to the table")
        person.type(b" ")
        person.expect(b"> log")
        person.type(b"l")
        person.expect(b"said before")
        (tmp_path / "end").touch()
        person.expect(b"said after")
        person.expect(b"press a key to go back to the table")
        person.type(b" ")
        person.expect(b"0 of 0 processes")
        person.type(b"q")

        assert person.wait() == 0


def test_without_colours_there_are_none(url: str, jobs: None) -> None:
    with person_at("top", "-H", url, *QUICK, env={"NO_COLOR": "1"}) as person:
        person.expect(b"> loud")
        person.type(b"q")
        person.wait()

        styles = set(re.findall(rb"\x1b\[([\d;]*)m", person.shown))
        assert styles <= {b"", b"0", b"1", b"2", b"7"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_the_terminal_as_it_was(url: str, number: signal.Signals, code: int) -> None:
    with person_at("top", "-H", url, *QUICK) as person:
        person.expect(b"process")
        person.process.send_signal(number)

        assert person.wait() == code
        assert is_as_before(person)


def test_a_server_that_is_gone_ends_it_with_the_reason_on_the_screen_of_before() -> None:
    with program_at() as (server, url), person_at("top", "-H", url, *QUICK, "--reconnect", "0") as person:
        person.expect(b"0 processes")
        server.send_signal(signal.SIGTERM)
        code = person.wait()

        assert (code, person.modes() == person.modes_before) == (125, True)
        assert b"holdfast: " in person.shown[person.shown.rindex(SCREEN_BACK) :]


async def test_a_lost_connection_is_told_and_the_table_goes_on_behind_it(url: str, jobs: None) -> None:
    def cut(number: int) -> Fault | None:
        return Fault(Trouble.CUT, Way.BACK, 9000) if number == 0 else None

    def sit(bad: str) -> tuple[int, bytes]:
        with person_at("top", "-H", bad, *QUICK) as person:
            person.expect(b"connection lost, trying again...")
            person.expect(b"connected again")
            for _ in range(3):  # Other figures than before.
                person.expect(b"running")
            person.type(b"q")
            return person.wait(), person.shown

    async with bad_network(url, cut) as (bad, _):
        code, shown = await asyncio.to_thread(sit, bad)

    assert code == 0
    assert b"\r\nholdfast: connection lost" not in shown  # Not in the midst of the table.


# On the screen of a terminal that others have written.

TMUX = shutil.which("tmux")


class Tmux:
    """tmux as a terminal whose screen can be read."""

    def __init__(self, folder: Path, *command: str) -> None:
        self._socket = folder / "tmux"
        options = ("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24")
        self._run(*options, *command)

    def _run(self, *arguments: str) -> str:
        command = [TMUX or "tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    def screen(self) -> list[str]:
        return self._run("capture-pane", "-p").split("\n")[:-1]

    def resize(self, cols: int, rows: int) -> None:
        self._run("resize-window", "-x", str(cols), "-y", str(rows))

    def close(self) -> None:
        subprocess.run([TMUX or "tmux", "-S", str(self._socket), "kill-server"], check=False, timeout=30)


@pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
def test_the_table_fits_the_screen_of_any_size(url: str, jobs: None, tmp_path: Path) -> None:
    tmux = Tmux(tmp_path, *HOLDFAST, "top", "-H", url, *QUICK, "--sort", "name")
    try:
        for cols, rows in ((80, 24), (40, 12), (30, 60), (200, 5), (80, 24)):
            tmux.resize(cols, rows)
            first = 2 if rows >= 7 else 0  # Below a title and the sums, if there is room for them.

            def is_drawn(rows: int = rows, first: int = first, cols: int = cols) -> bool:
                screen = tmux.screen()
                if len(screen) != rows:
                    return False
                return (
                    screen[first].startswith("  NAME")
                    and ("COMMAND" in screen[first]) == (cols > 50)
                    and screen[first + 1].startswith("> loud")
                    and screen[first + 2].startswith("  quiet")
                    and screen[-1].startswith(("enter attach", "q quit"))
                    and not any(screen[first + 3 : -1])
                )

            eventually_sync(is_drawn)
    finally:
        tmux.close()
