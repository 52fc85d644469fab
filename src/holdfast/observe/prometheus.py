"""Figures in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

from holdfast.telemetry import BOUNDS, Durations, MetricFamily


def render(families: Iterable[MetricFamily]) -> bytes:
    """What ``/metrics`` shows."""
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
