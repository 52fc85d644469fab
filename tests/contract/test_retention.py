"""Retention: the newest output is kept, as much as is asked for."""

from __future__ import annotations

from holdfast.backend import HostedBackend
from tests.fakes.gate import Gate
from tests.fakes.process import sh
from tests.fakes.recorder import finished, record

MIB = 1 << 20


async def test_a_mebibyte_is_kept_without_being_asked(kept: HostedBackend) -> None:
    process = await kept.start(sh("head -c 5000000 /dev/zero"))
    recorder = await finished(process)

    page = await process.read()

    assert MIB - 65_536 <= process.retained() <= MIB
    assert page.chunks == recorder.chunks[-len(page.chunks) :]
    assert sum(len(chunk.data) for chunk in page.chunks) == process.retained()


async def test_what_was_dropped_shows_as_a_jump_in_the_numbers(kept: HostedBackend) -> None:
    process = await kept.start(sh("head -c 3000000 /dev/zero"))
    await finished(process)

    (first, *_) = (await process.read()).chunks

    assert first.seq > 1


async def test_less_is_kept_from_now_on_when_asked(kept: HostedBackend, gate: Gate) -> None:
    """A detached client's share is larger; when it is back, the rest is dropped at once."""
    script = "; ".join(f"{gate.shell}; head -c 1000 /dev/zero" for _ in range(4))
    process = await kept.start(sh(script))
    recorder = record(process)
    for count in range(1, 5):
        await gate.reached()
        gate.open()
        await recorder.when(lambda count=count: len(recorder.said()) == 1000 * count)  # type: ignore[misc]
    await recorder.until("closed")
    assert process.retained() == 4000

    process.retain(2500)
    assert process.retained() == 2000
    assert [chunk.seq for chunk in (await process.read()).chunks] == [3, 4]

    process.retain(0)
    assert process.retained() == 1000
    assert [chunk.seq for chunk in (await process.read()).chunks] == [4]


async def test_more_is_kept_from_now_on_when_asked(kept: HostedBackend) -> None:
    process = await kept.start(sh("head -c 5000000 /dev/zero"))
    process.retain(8 * MIB)
    await finished(process)

    assert process.retained() == 5_000_000
    page = await process.read()
    assert sum(len(chunk.data) for chunk in page.chunks) == 5_000_000


async def test_nothing_is_kept_when_nothing_is_asked_for(kept: HostedBackend) -> None:
    """Whoever is told everything and keeps it elsewhere need not have it twice."""
    process = await kept.start(sh("head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2"))
    process.retain(0)

    recorder = await finished(process)

    page = await process.read()
    assert len(recorder.said()) == 200_000
    assert (page.chunks, page.closed, process.retained()) == ([], True, 0)
    assert page.next_seq == process.next_seq == len(recorder.told) + 1
