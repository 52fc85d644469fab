"""The sandbox backends of a server: which of them work on this host, and which one confines its commands.

``Ladder`` tries out the sandbox backends of the table, and has the best that works make each confinement.
Where none works, whoever asks for a sandbox is refused.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from threading import Lock

from holdfast.errors import SandboxUnavailable
from holdfast.sandbox import Guarantees, Sandbox

from .backends import SANDBOX_BACKENDS, SandboxBackendRow, SandboxProbe, SandboxServices
from .confinement import Confinement, DescriptorCache
from .filter import MACHINES
from .rules import resolve
from .search import Search
from .trial import PATIENCE, Trial


class Ladder:
    """Makes confinements, by the best sandbox backend that works on this host.  May be used in any thread."""

    def __init__(
        self,
        helper: str | None,
        *,
        only: str | None = None,
        off: bool = False,
        patience: float = PATIENCE,
        table: Sequence[SandboxBackendRow] = SANDBOX_BACKENDS,
    ) -> None:
        """Begin to try out the sandbox backends, without waiting for the results.

        Args:
            helper: The path of the compiled fork server, if there is one.
            only: The name of the one sandbox backend that may be used.
            off: Use none.
            patience: Seconds that a program may take which is tried out; after that it counts as failed.
            table: The sandbox backends, the best first.
        """
        self._off = off
        self._descriptors = DescriptorCache()
        # It runs while others get ready, and so does what the sandbox backends try out.
        self._witness = Trial([helper, "probe"], within=patience) if helper and not off else None
        services = SandboxServices(
            helper, MACHINES.get(platform.machine()), self._witness, patience, self._descriptors
        )
        wanted = [row for row in table if not off and only in (None, row.name)]
        self._backends = {row.name: row.make(services) for row in wanted}
        self._findings: dict[str, SandboxProbe] = {}
        self._found: Guarantees | None = None
        self._lock = Lock()  # Whoever asks first probes, and the others wait for the result.

    @property
    def tried_out(self) -> bool:
        """Whether ``guarantees`` and ``findings`` would answer at once."""
        if self._found is not None:
            return True
        witness = self._witness is None or self._witness.over
        return witness and all(backend.probed for backend in self._backends.values())

    @property
    def findings(self) -> dict[str, SandboxProbe]:
        """The probe of each sandbox backend that may be used, by its name.  Waits as ``guarantees`` does."""
        _ = self.guarantees
        return self._findings

    @property
    def guarantees(self) -> Guarantees:
        """What sandboxes are worth on this host, as it was found when this object was made.

        Waits until the sandbox backends are tried out, no longer than the patience that was given.
        """
        with self._lock:
            if self._found is None:
                self._found = self._probe()
            return self._found

    def _probe(self) -> Guarantees:
        if self._off:
            return Guarantees(None, reason="sandboxes are switched off")
        self._findings = {name: backend.probe() for name, backend in self._backends.items()}
        reasons: list[str] = []
        for name, backend in self._backends.items():
            if self._findings[name].works:
                reason = "; ".join(reasons)
                return Guarantees(name, backend.protection, backend.exact, backend.weaknesses, reason)
            reasons.append(f"{name}: {self._findings[name].reason}")
        return Guarantees(None, reason="; ".join(reasons))

    def make(self, sandbox: Sandbox, tmpdir: str | None, search: Search | None = None) -> Confinement:
        """Return what keeps ``sandbox``.  Asks the disk, for as long as ``search`` allows.

        Args:
            tmpdir: ``TMPDIR`` of the command.

        Raises:
            BadRequest: A pattern cannot be looked for.
            LimitReached: There is too much to look for.
            SandboxUnavailable: No sandbox can be kept on this host, or not this one.
        """
        best = self.guarantees
        if best.backing is None:
            raise SandboxUnavailable(best.reason)
        return self._backends[best.backing].confine(sandbox, resolve(sandbox, tmpdir, search))

    def close(self) -> None:
        """Release everything.  May be called twice."""
        if self._witness is not None:
            self._witness.stop()
        for backend in self._backends.values():
            backend.close()
        self._descriptors.clear()
