"""How much is remembered of the identifiers of writes."""

from __future__ import annotations

import os

from holdfast.config import EngineLimits
from tests.unit.engine.test_stdin import _form, piped  # noqa: F401 (for both forms)


async def test_the_identifiers_that_are_remembered_are_bounded_in_bytes_too() -> None:
    """The newest one is remembered, whatever its length."""
    with piped(EngineLimits(write_id_bytes=5)) as pipe:
        for write_id in ("aaa", "bb", "c", "d" * 9):
            pipe.stdin.try_write(write_id[:1].encode(), write_id)
            if write_id == "c":
                pipe.stdin.try_write(b"B", "bb")
                pipe.stdin.try_write(b"A", "aaa")

        pipe.stdin.try_write(b"D", "d" * 9)
        pipe.stdin.try_write(b"C", "c")

        assert os.read(pipe.reader, 100) == b"abcAdC"
