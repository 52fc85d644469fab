"""Policies for confiners, and what bubblewrap is told of them."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.host.sandbox.confinement import Confinement
from holdfast.sandbox import Access, Named, Protection, Sandbox, SandboxEntry, Where

ROOT = SandboxEntry(Named(Where.ROOT), Access.READ)


def asked(*entries: SandboxEntry, network: bool = False, least: Protection = Protection.SOFT) -> Sandbox:
    return Sandbox(entries, network, "/", least=least)


def workspace(work: Path, *more: SandboxEntry, least: Protection = Protection.SOFT) -> Sandbox:
    return asked(ROOT, SandboxEntry(str(work), Access.WRITE), *more, least=least)


def told(confinement: Confinement) -> list[str]:
    """What bubblewrap is told."""
    assert confinement.arguments is not None
    data = os.pread(confinement.arguments.fileno(), 1 << 20, 0)
    return [os.fsdecode(word) for word in data.split(b"\0")[:-1]]
