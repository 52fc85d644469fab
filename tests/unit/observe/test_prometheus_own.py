"""Figures of our own process."""

from __future__ import annotations

import os
import resource
import time

import pytest

from holdfast.observe import prometheus
from holdfast.telemetry import Tally
from tests.fakes.server import resident_bytes


def figures() -> dict[str, float]:
    tally = Tally()
    prometheus.observe_own(tally)
    found = {family.metric.name: family.figures.get(()) for family in tally.families()}
    return {name: value for name, value in found.items() if isinstance(value, float)}


def test_they_are_those_of_the_system() -> None:
    before = len(os.listdir("/proc/self/fd")) - 1
    extra = os.open("/", os.O_RDONLY)
    try:
        found = figures()
    finally:
        os.close(extra)

    assert found["process_open_fds"] == before + 1
    assert found["process_max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert 0.5 < found["process_resident_memory_bytes"] / resident_bytes(os.getpid()) < 2
    assert found["process_virtual_memory_bytes"] >= found["process_resident_memory_bytes"]
    assert 0 < found["process_cpu_seconds_total"] <= time.process_time()
    assert found["process_start_time_seconds"] < time.time()


def test_no_limit_is_an_infinite_one(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda what: unlimited)

    assert figures()["process_max_fds"] == float("inf")
