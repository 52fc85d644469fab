"""A command that cannot do what it was asked for: the words, and the exit code (pure)."""

from __future__ import annotations

OWN = 125
"""Our own failure: told apart from what a process may answer, as with docker."""

NOT_EXECUTABLE = 126
NOT_FOUND = 127
TIMEOUT = 124
BROKEN_PIPE = 141
INTERRUPTED = 130


class Failure(Exception):
    """Ends a command; ``str`` of this is for the user and says what to do next, if we know."""

    def __init__(self, words: str, code: int = OWN) -> None:
        super().__init__(words)
        self.code = code
