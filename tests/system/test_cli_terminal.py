"""``holdfast run -t`` at a real terminal: keys, sizes, full-screen programs, and the terminal afterwards."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.fakes.server import eventually_sync, program_at
from tests.fakes.terminal import HOLDFAST, SIZE_TELLER, Person, person_at

pytestmark = pytest.mark.slow

FULL_SCREEN = (
    "import curses\n"
    "def main(screen):\n"
    "    rows, cols = screen.getmaxyx()\n"
    "    screen.addstr(0, 0, f'full {rows} {cols}')\n"
    "    screen.refresh()\n"
    "    while (key := screen.getch()) != ord('q'):\n"
    "        screen.addstr(1, 0, f'key {key} ')\n"
    "        screen.refresh()\n"
    "curses.wrapper(main)\n"
    "raise SystemExit(9)\n"
)


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def test_the_size_is_there_at_the_start_and_a_change_is_seen() -> None:
    """Whoever draws a screen draws it once, for the size that there is."""
    with person_at("run", "-t", "--", *python(SIZE_TELLER), rows=33, cols=101) as person:
        person.expect(b"size 101 33")
        person.resize(40, 120)
        person.expect(b"size 120 40")
        person.type(b"\x03")

        assert person.wait() == 130


def test_keys_reach_the_program_and_are_shown_once() -> None:
    """Its terminal shows what is typed, ours must not: else each letter would be there twice."""
    with person_at("run", "-t", "--", *python(SIZE_TELLER)) as person:
        person.expect(b"size")
        person.type(b"hello\r")
        shown = person.expect(b"got hello")
        person.type(b"\x04")

        assert person.wait() == 1  # EOFError in the program.
        assert shown.count(b"hello") == 2


def test_the_terminal_is_as_before_after_the_end_and_after_the_interrupt() -> None:
    """A shell that shows nothing of what is typed is what people remember of a program."""
    with person_at("run", "-t", "--", *python(SIZE_TELLER)) as person:
        person.expect(b"size")
        raw = person.modes()
        person.type(b"\x03")
        code = person.wait()

        assert code == 130
        assert raw != person.modes_before
        assert person.modes() == person.modes_before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_as_before_when_we_are_told_to_end(number: signal.Signals) -> None:
    with person_at("run", "-t", "--", *python(SIZE_TELLER)) as person:
        person.expect(b"size")
        person.process.send_signal(number)
        code = person.wait()

        assert code == 128 + signal.SIGTERM  # How the program ended.
        assert person.modes() == person.modes_before


def test_the_terminal_is_as_before_when_the_server_dies() -> None:
    command = ("run", "-t", "--reconnect", "0", "--", *python(SIZE_TELLER))
    with program_at() as (server, url), person_at(*command, env={"HOLDFAST_URL": url}) as person:
        person.expect(b"size")
        server.send_signal(signal.SIGTERM)
        code = person.wait()

        assert code == 125
        assert person.modes() == person.modes_before
        assert b"holdfast: " in person.shown


def test_without_a_terminal_of_its_own_the_interrupt_is_passed_on() -> None:
    """^C means the program, not us: it may want to save something."""
    script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done"
    with person_at("run", "--", "sh", "-c", script) as person:
        person.expect(b"ready")
        person.type(b"\x03")
        person.expect(b"caught")

        assert person.wait() == 5
        assert person.modes() == person.modes_before


def test_a_second_interrupt_ends_a_program_that_does_not_listen() -> None:
    script = "trap 'echo heard' INT; echo ready; while :; do sleep 0.1; done"
    with person_at("run", "--grace", "0", "--", "sh", "-c", script) as person:
        person.expect(b"ready")
        person.type(b"\x03")
        person.expect(b"heard")
        person.type(b"\x03")

        assert person.wait() == 137


def test_a_full_screen_program_is_drawn_and_takes_keys() -> None:
    with person_at("run", "-t", "--", *python(FULL_SCREEN), rows=30, cols=90) as person:
        person.expect(b"full 30 90")
        person.type(b"x")
        person.expect(b"key 120")
        person.type(b"q")

        assert person.wait() == 9
        assert person.modes() == person.modes_before


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_less_pages_and_quits(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("".join(f"line {number}\n" for number in range(1000)))
    with person_at("run", "-t", "--", "less", str(text), rows=10) as person:
        person.expect(b"line 8")
        person.type(b" ")
        person.expect(b"line 17")
        person.type(b"q")

        assert person.wait() == 0
        assert person.modes() == person.modes_before


@pytest.mark.skipif(shutil.which("vi") is None, reason="vi is not installed")
def test_vi_writes_a_file(tmp_path: Path) -> None:
    target = tmp_path / "written"
    with person_at("run", "-t", "--", "vi", "-u", "NONE", str(target)) as person:
        person.expect(b"written")
        person.type(b"ihello from vi\x1b:wq\r")

        assert person.wait() == 0
    assert target.read_text() == "hello from vi\n"


def test_embedded_there_is_nothing_to_detach_from_and_the_program_is_told_the_keys() -> None:
    with person_at("run", "-t", "--", *python(SIZE_TELLER)) as person:
        person.expect(b"size")
        person.type(b"\x10\x11")
        person.expect(b"nothing to detach from")
        person.type(b"\x03")

        assert person.wait() == 130


def test_a_process_is_left_and_found_again() -> None:
    """The reason for a server: the terminal may go, the work stays."""
    with program_at() as (_, url):
        with person_at("run", "-t", "-H", url, "--name", "shell", "--", *python(SIZE_TELLER)) as person:
            person.expect(b"size 80 24")
            person.type(b"one\r")
            person.expect(b"got one")
            person.type(b"\x10\x11")
            person.expect(f"'holdfast attach -H {url} shell' comes back".encode())

            assert person.wait() == 0
            assert person.modes() == person.modes_before
        with person_at("attach", "-H", url, "shell", rows=50, cols=132) as person:
            person.expect(b"got one")  # What was said before is shown again.
            person.expect(b"size 132 50")
            person.type(b"two\r")
            person.expect(b"got two")
            person.type(b"\x03")

            assert person.wait() == 130
            assert person.modes() == person.modes_before


def test_other_keys_leave_and_the_first_of_them_alone_is_passed_on() -> None:
    with program_at() as (_, url):
        options = ("-t", "-H", url, "--detach-keys", "ctrl-a,d")
        with person_at("run", *options, "--", "cat", "-v") as person:
            person.type(b"\x01x\r")
            person.expect(b"^Ax")
            person.type(b"\x01d")

            assert person.wait() == 0


def test_standard_input_that_is_a_terminal_is_not_read_unless_asked_for() -> None:
    """Else a program in the background would stop, and one in a loop eat what is typed for the next."""
    with person_at("run", "--", "cat") as person:
        assert person.wait() == 0
    with person_at("run", "-i", "--", "cat") as person:
        person.type(b"typed\r")
        person.expect(b"typed\r\ntyped")
        person.type(b"\x04")

        assert person.wait() == 0


def test_a_window_that_is_closed_leaves_what_is_kept() -> None:
    with program_at() as (_, url):
        person = Person(*HOLDFAST, "run", "-t", "-H", url, "--name", "p", "--", *python(SIZE_TELLER))
        try:
            person.expect(b"size")
            person.process.send_signal(signal.SIGHUP)
            code = person.wait()
        finally:
            person.close()
        with person_at("ps", "-q", "-H", url) as listing:
            listing.expect(b"p\r\n")
            listing.wait()

    assert code == 129
    eventually_sync(lambda: person.process.poll() is not None)
