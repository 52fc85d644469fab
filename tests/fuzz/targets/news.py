"""What shims tell, and what is kept of processes that have ended: packed and read again."""

from __future__ import annotations

import struct

from holdfast.engine.ended import PACK_MOST, EndedProcess, pack
from holdfast.engine.ring import Budget, Ring
from holdfast.host.orders import REPORT_MOST, read_report
from holdfast.model import Chunk, Denied, Exit, Kind, Outcome, Stream, Usage
from holdfast.reports import News
from holdfast.sandbox import Denial

from .draw import Draw

_HEAD = struct.Struct("IiII3Q")

NEWS_SEEDS = (
    *(_HEAD.pack(news.value, 7, 3, 9, 1, 2, 3) for news in News),
    _HEAD.pack(News.SURVIVORS.value, 0, 0, 0, 0, 0, 0) + struct.pack("3i", 1, 2, 3),
    _HEAD.pack(News.DENIAL.value, 2, 0, 0, 0, 0, 0) + b"openat\0/x\xff",
)
PAST_SEEDS = (b"", bytes(range(60)), bytes(range(255, 100, -1)), b"\x01" * 50)


def check_report(data: bytes) -> None:
    """A report is read as it was written; what is none is a ValueError, or too short."""
    data = data[:REPORT_MOST]
    try:
        found = read_report(data)
    except struct.error:
        assert len(data) < _HEAD.size or (len(data) - _HEAD.size) % 4
        return
    except ValueError:
        assert struct.unpack_from("I", data)[0] not in {news.value for news in News}
        return
    what, value, detail, shim, user, system, peak = _HEAD.unpack_from(data)
    if found.news is News.STATE:
        assert (found.value, found.detail, found.shim) == (value, detail, shim)
        return
    if found.news is News.DENIAL:
        assert found.denial is not None
        assert found.denial.count == value
        return
    assert found.news.value == what
    assert (found.value, found.detail, found.shim) == (value, detail, shim)
    assert found.usage == Usage(user, system, peak * 1024)
    assert len(found.pids) == (len(data) - _HEAD.size) // 4
    assert isinstance(found.by_signal or found.alone, bool)


def check_past(data: bytes) -> None:
    """A process that was packed tells the same as before."""
    draw = Draw(data)
    budget = Budget(1 << 20)
    ring = Ring(limit=1 << 20, chunks=100, budget=budget)
    seq = 0
    for _ in range(draw.below(8)):
        seq += 1
        ring.append(Chunk(seq, draw.pick(list(Stream)), draw.some(200) * (1 + draw.below(20))))
    outcome = Outcome(
        draw.pick(list(Kind)), draw.number(), draw.pick((None, 9)), draw.pick((None, "client")), draw.text()
    )
    usage = draw.pick((None, Usage(draw.below(9), draw.below(9), 1 << 40)))
    denials = tuple(Denial(draw.text(), draw.text(), draw.below(9)) for _ in range(draw.below(3)))
    denied = draw.pick((None, Denied(bool(draw.below(2)), bool(draw.below(2)), denials)))
    end = Exit(draw.number(), outcome, usage, tuple(range(draw.below(3))), denied)

    packed = pack(7, seq + 3, end, ring, terminal=bool(draw.below(2)))

    if packed is None:
        assert ring.total > PACK_MOST
        return
    past = EndedProcess(packed, budget)
    assert (past.pid, past.next_seq, past.exit, past.exit_code) == (7, seq + 3, end, end.code)
    assert list(past.try_read().chunks) == list(ring.after(0))
    assert past.retained() == ring.total
    past.forget()
    assert budget.used == 0
