"""Programs that are run to see whether they can be."""

from __future__ import annotations

import os


class Trial:
    """A program that is run to see whether it can be."""

    def __init__(self, argv: list[str]) -> None:
        self._name = argv[0]
        self._pid = 0
        self._said = os.memfd_create("holdfast-trial")
        self._result: str | None = None
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
        actions = [*nowhere, (os.POSIX_SPAWN_DUP2, self._said, 2)]
        try:
            self._pid = os.posix_spawn(argv[0], argv, {}, file_actions=actions, setsigmask=[])
        except OSError as error:
            self._result = f"{argv[0]}: {error.strerror}"
            os.close(self._said)

    def failure(self) -> str:
        """Wait for its end.  What was wrong; empty if nothing was."""
        if self._result is None:
            code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            text = os.pread(self._said, 500, 0).decode(errors="replace").strip()
            self._result = "" if code == 0 else text or f"{self._name} ended with {code}"
            os.close(self._said)
        return self._result
