"""A sandbox backend that is not one of ours: all that it takes to add one.

It keeps commands from the network by a filter of system calls, and can keep no rule about files.
"""

from __future__ import annotations

from holdfast.errors import SandboxUnavailable
from holdfast.host.sandbox.backends import SandboxBackend, SandboxProbe, SandboxServices
from holdfast.host.sandbox.confinement import Confinement
from holdfast.host.sandbox.filter import program
from holdfast.sandbox import Protection, Rules, Sandbox


def make_backend(services: SandboxServices) -> SandboxBackend:
    return Toy(services)


class Toy:
    """Confines commands by a filter.  Implements ``backends.SandboxBackend``."""

    probed = True
    protection = Protection.NONE
    exact = False
    weaknesses = ("it is a toy",)

    def __init__(self, services: SandboxServices) -> None:
        self._services = services

    def probe(self) -> SandboxProbe:
        reason = self._services.unknown_machine()
        return SandboxProbe(reason, "play elsewhere") if reason else SandboxProbe()

    def confine(self, sandbox: Sandbox, rules: Rules) -> Confinement:
        if sandbox.entries is not None:
            raise SandboxUnavailable("a toy knows nothing of files")
        assert self._services.machine is not None
        return Confinement(
            program(self._services.machine, network=sandbox.network, witness=False, files=False)
        )

    def close(self) -> None:
        pass
