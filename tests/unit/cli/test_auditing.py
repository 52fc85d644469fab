"""The options of the audit log."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from holdfast.cli import auditing
from holdfast.errors import AuditFailed
from holdfast.model import Spec
from holdfast.principal import ANYBODY


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    auditing.configure(parser)
    return parser.parse_args(options)


def test_without_the_option_there_is_no_log() -> None:
    assert auditing.make_audit(parsed(), failed=lambda: None) is None


def test_names_that_are_given_are_redacted_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    options = parsed("--audit-log", str(path), "--audit-redact", "pin", "--audit-redact", "*-ID")

    log = auditing.make_audit(options, failed=lambda: None)
    assert log is not None
    log.start(ANYBODY, "", Spec(argv=["x", "--pin=1", "my-id: 2", "--password=3"], cwd="/", env={}))
    log.close()

    hidden = "[redacted]"
    assert json.loads(path.read_text())["argv"] == [
        "x", f"--pin={hidden}", f"my-id: {hidden}", f"--password={hidden}",
    ]  # fmt: skip


def test_what_cannot_be_written_is_counted() -> None:
    failures: list[str] = []
    log = auditing.make_audit(parsed("--audit-log", "/dev/full"), failed=lambda: failures.append("one"))

    assert log is not None
    with pytest.raises(AuditFailed, match="No space left on device"):
        log.start(ANYBODY, "", Spec(argv=["x"], cwd="/", env={}))
    assert failures == ["one"]
    log.close()


def test_a_log_that_cannot_be_opened_is_said_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "log"

    with pytest.raises(auditing.BadAudit) as caught:
        auditing.make_audit(parsed("--audit-log", str(path)), failed=lambda: None)

    assert str(caught.value) == f"cannot open the audit log {path}: No such file or directory"
