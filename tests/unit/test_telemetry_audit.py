"""The interface of the audit log: whoever implements it fits."""

from __future__ import annotations

from pathlib import Path

from holdfast.model import Spec
from holdfast.observe.audit import AuditLog, Redaction
from holdfast.principal import ANYBODY
from holdfast.telemetry import Audit, AuditRecord


def test_the_log_is_what_the_server_and_the_engine_want(tmp_path: Path) -> None:
    """Types say so; this keeps the two together."""
    log = AuditLog(str(tmp_path / "log"), Redaction())
    audit: Audit = log

    entry: AuditRecord = audit.start(ANYBODY, "", Spec(argv=["x"], cwd="/", env={}))
    entry.running(1)

    assert (tmp_path / "log").read_text().count("\n") == 2
    log.close()
