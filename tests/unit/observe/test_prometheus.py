"""Figures as text."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from holdfast.observe.prometheus import render
from holdfast.telemetry import BOUNDS, Durations, Metric, MetricFamily, MetricKind, Tally

COUNTER = Metric("things_total", MetricKind.COUNTER, ("kind",), "How\nmany \\ things.")
TIMES = Metric("times_seconds", MetricKind.HISTOGRAM, ("who",), "How long.")
BARE = Metric("bare_seconds", MetricKind.HISTOGRAM, (), "How long.")


def test_text_that_would_end_its_place_is_escaped() -> None:
    text = render([MetricFamily(COUNTER, {('a"b\\c\nd',): 3, ("\udc80",): 1})]).decode()

    assert text == (
        "# HELP things_total How\\nmany \\\\ things.\n"
        "# TYPE things_total counter\n"
        'things_total{kind="a\\"b\\\\c\\nd"} 3\n'
        'things_total{kind="?"} 1\n'
    )
    [family] = text_string_to_metric_families(text)
    assert [sample.labels["kind"] for sample in family.samples] == ['a"b\\c\nd', "?"]


def test_numbers_are_spelled_as_the_format_wants_them() -> None:
    gauge = Metric("g", MetricKind.GAUGE, ("n",), "")
    values: dict[tuple[str, ...], float] = {
        ("a",): 1,
        ("b",): 0.25,
        ("c",): float("inf"),
        ("d",): -float("inf"),
        ("e",): float("nan"),
    }

    lines = render([MetricFamily(gauge, values)]).decode().splitlines()[2:]

    assert [line.split()[1] for line in lines] == ["1", "0.25", "+Inf", "-Inf", "NaN"]


def test_buckets_are_summed_up_and_end_with_all() -> None:
    counts = [0] * (len(BOUNDS) + 1)
    counts[1], counts[3], counts[-1] = 2, 1, 4

    text = render([MetricFamily(TIMES, {("me",): Durations(tuple(counts), 500.5)})]).decode()

    lines = text.splitlines()[2:]
    assert lines[:4] == [
        'times_seconds_bucket{who="me",le="0.0"} 0',
        'times_seconds_bucket{who="me",le="0.005"} 2',
        'times_seconds_bucket{who="me",le="0.01"} 2',
        'times_seconds_bucket{who="me",le="0.025"} 3',
    ]
    assert lines[-4:] == [
        'times_seconds_bucket{who="me",le="120.0"} 3',
        'times_seconds_bucket{who="me",le="+Inf"} 7',
        'times_seconds_sum{who="me"} 500.5',
        'times_seconds_count{who="me"} 7',
    ]


def test_what_has_no_labels_has_no_braces() -> None:
    text = render([MetricFamily(BARE, {(): Durations((1,) * (len(BOUNDS) + 1), 1.0)})]).decode()

    assert 'bare_seconds_bucket{le="0.0"} 1\n' in text
    assert "bare_seconds_sum 1.0\n" in text


def test_every_metric_is_named_before_there_is_any_figure() -> None:
    """Whoever writes a query or an alarm sees what there is."""
    tally = Tally()

    named = [line.split()[2] for line in render(tally.families()).decode().splitlines() if "# TYPE" in line]

    assert named == [family.metric.name for family in tally.families()]
