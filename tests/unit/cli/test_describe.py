"""Processes and their ends as JSON."""

from __future__ import annotations

import json

from holdfast.cli import describe
from holdfast.model import Chunk, Kind, Listing, Outcome, Stream, Usage


def test_a_process_has_the_members_of_the_protocol() -> None:
    found = Listing(
        "n", 7, ["a", "\udcff"], "/x", True, 1.5, "closed", 143, Outcome(Kind.SIGNAL, signal=15), 4, 9
    )

    shown = describe.listing(found)

    assert json.loads(json.dumps(shown)) == {
        "name": "n",
        "pid": 7,
        "argv": ["a", "\ufffd"],
        "cwd": "/x",
        "tty": True,
        "startedAtMs": 1500,
        "state": "closed",
        "exitCode": 143,
        "outcome": {"kind": "signal", "exitCode": None, "signal": "SIGTERM", "by": None, "detail": None},
        "nextSeq": 4,
        "retainedBytes": 9,
        "kept": False,
    }


def test_a_chunk_is_its_bytes_in_base64() -> None:
    shown = describe.chunk(Chunk(3, Stream.PTY, b"\xff\0"))

    assert shown == {"seq": 3, "stream": "pty", "data": "/wA="}


def test_what_is_not_known_is_null() -> None:
    assert (describe.outcome(None), describe.usage(None)) == (None, None)


def test_times_are_milliseconds() -> None:
    assert describe.usage(Usage(1999, 0, 5)) == {"userMs": 1, "systemMs": 0, "maxRssBytes": 5}
