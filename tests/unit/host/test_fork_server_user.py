"""Commands of another user, at the level of the messages to a shim."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fakes.fork_server import (
    AT_DIRECTORY,
    AT_USER,
    CONFINED,
    FAILED,
    GUARD,
    HAS_STDIN,
    START,
    STARTED,
    Command,
    order,
)

pytestmark = [
    pytest.mark.timeout(2 * GUARD),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user"),
]

EVERYBODY = 2**32 - 1


def start(
    command: Command, user: Sequence[int], *argv: str, flags: int = 0, said: int | None = None, cwd: str = "/"
) -> int:
    """Send an order to start something as a user; give what the outputs come out of."""
    body = struct.pack(f"={len(user)}I", *user)
    body += b"".join(text.encode() + b"\0" for text in (cwd, argv[0], *argv, command.mark))
    ours, theirs = os.pipe()
    command.stdout = ours
    nothing = os.open("/dev/null", os.O_RDONLY)
    counts = (len(argv), 1, 0, 0)
    number = len(user) if said is None else said
    head = order(START, flags=HAS_STDIN | flags, counts=counts, size=len(body), user=number)
    command.send(head + body, nothing, theirs, theirs)
    os.close(theirs)
    os.close(nothing)
    return ours


def test_it_gets_exactly_these_numbers(command: Command) -> None:
    start(command, (4242, 4243, 7, 8), "/usr/bin/id")

    assert command.tells(STARTED).value
    assert command.line().replace("uid=", "").split()[0] == "4242"
    assert command.ended()[0] == 0


def test_the_shim_stays_what_it_was(command: Command) -> None:
    """And goes on to start commands of its own user."""
    start(command, (4242, 4243), "/usr/bin/id", "-u")
    shim = command.tells(STARTED).shim
    status = Path(f"/proc/{shim}/status").read_text()

    assert command.line() == "4242"
    assert "\nUid:\t0\t0\t0\t0\n" in status
    # Root without any capability could look into it still: its memory is as open as it was before.
    assert os.stat(f"/proc/{shim}/fd").st_uid == 0
    assert command.ended()[0] == 0
    os.close(command.stdout)
    start(command, (), "/usr/bin/id", "-u")
    command.tells(STARTED)
    assert command.line() == "0"
    assert command.ended()[0] == 0


@pytest.mark.parametrize("user", [(EVERYBODY, 1), (1, EVERYBODY)])
def test_the_number_that_changes_nothing_is_refused(command: Command, user: tuple[int, int]) -> None:
    start(command, user, "/usr/bin/id")

    report = command.tells(FAILED)

    assert (report.value, report.detail) == (errno.EINVAL, AT_USER)


def test_a_directory_is_entered_as_that_user(command: Command, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    start(command, (4242, 4243), "/usr/bin/id", cwd=str(tmp_path))

    report = command.tells(FAILED)

    assert (report.value, report.detail) == (errno.EACCES, AT_DIRECTORY)


ODD: dict[str, Callable[[Command], int]] = {
    "one number": lambda command: start(command, (1,), "/usr/bin/id"),
    "more than there are": lambda command: start(command, (1, 1), "/usr/bin/id", said=2**30),
    "more than a process has": lambda command: start(command, (1,) * 16_000, "/usr/bin/id", said=65_539),
    "a sandbox": lambda command: start(command, (1, 1), "/usr/bin/id", flags=CONFINED),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_order_that_makes_no_sense_starts_nothing(command: Command, odd: str) -> None:
    """Above all no command in a sandbox, whose witness would act for it with the rights of root."""
    ODD[odd](command)

    assert command.told() is None
    assert command.members() == set()
