"""What the kernel refuses in directories that everybody may write to."""

from __future__ import annotations

import os

import pytest

from holdfast.host.files import sticky

US, BOB, EVE = os.geteuid(), 4711, 4712
SHARED, GROUP, OURS, NOT_STICKY = 0o41777, 0o41775, 0o41755, 0o40777


def facts(mode: int, uid: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 0, uid, 0, 0, 0, 0, 0))


def strict(monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    monkeypatch.setattr(sticky, "level", lambda setting: level)


@pytest.mark.parametrize(
    ("level", "mode", "owner", "link", "expected"),
    [
        (1, SHARED, EVE, BOB, False),
        (1, SHARED, EVE, US, True),
        (1, SHARED, BOB, BOB, True),
        (1, GROUP, EVE, BOB, True),
        (1, NOT_STICKY, EVE, BOB, True),
        (0, SHARED, EVE, BOB, True),
    ],
)
def test_nobody_falls_into_a_link_that_somebody_else_has_put_there(
    monkeypatch: pytest.MonkeyPatch, level: int, mode: int, owner: int, link: int, *, expected: bool
) -> None:
    strict(monkeypatch, level)

    assert sticky.may_follow(facts(mode, owner), facts(0o120777, link)) is expected


@pytest.mark.parametrize(
    ("level", "mode", "owner", "file", "expected"),
    [
        (1, SHARED, EVE, BOB, False),
        (1, SHARED, EVE, US, True),
        (1, SHARED, BOB, BOB, True),
        (1, GROUP, EVE, BOB, True),
        (2, GROUP, EVE, BOB, False),
        (2, OURS, EVE, BOB, True),
        (1, NOT_STICKY, EVE, BOB, True),
        (0, SHARED, EVE, BOB, True),
    ],
)
def test_nobody_writes_to_a_file_that_somebody_else_has_put_there(
    monkeypatch: pytest.MonkeyPatch, level: int, mode: int, owner: int, file: int, *, expected: bool
) -> None:
    strict(monkeypatch, level)

    assert sticky.may_write(facts(mode, owner), facts(0o100666, file)) is expected


def test_the_kernel_is_asked_how_strict_it_is() -> None:
    with open("/proc/sys/fs/protected_symlinks") as file:
        assert sticky.level("protected_symlinks") == int(file.read())
    assert sticky.level("no_such_setting") == 2
