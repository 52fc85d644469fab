"""``holdfast serve``: the options of the audit log."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.observe.audit import AuditLog


class BadAudit(Exception):
    """There is no such log; ``str`` of this says why."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The options."""
    group = parser.add_argument_group("audit log")
    group.add_argument(
        "--audit-log",
        metavar="PATH",
        help="append a line of JSON for each client, each process it starts and how that ended;"
        " SIGHUP opens the file anew; what cannot be written there is not started",
    )
    group.add_argument(
        "--audit-redact",
        metavar="NAME",
        action="append",
        default=[],
        help="a name, * for any run of characters, whose values are left out of arguments, beside those"
        " that look like keys, secrets, tokens, passwords and credentials; may be repeated",
    )


def make_audit(arguments: argparse.Namespace, *, failed: Callable[[], None]) -> AuditLog | None:
    """The log that was asked for.

    Raises:
        BadAudit: It cannot be opened.
    """
    path = arguments.audit_log
    if path is None:
        return None
    from holdfast.observe.audit import AuditLog
    from holdfast.observe.redact import Redaction

    try:
        return AuditLog(path, Redaction(arguments.audit_redact), failed=failed)
    except OSError as error:
        raise BadAudit(f"cannot open the audit log {path}: {error.strerror or error}") from error
