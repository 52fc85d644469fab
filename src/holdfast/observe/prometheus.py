"""Figures in the text format of Prometheus, version 0.0.4, and those of our own process."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

from holdfast.telemetry import BOUNDS, Durations, Labels, Metric, MetricFamily, MetricKind, Tally


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
"""The metrics of the server's own process, each with the function that reads it."""


def observe_own(tally: Tally) -> None:
    """Have a tally also report the metrics of our own process."""
    for metric, read in OWN:
        tally.observe(metric, _single(read))


def _single(read: Callable[[], float]) -> Callable[[], dict[Labels, float]]:
    return lambda: {(): read()}


def render(families: Iterable[MetricFamily]) -> bytes:
    """Return the page ``/metrics``, in the text format of Prometheus."""
    return "".join(line for family in families for line in _lines(family)).encode("utf-8", "replace")


def _lines(family: MetricFamily) -> Iterator[str]:
    metric = family.metric
    yield f"# HELP {metric.name} {_escape(metric.help)}\n"
    yield f"# TYPE {metric.name} {metric.kind.value}\n"
    for values, figure in family.figures.items():
        pairs = zip(metric.labels, values, strict=True)
        labels = ",".join(f'{name}="{_escape(value, quotes=True)}"' for name, value in pairs)
        if isinstance(figure, Durations):
            *counts, count = accumulate(figure.buckets)
            yield _histogram(metric.name, labels) % (*counts, count, _number(figure.sum), count)
        else:
            yield f"{metric.name}{_braced(labels)} {_number(figure)}\n"


_BOUNDS = (*map(repr, BOUNDS), "+Inf")


@lru_cache(maxsize=4096)
def _histogram(name: str, labels: str) -> str:
    """All lines of a histogram, with places for its numbers: there are thousands of them, in the loop."""
    before = f"{name}_bucket{{{labels}{',' if labels else ''}le="
    lines = [f'{before}"{bound}"}}' for bound in _BOUNDS]
    lines += [f"{name}_{part}{_braced(labels)}" for part in ("sum", "count")]
    return "".join(line.replace("%", "%%") + " %s\n" for line in lines)


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _number(value: float) -> str:
    return repr(value) if value - value == 0 else {"inf": "+Inf", "-inf": "-Inf"}.get(repr(value), "NaN")


def _escape(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
