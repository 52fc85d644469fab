"""Policies for confiners, and what bubblewrap is told of them."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.host.sandbox.confinement import Confinement
from holdfast.sandbox import Access, Entry, Named, Protection, Sandbox, Where

ROOT = Entry(Named(Where.ROOT), Access.READ)


def asked(*entries: Entry, network: bool = False, least: Protection = Protection.SOFT) -> Sandbox:
    return Sandbox(entries, network, "/", least=least)


def workspace(work: Path, *more: Entry, least: Protection = Protection.SOFT) -> Sandbox:
    return asked(ROOT, Entry(str(work), Access.WRITE), *more, least=least)


def told(confinement: Confinement) -> list[str]:
    """What bubblewrap is told."""
    assert confinement.arguments is not None
    data = os.pread(confinement.arguments.fileno(), 1 << 20, 0)
    return [os.fsdecode(word) for word in data.split(b"\0")[:-1]]
