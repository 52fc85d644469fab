"""What xterm.js shows of bytes, cell by cell, if Node and the package are here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from holdfast.model import Size

PACKAGE = os.environ.get("HOLDFAST_XTERM", "")
"""The folder of the npm package ``@xterm/headless``."""

MISSING = not PACKAGE or shutil.which("node") is None
WHY = "needs Node, and in HOLDFAST_XTERM the folder of the npm package @xterm/headless"


def shown(asked: Iterable[tuple[Size, Sequence[bytes]]]) -> list[dict[str, Any]]:
    """The screens after these bytes."""
    lines = [
        json.dumps(
            {"rows": size.rows, "cols": size.cols, "data": [b64encode(piece).decode() for piece in pieces]}
        )
        for size, pieces in asked
    ]
    script = Path(__file__).with_suffix(".js")
    done = subprocess.run(
        ["node", script, PACKAGE], input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
