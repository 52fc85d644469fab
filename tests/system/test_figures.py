"""The figures of a real server, as Prometheus and as a collector get them, against what was really done."""

from __future__ import annotations

import asyncio
import http.client
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.telemetry import BOUNDS
from tests.fakes.client import Client, Refusal, client
from tests.fakes.collector import Collector, collector
from tests.fakes.server import PATIENCE, eventually_sync, open_files, program, program_at, resident_bytes

pytestmark = pytest.mark.slow

DASHBOARD = Path(__file__).parents[2] / "docs/dashboards/holdfast.json"
DURATIONS = {
    "exec_server_request_duration_seconds",
    "exec_server_request_queue_duration_seconds",
    "exec_server_request_total_duration_seconds",
    "exec_server_process_duration_seconds",
}
REQUESTS = {
    ("initialize", "success"): 1,
    ("process/start", "success"): 3,
    ("process/start", "error"): 1,
    ("process/terminate", "success"): 1,
    ("environment/status", "success"): 5,
    ("unknown", "error"): 1,
}
"""What ``use`` asks for."""

Figures = dict[str, dict[tuple[str, ...], float]]


async def use(talking: Client) -> None:
    """Something of everything; one process runs on."""
    await talking.start("good", "true")
    await talking.start("bad", "false")
    await talking.start("endless", "sleep", "1000")
    with pytest.raises(Refusal):
        await talking.start("missing", "/no/such/program")
    for _ in range(5):
        await talking.call("environment/status")
    with pytest.raises(Refusal):
        await talking.call("made/up")
    await talking.closed("good")
    await talking.closed("bad")


