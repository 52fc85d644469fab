"""Giant and deep JSON: each message is answered with what is wrong with it, and holds up nobody for long.

``HOLDFAST_LONG=1`` sends them as large as they may be.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from tests.fakes.attackers import answer, attacker, in_frames
from tests.fakes.backends import LONG
from tests.fakes.company import company, no_trace
from tests.fakes.frames import CONTINUATION, TEXT, Wire, frame_head
from tests.fakes.server import Program, program_at

MIB = 1 << 20
LARGEST = 64 * MIB if LONG else 4 * MIB
VALUES = 262_144

UNKNOWN = "exec-server stub does not implement `x` yet"
OVER = f"exceeds the limit of {VALUES} JSON values"


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    with program_at() as served:
        yield served


def many(piece: bytes) -> bytes:
    """So many of it that a message is as large as it may be."""
    return piece * ((LARGEST - 1000) // len(piece))


MESSAGES: dict[str, tuple[bytes, str]] = {
    "a long text": (b'"%b"' % many(b"x"), UNKNOWN),
    "text beyond ASCII": (b'"%b"' % many("é".encode()), UNKNOWN),
    "escapes": (b'"%b"' % many(rb"\n"), UNKNOWN),
    "hex escapes": (b'"%b"' % many(rb"\u00e9"), UNKNOWN),
    "a bad escape behind many": (b'"%b\\x"' % many(rb"a\n"), "invalid escape"),
    "a lone surrogate behind many": (b'"%b\\ud800"' % many(rb"\ud83d\ude00"), "end of hex escape"),
    "as many values as allowed": (b"[%b1]" % (b"1," * (VALUES - 5)), UNKNOWN),
    "as many objects as allowed": (b"[%b1]" % (b"{}," * (VALUES - 5)), UNKNOWN),
    "one value too many": (b"[%b1]" % (b"1," * (VALUES - 4)), OVER),
    "far too many": (b"[%b1]" % many(b"[],"), OVER),
    "far too many objects": (b"[%b1]" % many(b'{"a":1},'), OVER),
    "far too many members": (b"{%b}" % b",".join(b'"%d":1' % key for key in range(2 * VALUES)), OVER),
    "nested as deep as allowed": (b"[" * 126 + b"]" * 126, UNKNOWN),
    "one level too deep": (b"[" * 127 + b"]" * 127, "recursion limit exceeded"),
    "nested without end": (b'{"a":[' * 50_000, "recursion limit exceeded"),
    "a gigantic number": (many(b"9"), UNKNOWN),
    "a gigantic number that breaks off": (many(b"9") + b".", "invalid number"),
    "a gigantic exponent": (b"1e" + many(b"9"), UNKNOWN),
    "a gigantic fraction": (b"0." + many(b"1"), UNKNOWN),
    "a long key": (b'{"%b":1}' % many(b"k"), UNKNOWN),
    "a long key twice": (b'{"%b":1,"%b":1}' % ((b"k" * (LARGEST // 3),) * 2), "duplicate JSON object key"),
    "blanks": (many(b" ") + b"1", UNKNOWN),
    "commas in a text": (b'"%b"' % many(b",[{"), UNKNOWN),
}


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(600 if LONG else 120)
async def test_a_giant_message_is_answered_and_holds_up_nobody(served: tuple[Program, str]) -> None:
    """The figures are in the log: how long each kept the server busy, and a neighbour waiting."""
    program, url = served
    log = logging.getLogger(__name__)
    async with (
        no_trace(program, url, memory=8 * LARGEST),
        company(url, 1) as neighbours,
        attacker(url) as wire,
    ):
        for name, (params, words) in MESSAGES.items():
            text = b'{"id":7,"method":"x","params":%b}' % params
            before, started = cpu_seconds(program.pid), time.monotonic()
            neighbours.neighbours[0].worst = 0.0
            wire.writer.write(in_frames(text))
            await wire.writer.drain()
            told = await answer(wire, 7 if words is UNKNOWN else -1)
            await neighbours.is_well()
            used, took = cpu_seconds(program.pid) - before, time.monotonic() - started
            log.info(
                "%s: %.1f MiB, %.2f s of processor time, %.2f s in all, a neighbour waited %.2f s",
                name, len(text) / MIB, used, took, neighbours.worst,
            )  # fmt: skip
            error = told["error"]
            assert isinstance(error, dict)
            assert error["code"] == (-32601 if words is UNKNOWN else -32600), name
            assert words in error["message"], name


@pytest.mark.slow
@pytest.mark.stress
async def test_a_message_beyond_the_limit_ends_its_connection_and_no_other(
    served: tuple[Program, str],
) -> None:
    """It is refused by its length, before it is there."""
    program, url = served
    async with no_trace(program, url), company(url, 1):
        for heads in (
            frame_head(TEXT, 64 * MIB + 1),
            frame_head(TEXT, 1 << 62),
            frame_head(TEXT, 16, final=False) + bytes(16) + frame_head(CONTINUATION, 1 << 40),
        ):
            wire = await Wire.open(url)
            wire.writer.write(heads)
            frame = await wire.farewell()
            await wire.close()
            assert frame is not None
            assert frame.close_code == 1009
