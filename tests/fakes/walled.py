"""A server that can write to one directory only, for tests that send it what chance has made."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.soaking.fence import can_fence
from tests.fakes.server import Program, program_at
from tests.fakes.trees import NOBODY, host_of


@dataclass
class Walled:
    """Such a server, and its directory."""

    program: Program
    url: str
    base: Path
    owner: int | None
    """Whose the directory is, if the server is not of our own user."""

    def give(self) -> None:
        """Let the server have what the test has made in the directory."""
        if self.owner is not None:
            for directory, below, files in os.walk(self.base):
                for name in ("", *below, *files):
                    os.chown(os.path.join(directory, name), self.owner, self.owner, follow_symlinks=False)


@contextlib.contextmanager
def walled(*options: str, mounts: bool | None = None) -> Iterator[Walled]:
    """Start one.  Its wall are mounts of its own, or the rights of a user who owns nothing else.

    Where neither can be had, a mistake could do harm, and the test is skipped.  ``mounts`` is for the
    test of this.
    """
    above = Path(tempfile.mkdtemp(prefix="walled-"))
    base = above / "base"
    base.mkdir()
    try:
        if can_fence() if mounts is None else mounts:
            with program_at(*options, within=base) as (program, url):
                yield Walled(program, url, base, None)
        elif os.getuid() == 0:
            above.chmod(0o755)
            with host_of("nobody", *options) as host:
                made = Walled(host.program, host.url, base, NOBODY)
                made.give()
                yield made
        else:
            pytest.skip("this host lets nobody have mounts of their own, and we cannot be another user")
    finally:
        shutil.rmtree(above)
