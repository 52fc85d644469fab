"""Sandbox backends: the interface of each, and the table of those there are.

Another sandbox backend is a module with a class that implements ``SandboxBackend``, and a row of the table.
Nothing heavy is imported for the table itself: the command line shows it in its help.
"""

from __future__ import annotations

import importlib
import platform
from typing import TYPE_CHECKING, Protocol

from holdfast.sandbox import SandboxBackendName
from holdfast.value import value

if TYPE_CHECKING:
    from holdfast.sandbox import Protection, Rules, Sandbox

    from .confinement import Confinement, DescriptorCache, Trial
    from .filter import Machine

LOCKS = "locks and leases can be held on whatever can be read"
"""A weakness of every sandbox: the kernel asks for no more than an open file."""

HARD_LINKS = (
    "a file that has a name in a writable place can be written, whatever protects its others (hard links)"
)
"""A weakness of every sandbox: whatever keeps a file goes by the name under which it is reached."""

GROUPS = "programs can be left in writable places that run with the group of the server (set-gid)"
"""A weakness of every sandbox: for directories the same bit means something else, which is often needed."""


@value
class SandboxServices:
    """What sandbox backends are made with, and share."""

    helper: str | None
    """The path of the compiled fork server: the witness, and the first process in bubblewrap's sandboxes.

    None if it is not compiled.
    """
    machine: Machine | None
    """The system calls of this machine; None if we do not know them and can make no filter."""
    witness: Trial | None
    """The witness, which is being tried out; None if there is no helper."""
    patience: float
    """Seconds that a program may run which a sandbox backend tries out."""
    descriptors: DescriptorCache
    """What is kept for the next command with the same rules."""

    def has_witness(self) -> bool:
        """Whether the witness works on this host.  Waits for the end of its trial."""
        return self.witness is not None and not self.witness.failure()

    def unknown_machine(self) -> str:
        """Return why no filter can be made on this machine; an empty text if one can."""
        return "" if self.machine is not None else f"system calls of {platform.machine()} are not known"


@value
class SandboxProbe:
    """Whether a sandbox backend works on this host, and what to do if it does not."""

    reason: str = ""
    """Why it does not work; empty if it does."""
    cure: str = ""
    """What whoever runs the host can do about it.  ``holdfast doctor`` prints it."""
    needs_fork_server: bool = False
    """Whether the fork server must work first: if it does not, its own cure is the one to try."""

    @property
    def works(self) -> bool:
        return not self.reason


class SandboxBackend(Protocol):
    """One way to confine commands.

    A server makes each of its sandbox backends once, when it starts.  Afterwards every member may be used
    in any thread, and in several at once.
    """

    @property
    def probed(self) -> bool:
        """Whether ``probe`` would answer at once."""

    def probe(self) -> SandboxProbe:
        """Return whether the sandbox backend works on this host, and if not, why.

        It is tried out, because versions and settings say little.  What has to be run for that is started
        when the object is made, which must not wait, and runs while the server gets ready.  This method
        waits for the result, no longer than ``SandboxServices.patience``.
        """

    # What it guarantees.  ``Confiner`` asks for this after a probe, and only if that has found that it works.

    @property
    def protection(self) -> Protection:
        """How well a place stays unwritten that lies inside of a writable one."""

    @property
    def exact(self) -> bool:
        """Whether each denial is seen and reported.  Otherwise it is guessed from the command's output."""

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """What a confined command can do although no sandbox allows it; each in words for a user."""

    def confine(self, sandbox: Sandbox, rules: Rules) -> Confinement:
        """Return everything that a shim needs to keep a command in ``sandbox``.

        It may ask the disk.  ``Confiner`` calls it in a thread, and only if a probe has found that it works.

        Args:
            rules: What the entries of the sandbox come to on this disk.  Without entries, every file may
                be written.

        Raises:
            SandboxUnavailable: It cannot keep this sandbox, or not as well as the client asks.
        """

    def close(self) -> None:
        """Release everything, and stop what is still being tried out.  May be called twice."""


@value
class SandboxBackendRow:
    """One sandbox backend that a server can have."""

    name: str
    """As in ``--sandbox`` and on the wire; clients of ours know the names in ``SandboxBackendName``."""
    module: str
    """Has ``make_backend(services)``.  It is imported when a server sets up its sandboxes."""
    filesystem: str = ""
    """What keeps its rules about files, as clients are told; empty if that is the sandbox backend itself."""

    def make(self, services: SandboxServices) -> SandboxBackend:
        """Return a new object of this sandbox backend, which begins to try itself out."""
        backend: SandboxBackend = importlib.import_module(self.module).make_backend(services)
        return backend


SANDBOX_BACKENDS = (
    SandboxBackendRow(
        SandboxBackendName.BUBBLEWRAP.value, "holdfast.host.sandbox.bubblewrap", filesystem="mount"
    ),
    SandboxBackendRow(SandboxBackendName.LANDLOCK.value, "holdfast.host.sandbox.landlock"),
)
"""The best first: a server uses the first one that works on its host."""
