"""Processes of a server, found by name and shown."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from .codes import state_of
from .durations import spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.api.host import Host
    from holdfast.model import Listing

HEAD = ("NAME", "PID", "STATE", "STARTED", "COMMAND")

_COMMAND = 48
"""Characters of a command line that are shown unless all are wanted."""

_LIVE = ("starting", "running")


def is_live(found: Listing) -> bool:
    return found.state in _LIVE


def row(found: Listing, *, now: float, whole: bool) -> Sequence[str]:
    """One line of ``ps``."""
    from .table import cut

    command = shlex.join(found.argv)
    return (
        found.name,
        "-" if found.pid is None else str(found.pid),
        state_of(found.state, found.outcome, found.exit_code),
        f"{spoken(max(0.0, float(round(now - found.started))))} ago",
        command if whole else cut(command, _COMMAND),
    )


async def find(host: Host, name: str) -> Listing:
    """The process of that name.

    Raises:
        UnknownProcess: There is none.
    """
    from holdfast.errors import UnknownProcess

    for found in await host.processes():
        if found.name == name:
            return found
    raise UnknownProcess(name)
