"""Whoever writes the exec endpoint down and resumes it cannot be told from one who lost a connection."""

from __future__ import annotations

import asyncio
import os

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.suspended import Deed, Twin

NAMES = st.sampled_from(["a", "b", "k1", "k2", "k3"])
"""Those with a k belong to no client."""

RUNS = 2000 if os.environ.get("HOLDFAST_LONG") else 200

DEEDS = st.one_of(
    st.builds(Deed, st.just("start"), NAMES, st.integers(0, 80), st.booleans()),
    st.builds(Deed, st.just("say"), NAMES, st.integers(1, 60)),
    st.builds(Deed, st.just("say"), NAMES, st.integers(1, 60)),
    st.builds(Deed, st.just("end"), NAMES, st.integers(0, 3)),
    st.builds(Deed, st.just("close"), NAMES),
    st.builds(Deed, st.just("read"), NAMES, st.integers(0, 30), st.booleans()),
    st.builds(Deed, st.just("ack"), NAMES, st.integers(0, 10), st.sampled_from([False, False, False, True])),
    st.just(Deed("list")),
    st.builds(Deed, st.just("wait"), st.just(""), st.integers(0, 50)),
    st.builds(Deed, st.just("lose"), st.just(""), st.integers(0, 70)),
)


@settings(max_examples=RUNS, deadline=None)
@given(st.lists(DEEDS, min_size=5, max_size=40))
def test_a_restart_is_a_lost_connection_to_its_clients(deeds: list[Deed]) -> None:
    """Numbers, pages, answers, what is retained and what expires are the same, at every step."""

    async def play(*, suspends: bool) -> list[object]:
        twin = Twin(suspends=suspends)
        await twin.begin()
        for deed in deeds:
            await twin.do(deed)
        return twin.ledger

    plain = asyncio.run(play(suspends=False))
    resumed = asyncio.run(play(suspends=True))

    assert resumed == plain
