"""Where Codex keeps what belongs to a host and to its user."""

from __future__ import annotations

import os

from holdfast.value import value

SYSTEM = "/etc/codex"


@value
class CodexPlaces:
    """Directories of this host.  They need not be there."""

    system: str = SYSTEM
    home: str | None = None
    """Of the server's user; None: there is none."""
    codex_home: str | None = None
    hostname: str = ""


def codex_places(home: str | None) -> CodexPlaces:
    """Return where things are, by the server's environment."""
    there = os.environ.get("CODEX_HOME", "")
    if not there.startswith("/"):
        there = "" if home is None else os.path.join(home, ".codex")
    return CodexPlaces(home=home, codex_home=there or None, hostname=os.uname().nodename)
