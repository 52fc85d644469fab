"""Figures of our own process, under the names that all exporters of Prometheus give them."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable

from holdfast.telemetry import Labels, Metric, MetricKind, Tally


def _proc(name: str) -> bytes:
    with open(f"/proc/self/{name}", "rb") as file:
        return file.read()


def _resident() -> float:
    return float(_proc("statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _virtual() -> float:
    return float(_proc("statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> float:
    return float(len(os.listdir("/proc/self/fd")) - 1)  # One is the look itself.


def _most_files() -> float:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if soft == resource.RLIM_INFINITY else float(soft)


def _start_time() -> float:
    """Seconds since the epoch."""
    ticks = int(_proc("stat").rpartition(b")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


OWN: tuple[tuple[Metric, Callable[[], float]], ...] = (
    (
        Metric("process_resident_memory_bytes", MetricKind.GAUGE, (), "Resident memory of the server."),
        _resident,
    ),
    (Metric("process_virtual_memory_bytes", MetricKind.GAUGE, (), "Virtual memory of the server."), _virtual),
    (Metric("process_open_fds", MetricKind.GAUGE, (), "Open descriptors of the server."), _open_files),
    (
        Metric("process_max_fds", MetricKind.GAUGE, (), "Descriptors that the server may have open."),
        _most_files,
    ),
    (
        Metric(
            "process_cpu_seconds_total", MetricKind.COUNTER, (), "Processor time of the server, all threads."
        ),
        time.process_time,
    ),
    (
        Metric(
            "process_start_time_seconds",
            MetricKind.GAUGE,
            (),
            "When the server was started, since the epoch.",
        ),
        _start_time,
    ),
)
"""What there is, and how it is found out."""


def observe_own(tally: Tally) -> None:
    """Add them to a tally."""
    for metric, read in OWN:
        tally.observe(metric, _single(read))


def _single(read: Callable[[], float]) -> Callable[[], dict[Labels, float]]:
    return lambda: {(): read()}
