"""Masks that many take and give at the same moment: none is left behind, and none is taken from its user."""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from pathlib import Path

import pytest

import hatch_build

SOURCE = Path(__file__).resolve().parents[2] / hatch_build.NATIVE / "mask.c"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

USERS = 4
ROUNDS = 2000


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions of ``mask.c``.  Locks belong to descriptors, so that threads compete as processes do."""
    compiler = hatch_build.host_compiler()
    if compiler is None:
        pytest.skip("there is no compiler")
    library = tmp_path_factory.mktemp("mask") / "mask.so"
    subprocess.run([*compiler.words, "-shared", "-fPIC", "-O2", "-o", library, SOURCE], check=True)
    return ctypes.CDLL(str(library))


class Together:
    """Threads that take their steps at the same moment, and what they saw."""

    def __init__(self, masks: ctypes.CDLL, path: Path) -> None:
        self.masks = masks
        self.path = path
        self.line = threading.Barrier(USERS, timeout=60)
        self.wrong: list[str] = []

    def run(self, *users: threading.Thread) -> list[str]:
        for user in users:
            user.start()
        for user in users:
            user.join()
        return self.wrong

    def take(self) -> int:
        fd: int = self.masks.mask_take(os.fsencode(self.path))
        return fd

    def give(self, fd: int) -> None:
        self.masks.mask_give(os.fsencode(self.path), fd)

    def all_give(self, number: int) -> None:
        for turn in range(ROUNDS):
            fd = self.take()
            self.line.wait()
            self.give(fd)
            self.line.wait()
            if number == 0 and self.path.exists():
                self.wrong.append(f"left behind in round {turn}")
            self.line.wait()

    def come_and_go(self) -> None:
        self.line.wait()
        for turn in range(ROUNDS):
            fd = self.take()
            if fd < 0 or not self.path.exists() or os.fstat(fd).st_ino != self.path.stat().st_ino:
                self.wrong.append(f"not there for its user in round {turn}")
            self.give(fd)


def test_of_those_who_give_a_mask_at_the_same_moment_one_removes_it(
    masks: ctypes.CDLL, tmp_path: Path
) -> None:
    """Each sees that it is not the last; one of them has to be."""
    together = Together(masks, tmp_path / ".git")

    wrong = together.run(
        *(threading.Thread(target=together.all_give, args=(number,)) for number in range(USERS))
    )

    assert wrong == []


def test_whoever_has_taken_a_mask_keeps_it_while_others_come_and_go(
    masks: ctypes.CDLL, tmp_path: Path
) -> None:
    """The one who removes it and the one who takes it never believe that they both have."""
    together = Together(masks, tmp_path / ".git")

    wrong = together.run(*(threading.Thread(target=together.come_and_go) for _ in range(USERS)))

    assert wrong == []
    assert os.listdir(tmp_path) == []
