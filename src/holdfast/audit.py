"""What is written down of clients and their processes: the interface (pure)."""

from __future__ import annotations

from typing import Protocol

from .model import Exit, Spec
from .principal import Principal


class AuditRecord(Protocol):
    """One process in the audit log, from the request for it to its end."""

    def running(self, pid: int) -> None:
        """It was started."""

    def failed(self, reason: str) -> None:
        """It was not, and why."""

    def ended(self, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        """How it ended."""


class Audit(Protocol):
    """Writes down who did what.  Calls neither wait nor, but for one, raise."""

    def refused(self, peer: str, reason: str) -> None:
        """A client was not let in."""

    def connected(self, principal: Principal, peer: str) -> None: ...

    def gone(self, principal: Principal, peer: str) -> None:
        """A client that was let in has gone, or was sent away."""

    def forbidden(self, principal: Principal, peer: str, what: str, subject: str) -> None:
        """A client asked for something that its token does not allow."""

    def start(self, principal: Principal, peer: str, spec: Spec) -> AuditRecord:
        """A process was asked for.

        Raises:
            AuditFailed: It could not be written down, and is not to be started.
        """
