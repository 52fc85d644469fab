"""What is counted and timed."""

from __future__ import annotations

import pytest

from holdfast.telemetry import (
    BOUNDS,
    LOOP_LONGEST,
    METRICS,
    Durations,
    Metric,
    MetricKind,
    Silent,
    Tally,
    Telemetry,
)

ACTIVE = "exec_server_connections_active"


def buckets(**counts: int) -> list[int]:
    """Counts by the index of their bucket: ``buckets(_3=1)``."""
    return [counts.get(f"_{index}", 0) for index in range(len(BOUNDS) + 1)]


def counted(tally: Tally) -> dict[tuple[str, ...], int]:
    return {key: count for key, count in tally.counts.items() if count}


def test_every_gauge_is_there_from_the_start() -> None:
    """A figure that appears only later looks like a lost one."""
    assert dict(Tally().counts) == {
        (ACTIVE, "websocket"): 0,
        (ACTIVE, "stdio"): 0,
        (ACTIVE, "relay"): 0,
        ("exec_server_processes_active",): 0,
        ("holdfast_loop_longest_seconds",): 0,
    }


def test_connections_are_counted_while_they_are_open_and_in_all() -> None:
    tally = Tally()

    tally.connection_opened("websocket")
    tally.connection_opened("websocket")
    tally.connection_closed("websocket")

    assert counted(tally) == {(ACTIVE, "websocket"): 1, ("exec_server_connections_total", "websocket"): 2}


def test_a_request_is_counted_and_timed_in_three_ways() -> None:
    tally = Tally()

    tally.request_done("process/start", "success", queued=0.004, handled=0.02)

    assert counted(tally) == {("exec_server_requests_total", "process/start", "success"): 1}
    assert tally.durations == {
        ("exec_server_request_duration_seconds", "process/start", "success"): buckets(_3=1),
        ("exec_server_request_queue_duration_seconds", "process/start"): buckets(_1=1),
        ("exec_server_request_total_duration_seconds", "process/start", "success"): buckets(_3=1),
    }


def test_processes_are_counted_while_they_run_and_by_their_end() -> None:
    tally = Tally()

    tally.process_started()
    tally.process_started()
    tally.process_finished("terminated", 500.0)

    assert counted(tally) == {
        ("exec_server_processes_active",): 1,
        ("exec_server_processes_finished_total", "terminated"): 1,
    }
    assert tally.durations == {("exec_server_process_duration_seconds", "terminated"): buckets(_21=1)}


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.0001, 1), (0.005, 1), (0.0051, 2), (120.0, 20), (120.1, 21)]
)
def test_a_duration_belongs_to_the_first_bound_it_does_not_exceed(seconds: float, bucket: int) -> None:
    tally = Tally()

    tally.process_finished("success", seconds)

    (found,) = tally.durations.values()
    assert [index for index, count in enumerate(found) if count] == [bucket]


def test_the_bounds_are_those_of_the_specification() -> None:
    below_one = (0, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75)

    assert (*below_one, 1, 2.5, 5, 7.5, 10, 12, 15, 20, 30, 60, 120) == tuple(BOUNDS)


def test_silence_takes_everything_and_says_that_nobody_listens() -> None:
    """Then nothing needs to be timed."""
    silent: Telemetry = Silent()
    tally: Telemetry = Tally()

    silent.connection_opened("stdio")
    silent.request_done("x", "error", queued=0.0, handled=0.0)
    silent.process_started()
    silent.process_finished("success", 1.0)
    silent.connection_closed("stdio")
    silent.limit_reached("x")
    silent.authenticated("accepted")
    silent.audit_failed()
    silent.webhook_done("failed")

    assert (silent.tracer, tally.tracer) == (None, None)
    assert (silent.recording, tally.recording) == (False, True)


def test_refusals_and_attempts_are_counted_by_their_reason() -> None:
    tally = Tally()

    tally.limit_reached("connections")
    tally.limit_reached("connections")
    tally.authenticated("accepted")
    tally.authenticated("expired")
    tally.audit_failed()
    tally.webhook_done("retried")

    assert counted(tally) == {
        ("holdfast_limit_refusals_total", "connections"): 2,
        ("holdfast_auth_total", "accepted"): 1,
        ("holdfast_auth_total", "expired"): 1,
        ("holdfast_audit_failures_total",): 1,
        ("holdfast_webhooks_total", "retried"): 1,
    }


def test_the_families_are_all_metrics_in_their_order_with_their_labels() -> None:
    """Exporters and documents rely on the one table."""
    tally = Tally()
    tally.connection_opened("stdio")
    tally.request_done("m", "success", queued=0.25, handled=0.5)
    tally.request_done("m", "error", queued=1.0, handled=0.0)
    tally.process_started()
    tally.process_finished("error", 2.0)
    tally.limit_reached("l")
    tally.authenticated("r")
    tally.webhook_done("delivered")

    families = list(tally.families())

    assert [family.metric for family in families] == list(METRICS)
    for family in families:
        assert family.figures != {}
        for labels, figure in family.figures.items():
            assert len(labels) == len(family.metric.labels)
            assert isinstance(figure, Durations) == (family.metric.kind is MetricKind.HISTOGRAM)
    figures = {family.metric.name: family.figures for family in families}
    queue = figures["exec_server_request_queue_duration_seconds"]["m",]
    total = figures["exec_server_request_total_duration_seconds"]["m", "success"]
    assert isinstance(queue, Durations)
    assert isinstance(total, Durations)
    assert (queue.count, queue.sum) == (2, 1.25)
    assert (total.count, total.sum) == (1, 0.75)


LIMIT = Metric("holdfast_limit", MetricKind.GAUGE, ("limit",), "What is allowed.")


def test_what_others_know_is_asked_for_when_it_is_wanted() -> None:
    """Several may know something of the same metric."""
    tally = Tally()
    used: dict[tuple[str, ...], float] = {("a",): 1.0}
    tally.observe(LIMIT, lambda: used)
    tally.observe(LIMIT, lambda: {("b",): 7.0})
    before = {key: count for key, count in tally.counts.items() if key[0] == "holdfast_limit"}

    used["a",] = 2.0

    assert before == {("holdfast_limit", "a"): 1, ("holdfast_limit", "b"): 7}
    assert tally.counts["holdfast_limit", "a"] == 2


def test_a_figure_that_cannot_be_read_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    tally = Tally()
    tally.observe(LIMIT, lambda: {("a",): 1 / 0})
    tally.observe(LIMIT, lambda: {("b",): 7.0})

    found = {key: count for key, count in tally.counts.items() if key[0] == "holdfast_limit"}

    assert found == {("holdfast_limit", "b"): 7}
    assert "ZeroDivisionError" in caplog.text


def test_the_longest_hold_of_the_loop_is_that_since_the_figures_were_last_read() -> None:
    """Each scrape shows the worst of its own interval."""
    tally = Tally()
    tally.stalls.saw(0.125, "something")

    looks = [
        [dict(family.figures) for family in tally.families() if family.metric is LOOP_LONGEST]
        for _ in range(2)
    ]

    assert looks == [[{(): 0.125}], [{(): 0.0}]]
