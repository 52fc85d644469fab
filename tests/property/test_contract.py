"""Random scenarios against the model of the contract, and a ledger of every byte.

The usual run plays more than a hundred scenarios, the long form ten times as many;
``HOLDFAST_PROPERTY_RUNS`` asks for a number.  Several are played at once, which is load and saves time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.backends import LONG
from tests.fakes.server import commands, eventually_sync, open_files, program_at, zombies
from tests.property.model import (
    COMMANDS,
    NAMES,
    Control,
    Read,
    Reconnect,
    Start,
    Step,
    Write,
    generated,
)
from tests.property.player import play_all

RUNS = int(os.environ.get("HOLDFAST_PROPERTY_RUNS", "1600" if LONG else "160"))
TOGETHER = 8
"""Scenarios played at once."""

names = st.sampled_from(NAMES)
sizes = st.sampled_from((0, 1, 10, 1000, 4096, 30_000))

starts = st.builds(
    Start,
    names,
    st.sampled_from(sorted(COMMANDS)),
    st.integers(0, 1 << 32),
    st.sampled_from(("", "", "", "read", "terminate")),
)
writes = st.builds(Write, names, st.lists(sizes, min_size=1, max_size=4).map(tuple), st.booleans())
reads = st.builds(
    Read, names, st.integers(0, 5), st.sampled_from((None, 0, 1, 100, 10_000)), st.sampled_from((0, 0, 1, 20))
)
controls = st.builds(Control, names, st.sampled_from(("signal", "terminate", "settle", "settle")))
reconnects = st.builds(
    Reconnect, st.sampled_from(("close", "abort")), st.lists(st.tuples(names, sizes), max_size=5).map(tuple)
)
steps: st.SearchStrategy[Step] = st.one_of(starts, starts, writes, writes, reads, controls, reconnects)
scenarios = st.lists(st.lists(steps, min_size=10, max_size=30), min_size=TOGETHER, max_size=TOGETHER)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One server for all runs; when they are over it holds nothing of them but what it still retains."""
    with program_at() as (server, url):
        idle, files = commands(server.pid), open_files(server.pid)
        yield url
        eventually_sync(lambda: commands(server.pid) <= idle)
        eventually_sync(lambda: open_files(server.pid) <= files)
        assert zombies(server.pid) == []


@pytest.mark.slow
@pytest.mark.timeout(max(120, RUNS))
@settings(
    max_examples=-(-RUNS // TOGETHER),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scenarios)
def test_whatever_clients_do_the_contract_holds_and_no_byte_is_lost(
    url: str, scenarios: list[list[Step]]
) -> None:
    """Orders of events that nobody thought of are where servers break."""
    asyncio.run(play_all(url, scenarios))


def test_the_model_knows_what_the_generator_says() -> None:
    """A ledger that expects nothing would always be content."""
    out, err, code = generated(3)

    assert len(out) + len(err) > 0
    assert 0 <= code < 4
    assert generated(3) == (out, err, code)
    assert generated(4) != (out, err, code)
