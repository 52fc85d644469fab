"""A file to put over those that are denied."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile


def places() -> list[str]:
    """Where a placeholder can be.  The first is not to be seen in a sandbox: it has its own ``/dev``."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return ["/dev/shm", *([runtime] if runtime else []), tempfile.gettempdir(), os.path.expanduser("~")]  # noqa: S108


class Placeholder:
    """An empty file that nobody may read, to be put over others."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(
            os.path.realpath(tempfile.mkdtemp(prefix="holdfast-", dir=directory)), "denied"
        )
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0))

    def is_good(self) -> bool:
        """Whether it still is what it was made as."""
        try:
            facts = os.lstat(self.path)
        except OSError:
            return False
        return stat.S_ISREG(facts.st_mode) and not stat.S_IMODE(facts.st_mode) and not facts.st_size

    def remove(self) -> None:
        shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)
