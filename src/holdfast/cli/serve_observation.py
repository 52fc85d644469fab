"""What ``holdfast serve`` reports to those who operate it: figures, traces, the log and the audit log."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.observe import logs, otel
from holdfast.observe.prometheus import observe_own, render
from holdfast.stalls import Stalls
from holdfast.telemetry import Metric, MetricKind, Silent, Tally, Telemetry
from holdfast.value import value

if TYPE_CHECKING:
    from holdfast.observe.audit import AuditLog
    from holdfast.observe.figures import LoopTimer  # Needs OpenTelemetry, which need not be installed.

LIMIT = Metric(
    "holdfast_limit", MetricKind.GAUGE, ("limit",), "The bounds of this server, as --limit names them."
)
LIMIT_USED = Metric(
    "holdfast_limit_used",
    MetricKind.GAUGE,
    ("limit",),
    "How much of each is in use; of those of a connection the most that any uses.",
)
ARENA_CELLS = Metric(
    "holdfast_arena_cells",
    MetricKind.GAUGE,
    (),
    "Pieces of memory in use for what outlives the server; none once everything is forgotten.",
)
RESTARTS = Metric(
    # A gauge: each server knows the number from its start, and the difference to 0 would be sent by each.
    "holdfast_restarts_total",
    MetricKind.GAUGE,
    (),
    "Servers that the keeper has started after the first one; absent where nothing outlives a server.",
)


def set_up_logs(arguments: argparse.Namespace) -> None:
    """Set up the log on standard error."""
    logs.set_up(arguments.log_level, arguments.log_format)


# Figures and traces.


@value
class Observation:
    """What a server reports its figures to, and what it shows of them."""

    telemetry: Telemetry
    metrics: Callable[[], bytes] | None = None
    """Renders the body of ``/metrics``; None if that path is not served."""
    _tally: Tally | None = None
    _export: otel.Export | None = None

    def limits(self, most: Mapping[str, float], used: Callable[[], Mapping[str, float]]) -> None:
        """Add the limits, and how much of each is in use, to the figures.

        Args:
            most: The limits by name.
            used: Called whenever the figures are read.
        """
        if self._tally is not None:
            self._tally.observe(LIMIT, lambda: {(name,): value for name, value in most.items()})
            self._tally.observe(LIMIT_USED, lambda: {(name,): value for name, value in used().items()})

    def durable(self, restarts: int, cells: Callable[[], int]) -> None:
        """Add what is known of a server whose processes outlive it to the figures.

        Args:
            restarts: How many servers there were before this one.
            cells: Counts the cells of the arena that are in use.
        """
        if self._tally is not None:
            self._tally.observe(RESTARTS, lambda: {(): restarts})
            self._tally.observe(ARENA_CELLS, lambda: {(): cells()})

    def close(self) -> None:
        """Send what was not sent yet to the collector.  Waits a few seconds at most."""
        if self._export is not None:
            self._export.close()


def _wanted_signals() -> frozenset[str]:
    """Return what the variables ask OpenTelemetry for: ``traces``, ``metrics``, both or none."""
    if not any(name.startswith("OTEL_") for name in os.environ):
        return frozenset()
    return otel.wanted(os.environ)


def observe(arguments: argparse.Namespace, timer: LoopTimer, stalls: Stalls | None = None) -> Observation:
    """Set up the figures and exporters that options and variables ask for; without any, nothing is counted.

    Args:
        timer: Calls the exporter from time to time.
        stalls: Those of the event loop.  They are recorded in any case, for the log.
    """
    signals = _wanted_signals()
    if not arguments.metrics and not signals:
        return Observation(Silent(stalls))
    tally = Tally(stalls=stalls)
    export = otel.export(tally, signals, os.environ, __version__) if signals else None
    if export is not None:
        export.begin(timer)
    elif not arguments.metrics:
        return Observation(Silent(stalls))
    observe_own(tally)
    show = (lambda: render(tally.families())) if arguments.metrics else None
    return Observation(tally, show, tally, export)


# The audit log.


class BadAudit(Exception):
    """The audit log cannot be opened.  The text is a message for the user."""


def make_audit(arguments: argparse.Namespace, *, failed: Callable[[], None]) -> AuditLog | None:
    """Open the audit log; None if no option asks for one.

    Args:
        failed: Called whenever a line could not be written.

    Raises:
        BadAudit: It cannot be opened.
    """
    path = arguments.audit_log
    if path is None:
        return None
    audit = importlib.import_module("holdfast.observe.audit")  # Here: most servers have none.
    try:
        log: AuditLog = audit.AuditLog(path, audit.Redaction(arguments.audit_redact), failed=failed)
    except OSError as error:
        raise BadAudit(f"cannot open the audit log {path}: {error.strerror or error}") from error
    return log
