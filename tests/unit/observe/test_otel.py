"""What the standard variables ask for."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.observe import otel
from holdfast.observe.otel import export, wanted
from holdfast.telemetry import Tally
from tests.fakes.collector import Collector, collector
from tests.unit.observe.test_figures import HandTimer

BOTH = frozenset(("traces", "metrics"))
SOMEWHERE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.fixture
def kept() -> Iterator[Collector]:
    with collector() as running:
        yield running


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch, kept: Collector) -> pytest.MonkeyPatch:
    for name, value in kept.environment().items():
        monkeypatch.setenv(name.decode(), value.decode())
    return monkeypatch


@pytest.mark.parametrize(
    ("environment", "signals"),
    [
        ({}, set()),
        ({"OTEL_SERVICE_NAME": "x"}, set()),
        (SOMEWHERE, BOTH),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, set()),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, {"traces"}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x"}, {"metrics"}),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, {"traces"}),
        ({"OTEL_METRICS_EXPORTER": "OTLP "}, {"metrics"}),
        ({**SOMEWHERE, "OTEL_TRACES_EXPORTER": "none"}, {"metrics"}),
        ({**SOMEWHERE, "OTEL_METRICS_EXPORTER": "none"}, {"traces"}),
        ({**SOMEWHERE, "OTEL_SDK_DISABLED": "TRUE"}, set()),
        ({**SOMEWHERE, "OTEL_SDK_DISABLED": "false"}, BOTH),
        ({**SOMEWHERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, BOTH),
    ],
)
def test_what_is_wanted(
    environment: dict[str, str], signals: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert wanted(environment) == signals
    assert caplog.records == []


@pytest.mark.parametrize(
    ("more", "signals", "words"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, set(), "pip install 'holdfast[otel]'"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, {"metrics"}, "'http/json' is not supported"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, {"metrics"}, "OTEL_TRACES_EXPORTER: 'zipkin' is not supported"),
    ],
)
def test_what_cannot_be_had_is_said(
    more: dict[str, str], signals: set[str], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert wanted(SOMEWHERE | more) == signals
    assert words in caplog.text


def test_packages_that_are_not_there_are_named_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server runs on without them."""
    usual = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)

    assert export(Tally(), BOTH, SOMEWHERE, "1") is None
    assert "pip install 'holdfast[otel]'" in caplog.text


def resources(kept: Collector, environment: dict[str, str]) -> list[dict[str, Any]]:
    tally = Tally()
    made = export(tally, BOTH, environment, "1.2.3")
    assert made is not None
    made.begin(HandTimer())
    made.close()
    found, kept.resources = kept.resources, []
    return found


def test_the_resource_says_who_speaks_and_the_variables_have_the_last_word(
    kept: Collector, variables: pytest.MonkeyPatch
) -> None:
    plain = resources(kept, {})
    variables.setenv("OTEL_SERVICE_NAME", "mine")
    variables.setenv("OTEL_RESOURCE_ATTRIBUTES", "env=prod,team=a")
    named = resources(kept, {})

    assert len(plain) == len(named) == 2  # Spans and figures.
    for resource in plain:
        ours = {key: resource[key] for key in ("service.name", "service.version", "env")}
        assert ours == {"service.name": "codex-exec-server", "service.version": "1.2.3", "env": "dev"}
        assert resource["os"]
        assert resource["os_version"]
    for resource in named:
        said = {key: resource[key] for key in ("service.name", "service.version", "env", "team")}
        assert said == {"service.name": "mine", "service.version": "1.2.3", "env": "prod", "team": "a"}


def test_a_system_without_a_name_is_linux(
    kept: Collector, variables: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> dict[str, str]:
        raise OSError("no such file")

    monkeypatch.setattr("platform.freedesktop_os_release", nothing)

    assert {resource["os"] for resource in resources(kept, {})} == {"Linux"}


@pytest.mark.parametrize("signal", sorted(BOTH))
def test_only_what_is_wanted_is_set_up(kept: Collector, variables: pytest.MonkeyPatch, signal: str) -> None:
    tally = Tally()

    made = export(tally, frozenset((signal,)), {}, "1")
    assert made is not None
    made.begin(HandTimer())
    made.close()

    assert (tally.tracer is not None) == (signal == "traces")
    assert [span.name for span in kept.spans] == (["codex.exec_server"] if signal == "traces" else [])
    assert bool(kept.points) == (signal == "metrics")


def test_the_end_waits_for_a_collector_only_so_long(
    kept: Collector,
    variables: pytest.MonkeyPatch,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(otel, "_PATIENCE", 0.05)
    kept.answering.clear()
    made = export(Tally(), BOTH, {}, "1")
    assert made is not None
    made.begin(HandTimer())

    made.close()

    assert "not everything could be sent to the collector within 0.05 s" in caplog.text


@pytest.mark.parametrize(
    ("text", "seconds", "complaints"),
    [("", 60.0, 0), ("1500", 1.5, 0), ("soon", 60.0, 1), ("0", 60.0, 1), ("-1", 60.0, 1), ("inf", 60.0, 1)],
)
def test_the_time_between_reports_is_in_milliseconds(
    variables: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    text: str,
    seconds: float,
    complaints: int,
) -> None:
    timer = HandTimer()
    made = export(Tally(), frozenset(("metrics",)), {"OTEL_METRIC_EXPORT_INTERVAL": text}, "1")
    assert made is not None
    made.begin(timer)
    made.close()

    assert [delay for delay, _ in timer.due] == [seconds]
    assert len(caplog.records) == complaints
