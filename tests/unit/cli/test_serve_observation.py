"""What ``serve`` sets up for those who operate it: figures, traces, logs."""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli import serve_observation as module
from holdfast.cli.overview import parser_of_all
from holdfast.cli.serve_options import add_audit
from holdfast.errors import AuditFailed
from holdfast.model import Spec
from holdfast.principal import ANYBODY
from holdfast.telemetry import Silent, Tally
from tests.fakes.client import client
from tests.fakes.collector import Collector, collector
from tests.fakes.server import program
from tests.unit.observe.test_figures import HandTimer


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Whatever the variables of this test run are."""
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def kept() -> Iterator[Collector]:
    with collector() as running:
        yield running


def arguments(*options: str) -> argparse.Namespace:
    return parser_of_all().parse_args(["serve", *options])


def test_without_a_wish_nothing_is_counted() -> None:
    made = module.observe(arguments(), HandTimer())

    made.limits({"x": 1}, lambda: {"x": 1})
    made.durable(1, lambda: 2)
    made.close()

    assert isinstance(made.telemetry, Silent)
    assert made.metrics is None


def test_variables_that_ask_for_nothing_are_no_wish(plain: pytest.MonkeyPatch) -> None:
    plain.setenv("OTEL_SERVICE_NAME", "x")

    assert isinstance(module.observe(arguments(), HandTimer()).telemetry, Silent)


def test_metrics_show_what_is_counted_and_the_limits() -> None:
    made = module.observe(arguments("--metrics"), HandTimer())
    made.limits({"connections": 10}, lambda: {"connections": 3})
    made.durable(4, lambda: 5)
    made.telemetry.limit_reached("connections")
    made.close()

    assert made.metrics is not None
    lines = made.metrics().decode().splitlines()
    assert 'holdfast_limit{limit="connections"} 10' in lines
    assert 'holdfast_limit_used{limit="connections"} 3' in lines
    assert 'holdfast_limit_refusals_total{limit="connections"} 1' in lines
    assert "holdfast_restarts_total 4" in lines
    assert "holdfast_arena_cells 5" in lines
    assert any(line.startswith("process_open_fds ") for line in lines)


def test_a_collector_gets_what_is_counted_without_a_page_for_it(
    kept: Collector, plain: pytest.MonkeyPatch
) -> None:
    for name, value in kept.environment().items():
        plain.setenv(name.decode(), value.decode())
    made = module.observe(arguments(), HandTimer())
    made.telemetry.audit_failed()
    made.close()

    assert made.metrics is None
    assert isinstance(made.telemetry, Tally)
    assert kept.counted("holdfast_audit_failures_total") == {(): 1}
    assert [span.name for span in kept.spans] == ["codex.exec_server"]


@pytest.mark.parametrize(("options", "kind"), [((), Silent), (("--metrics",), Tally)])
def test_without_the_packages_there_is_what_needs_none(
    plain: pytest.MonkeyPatch, options: tuple[str, ...], kind: type
) -> None:
    plain.setenv("OTEL_TRACES_EXPORTER", "otlp")
    plain.setattr("holdfast.observe.otel.export", lambda *facts: None)

    assert type(module.observe(arguments(*options), HandTimer()).telemetry) is kind


@pytest.mark.slow
async def test_the_log_tells_of_listeners_clients_and_the_stop() -> None:
    """Each with its facts apart, for whoever searches logs; neither arguments nor variables are in it."""
    options = ("--listen", "ws://127.0.0.1:0", "--log-level", "debug", "--log-format", "json")
    with program(*options, env={b"SECRET": b"s3cret"}) as server:
        url = server.read_url()
        async with client(url) as talking:
            await talking.start("p", "true", "s3cret-argument", env={"X": "s3cret"})
            await talking.closed("p")
        server.send_signal(signal.SIGTERM)
        server.wait()

    told = [json.loads(line) for line in server.errors.splitlines()]
    ours = [line for line in told if line["logger"] in ("holdfast.server.app", "holdfast.server.connection")]
    assert [line["message"].split()[0] for line in ours] == ["listening", "client", "client", "the"]
    assert ours[0]["url"] == url
    assert ours[1]["peer"] == ours[2]["peer"]
    assert ours[1]["peer"].startswith("127.0.0.1:")
    assert ours[2]["seconds"] > 0
    assert {line["level"] for line in ours} == {"info"}
    assert b"s3cret" not in server.errors


@pytest.mark.slow
def test_by_default_the_log_is_silent() -> None:
    with program() as server:
        server.read_url()
        server.send_signal(signal.SIGTERM)
        server.wait()

    assert server.errors == b""


def test_the_log_is_set_up_as_the_options_say(plain: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    plain.setattr("holdfast.observe.logs.set_up", lambda level, form: asked.append((level, form)))

    module.set_up_logs(arguments())
    module.set_up_logs(arguments("--log-level", "debug", "--log-format", "json"))

    assert asked == [("warning", "text"), ("debug", "json")]


# The audit log.


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_audit(parser)
    return parser.parse_args(options)


def test_without_the_option_there_is_no_log() -> None:
    assert module.make_audit(parsed(), failed=lambda: None) is None


def test_names_that_are_given_are_redacted_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    options = parsed("--audit-log", str(path), "--audit-redact", "pin", "--audit-redact", "*-ID")

    log = module.make_audit(options, failed=lambda: None)
    assert log is not None
    log.start(ANYBODY, "", Spec(argv=["x", "--pin=1", "my-id: 2", "--password=3"], cwd="/", env={}))
    log.close()

    hidden = "[redacted]"
    assert json.loads(path.read_text())["argv"] == [
        "x", f"--pin={hidden}", f"my-id: {hidden}", f"--password={hidden}",
    ]  # fmt: skip


def test_what_cannot_be_written_is_counted() -> None:
    failures: list[str] = []
    log = module.make_audit(parsed("--audit-log", "/dev/full"), failed=lambda: failures.append("one"))

    assert log is not None
    with pytest.raises(AuditFailed, match="No space left on device"):
        log.start(ANYBODY, "", Spec(argv=["x"], cwd="/", env={}))
    assert failures == ["one"]
    log.close()


def test_a_log_that_cannot_be_opened_is_said_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "log"

    with pytest.raises(module.BadAudit) as caught:
        module.make_audit(parsed("--audit-log", str(path)), failed=lambda: None)

    assert str(caught.value) == f"cannot open the audit log {path}: No such file or directory"
