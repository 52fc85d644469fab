"""A process that is written down and resumed, at any point of its life, goes on as if it had not been."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model import PLAIN, ProcessTerms
from tests.property.scripted import Deed, Life

RUNS = 2000 if os.environ.get("HOLDFAST_LONG") else 200

DEEDS = st.one_of(
    st.builds(Deed, st.just("say"), st.integers(1, 40), st.booleans()),
    st.builds(Deed, st.just("write"), st.integers(0, 20), st.booleans()),
    st.just(Deed("hear")),
    st.builds(Deed, st.just("finish"), st.integers(0, 20), st.booleans()),
    st.builds(Deed, st.just("exit"), st.integers(0, 3), st.booleans()),
    st.builds(Deed, st.just("let go"), st.just(0), st.booleans()),
    st.just(Deed("empty")),
    st.builds(Deed, st.just("end"), st.integers(1, 30), st.booleans()),
    st.builds(Deed, st.just("read"), st.integers(0, 10), st.booleans()),
    st.builds(Deed, st.just("retain"), st.integers(0, 80)),
    st.builds(Deed, st.just("valve"), st.just(0), st.booleans()),
    st.builds(Deed, st.just("wait"), st.integers(0, 30)),
    st.just(Deed("restart")),
    st.just(Deed("restart")),
)

TERMS = st.sampled_from(
    [
        PLAIN,
        ProcessTerms(timeout=2.0),
        ProcessTerms(idle_timeout=1.5, grace=0.7),
        ProcessTerms(output=60),
        ProcessTerms(drain=1.0),
        ProcessTerms(timeout=3.0, grace=1.0, output=100, drain=0.5),
    ]
)


@settings(max_examples=RUNS, deadline=None)
@given(terms=TERMS, deeds=st.lists(DEEDS, min_size=3, max_size=30))
def test_a_process_that_was_written_down_goes_on_as_it_was(terms: ProcessTerms, deeds: list[Deed]) -> None:
    """Numbers, pages, what is retained, identifiers of writes, timeouts and orders to its shim."""

    def live(*, suspends: bool) -> list[object]:
        life = Life(terms, suspends=suspends)
        try:
            for deed in deeds:
                life.do(deed)
        finally:
            life.bury()
        return life.ledger

    assert live(suspends=True) == live(suspends=False)
