"""A small tree with one of everything that a path can lead to."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def grow(root: Path) -> Path:
    """Make it: ``f`` and ``d`` with files in it, links to them, a dangling one, a loop, and special files."""
    (root / "f").write_bytes(b"hello")
    (root / "d" / "sub").mkdir(parents=True)
    (root / "d" / "a").write_bytes(b"A")
    (root / "d" / "sub" / "b").write_bytes(b"BB")
    (root / "d" / "up").symlink_to("../f")
    (root / "empty").mkdir()
    for name, target in (("lf", "f"), ("ld", "d"), ("dang", "nope"), ("loop", "loop")):
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    here = os.open(root, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"/proc/self/fd/{here}/sock")  # The path itself may be longer than a socket's name may be.
    os.close(here)
    return root


def outline(root: Path) -> dict[str, bytes | str | None]:
    """What is below: bytes of files, targets of links, None for directories, kinds of the rest."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes()
        elif path.is_dir():
            found[name] = None
        else:
            found[name] = "special"
    return found
