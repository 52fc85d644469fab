"""Whoever reads and writes a process in an arena cannot tell that its server was killed, and how often."""

from __future__ import annotations

import os
from contextlib import ExitStack

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.durable import Durable, Step

RUNS = 1000 if os.environ.get("HOLDFAST_LONG") else 150

SIZES = st.one_of(st.integers(1, 50), st.integers(1, 5000), st.integers(1, 60_000))
NUMBERS = st.integers(0, 40)

STEPS = st.one_of(
    st.builds(Step, st.just("say"), SIZES, NUMBERS),
    st.builds(Step, st.just("say"), SIZES, NUMBERS),
    st.builds(Step, st.just("take"), st.just(0), NUMBERS),
    st.builds(Step, st.just("take"), st.just(0), NUMBERS),
    st.builds(Step, st.just("kill")),
    st.builds(Step, st.just("kill_taking"), st.just(0), NUMBERS),
    st.builds(Step, st.just("kill_turning"), st.integers(1, 60_000)),
    st.builds(Step, st.just("kill_staging"), st.integers(1, 60_000)),
    st.builds(Step, st.just("kill_writing"), st.one_of(st.integers(0, 300), st.integers(0, 9000)), NUMBERS),
    st.builds(Step, st.just("limit"), st.sampled_from([1, 100, 4000, 100_000, 1 << 40])),
    st.builds(Step, st.just("write"), st.one_of(st.integers(0, 3000), st.integers(0, 300_000)), NUMBERS),
    st.builds(Step, st.just("write"), st.integers(0, 300), NUMBERS),
    st.builds(Step, st.just("read"), SIZES),
    st.builds(Step, st.just("exit"), st.integers(0, 600)),
    st.builds(Step, st.just("fact"), st.integers(0, 6000), NUMBERS),
)
LAST = st.builds(Step, st.just("finish"), st.integers(0, 2))


@settings(max_examples=RUNS, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=60), st.lists(st.one_of(STEPS, LAST), max_size=20))
def test_a_history_with_kills_is_one_without(steps: list[Step], last: list[Step]) -> None:
    """Chunks, numbers, gaps, costs, identifiers, input, facts: all are as if nobody had died."""
    with ExitStack() as stack:
        durable = Durable(stack)
        for step in (*steps, *last):
            durable.do(step)
        durable.finish()
