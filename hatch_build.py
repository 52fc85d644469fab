"""Compiles the nursery while the package is built.  Without a compiler its Python form is used."""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = "src/holdfast/host/nursery"
SOURCES = ("nursery.c", "confine.c", "witness.c")

# Static, because a warden then has 34 KiB of its own, not 46.  Not every system has the libraries for it.
KINDS = (["-static"], [])


class NurseryHook(BuildHookInterface[Any]):
    """Puts the program beside its source, where an editable installation finds it, and into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        failure = compile_program(Path(self.root))
        if failure is not None:
            # One that an older source left would speak of other things.
            Path(self.root, PROGRAM).unlink(missing_ok=True)
            self.app.display_warning(f"the nursery is not compiled, its Python form is used: {failure}")
            return
        build_data["artifacts"].append(f"/{PROGRAM}")
        build_data["pure_python"] = False
        # A program, not an extension module: any Python will do, but not any machine.
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def compile_program(root: Path) -> str | None:
    """Make the program; what it failed of otherwise, in one line."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    made = root / f"{PROGRAM}.new"
    sources = [str(made.parent / name) for name in SOURCES]
    reason = "CC is empty"
    for kind in KINDS if compiler else ():
        try:
            ran = subprocess.run(
                [*compiler, "-O2", "-s", *kind, "-o", str(made), *sources],
                check=False,
                capture_output=True,
                text=True,
                errors="replace",
            )
        except OSError as error:
            return str(error)
        if ran.returncode == 0:
            # In one step, so that nobody ever starts half a program.
            made.replace(root / PROGRAM)
            return None
        reason = next(iter(ran.stderr.splitlines()), f"the compiler ended with {ran.returncode}")
    return reason