def get(url: str, path: str = "/metrics", method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body."""
    place = urlsplit(url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=PATIENCE)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def scrape(url: str) -> Figures:
    """Samples by name, then by the values of their labels, read by Prometheus' own parser."""
    found: Figures = {}
    for family in text_string_to_metric_families(get(url)[2].decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


@pytest.fixture
def kept() -> Iterator[Collector]:
    with collector() as running:
        yield running


# Prometheus.


async def test_the_figures_are_those_of_what_was_done() -> None:
    """An operator decides by them."""
    with program_at("--metrics") as (server, url):
        before = scrape(url)
        async with client(url) as talking:
            await use(talking)
            during = scrape(url)
            await talking.terminate("endless")
            await talking.closed("endless")
            after = scrape(url)
            files, memory = open_files(server.pid), resident_bytes(server.pid)
        eventually_sync(lambda: scrape(url)["exec_server_connections_active"]["websocket",] == 0)

    assert before["exec_server_connections_active"] == {("websocket",): 0, ("stdio",): 0, ("relay",): 0}
    assert "exec_server_requests_total" not in before
    assert during["exec_server_connections_active"] == {("websocket",): 1, ("stdio",): 0, ("relay",): 0}
    assert during["exec_server_processes_active"] == {(): 1}
    assert during["holdfast_limit_used"]["engine.processes",] == 1
    assert during["holdfast_limit_used"]["connection.connections",] == 1
    assert after["exec_server_processes_active"] == {(): 0}
    assert after["exec_server_connections_total"] == {("websocket",): 1, ("stdio",): 0, ("relay",): 0}
    assert after["exec_server_requests_total"] == REQUESTS
    ended = {("success",): 1, ("error",): 1, ("terminated",): 1}
    assert after["exec_server_processes_finished_total"] == ended | {("unknown",): 0}
    assert after["exec_server_process_duration_seconds_count"] == ended
    assert after["exec_server_request_duration_seconds_count"] == REQUESTS
    assert after["exec_server_request_total_duration_seconds_count"] == REQUESTS
    queued = after["exec_server_request_queue_duration_seconds_count"]
    assert queued["process/start",] == 4
    assert sum(queued.values()) == sum(REQUESTS.values())
    assert after["holdfast_audit_failures_total"] == {(): 0}
    assert after["holdfast_loop_longest_seconds"][()] > 0
    assert abs(after["process_open_fds"][()] - files) <= 3  # Its own connection comes and goes.
    assert 0.5 < after["process_resident_memory_bytes"][()] / memory < 2
    assert after["process_cpu_seconds_total"][()] >= before["process_cpu_seconds_total"][()] > 0
    check_buckets(after)


def check_buckets(found: Figures) -> None:
    """Quantiles are made of them: they have to add up."""
    for name in DURATIONS:
        buckets, counts, sums = (found[f"{name}_{part}"] for part in ("bucket", "count", "sum"))
        for labels, count in counts.items():
            row = [buckets[*labels, bound] for bound in (*map(repr, BOUNDS), "+Inf")]
            assert row == sorted(row)
            assert row[-1] == count
            assert sums[labels] >= 0
    handled, queued, total = (
        sum(found[f"exec_server_request_{part}_sum"].values())
        for part in ("duration_seconds", "queue_duration_seconds", "total_duration_seconds")
    )
    assert handled + queued == pytest.approx(total)


def test_the_page_is_what_prometheus_expects_and_the_dashboard_asks_only_for_what_is_there() -> None:
    """A panel without data looks like a server without trouble."""
    with program_at("--metrics") as (_, url):
        (status, headers, body), head, posted = get(url), get(url, method="HEAD"), get(url, method="POST")
    there = set(re.findall(r"^# TYPE (\S+)", body.decode(), re.MULTILINE))
    histograms = set(re.findall(r"^# TYPE (\S+) histogram", body.decode(), re.MULTILINE))
    there |= {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    board = msgspec.json.decode(DASHBOARD.read_bytes())

    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]

    asked = set(re.findall(r"\b(?:exec_server|holdfast|process)_\w+", " ".join(queries)))
    assert {"exec_server_requests_total", "holdfast_limit_used", "holdfast_auth_total"} <= asked
    assert sorted(asked - there) == []
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert (head[0], head[2]) == (200, b"")
    assert (posted[0], posted[1]["allow"]) == (405, "GET,HEAD")


# A collector.


async def test_every_figure_arrives_with_its_shape_and_its_labels(kept: Collector) -> None:
    """In several reports: what one has told the next does not tell again."""
    with program_at(env=kept.environment(OTEL_METRIC_EXPORT_INTERVAL="20")) as (_, url):
        async with client(url) as talking:
            await use(talking)
            kept.until(lambda: kept.counted("exec_server_requests_total").get(("unknown", "error")))
            await talking.terminate("endless")
            await talking.closed("endless")

    shapes = {point.metric: (point.shape, point.delta, point.unit) for point in kept.points}
    assert {name: shape for name, shape in shapes.items() if name.startswith("exec_server_")} == {
        "exec_server_connections_active": ("gauge", False, ""),
        "exec_server_connections_total": ("sum", True, ""),
        "exec_server_requests_total": ("sum", True, ""),
        "exec_server_processes_active": ("gauge", False, ""),
        "exec_server_processes_finished_total": ("sum", True, ""),
        **dict.fromkeys(DURATIONS, ("histogram", True, "s")),
    }
    assert shapes["holdfast_loop_longest_seconds"] == ("gauge", False, "s")
    assert {point.labels for point in kept.points if point.metric == "exec_server_connections_active"} == {
        (("transport", name),) for name in ("websocket", "stdio", "relay")
    }
    assert kept.counted("exec_server_connections_total") == {("websocket",): 1}
    assert kept.counted("exec_server_requests_total") == REQUESTS
    assert kept.counted("exec_server_request_duration_seconds") == REQUESTS
    assert kept.counted("exec_server_request_total_duration_seconds") == REQUESTS
    assert kept.counted("exec_server_request_queue_duration_seconds")["process/start",] == 4
    ended = {("success",): 1, ("error",): 1, ("terminated",): 1}
    assert kept.counted("exec_server_processes_finished_total") == ended
    assert kept.counted("exec_server_process_duration_seconds") == ended
    histograms = [point for point in kept.points if point.shape == "histogram"]
    assert {point.bounds for point in histograms} == {BOUNDS}
    assert all(sum(point.buckets) == point.value and point.sum >= 0 for point in histograms)
    assert len({point.end for point in kept.points}) > 1
    assert all(point.start < point.end for point in kept.points if point.delta)


# A collector that is not there, or too busy.


async def serves(url: str) -> None:
    async with client(url) as talking:
        await talking.start("p", "true")
        await talking.closed("p")


async def test_a_dead_collector_holds_up_neither_the_server_nor_its_end() -> None:
    """It says so once, and goes on."""
    with collector() as gone:
        variables = gone.environment(OTEL_METRIC_EXPORT_INTERVAL="20")
    with program_at("--metrics", env=variables) as (server, url):
        await serves(url)
        figures = scrape(url)
        server.send_signal(signal.SIGTERM)
        code = server.wait()

    assert code == 0
    assert figures["exec_server_processes_finished_total"]["success",] == 1
    assert b"Traceback" not in server.errors
    assert 1 <= server.errors.count(b"Transient error") <= 2  # Spans and figures.


async def test_a_collector_that_never_answers_does_not_either(kept: Collector) -> None:
    kept.answering.clear()
    with program_at(env=kept.environment(OTEL_METRIC_EXPORT_INTERVAL="20")) as (server, url):
        kept.until(lambda: kept.requests)
        await serves(url)
        server.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.wait)

    assert code == 0
    assert b"not everything could be sent to the collector" in server.errors


async def test_nothing_counted_is_lost_while_the_collector_is_away(kept: Collector) -> None:
    """What it has not got is told with the next report."""
    kept.status = 400
    with program_at(env=kept.environment(OTEL_METRIC_EXPORT_INTERVAL="20")) as (_, url):
        await serves(url)
        seen = kept.requests
        kept.until(lambda: kept.requests > seen + 2)
        assert kept.points == []
        kept.status = 200
        kept.until(lambda: kept.points)
        await serves(url)

    assert kept.counted("exec_server_processes_finished_total") == {("success",): 2}
    assert kept.counted("exec_server_connections_total") == {("websocket",): 2}


def test_a_protocol_that_we_do_not_speak_is_named_with_the_cure(kept: Collector) -> None:
    """The server runs on."""
    variables = kept.environment(OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    with program("--listen", "ws://127.0.0.1:0", "--log-format", "json", env=variables) as server:
        server.read_url()
        server.send_signal(signal.SIGTERM)
        server.wait()

    told = [msgspec.json.decode(line) for line in server.errors.splitlines()]
    assert {(line["level"], "pip install 'holdfast[otel]'" in line["message"]) for line in told} == {
        ("warning", True)
    }
    assert len(told) == 2
    assert kept.requests == 0
