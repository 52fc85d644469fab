"""``holdfast serve``: what it tells those who look after it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.telemetry import Kind, Metric, Silent, Tally, Telemetry

if TYPE_CHECKING:
    from holdfast.observe.figures import Timer
    from holdfast.observe.otel import Export

LIMIT = Metric("holdfast_limit", Kind.GAUGE, ("limit",), "The bounds of this server, as --limit names them.")
LIMIT_USED = Metric(
    "holdfast_limit_used",
    Kind.GAUGE,
    ("limit",),
    "How much of each is in use; of those of a connection the most that any uses.",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument(
        "--metrics", action="store_true", help="answer GET /metrics, for Prometheus, on every listener"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="the least that is worth a line on standard error (default: warning)",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="lines for people, or one JSON object per line (default: text)",
    )


def set_up_logs(arguments: argparse.Namespace) -> None:
    from holdfast.observe import logs

    logs.set_up(arguments.log_level, arguments.log_format)


@dataclass(slots=True)
class Observation:
    """What a server reports to, and what it shows."""

    telemetry: Telemetry
    metrics: Callable[[], bytes] | None = None
    """What ``/metrics`` shows, if there is such a path."""
    _tally: Tally | None = None
    _export: Export | None = None

    def limits(self, most: Mapping[str, float], used: Callable[[], Mapping[str, float]]) -> None:
        """Show the limits, and how much of them is in use."""
        if self._tally is not None:
            self._tally.observe(LIMIT, lambda: {(name,): value for name, value in most.items()})
            self._tally.observe(LIMIT_USED, lambda: {(name,): value for name, value in used().items()})

    def close(self) -> None:
        """Send what is left to be sent.  Waits a few seconds at the most."""
        if self._export is not None:
            self._export.close()


def _signals() -> frozenset[str]:
    if not any(name.startswith("OTEL_") for name in os.environ):
        return frozenset()
    from holdfast.observe import otel

    return otel.wanted(os.environ)


def observe(arguments: argparse.Namespace, timer: Timer) -> Observation:
    """What the options and the variables ask for; nothing is kept if that is nothing."""
    signals = _signals()
    if not arguments.metrics and not signals:
        return Observation(Silent())
    from holdfast import __version__
    from holdfast.observe import otel
    from holdfast.observe.own import observe_own
    from holdfast.observe.prometheus import render

    tally = Tally()
    export = otel.export(tally, signals, os.environ, __version__) if signals else None
    if export is not None:
        export.begin(timer)
    elif not arguments.metrics:
        return Observation(Silent())
    observe_own(tally)
    show = (lambda: render(tally.families())) if arguments.metrics else None
    return Observation(tally, show, tally, export)
