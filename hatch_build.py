"""Compiles the fork server while a wheel is built: with the host's C compiler, else with Zig's from PyPI.

``HOLDFAST_TARGET=aarch64`` or ``x86_64`` makes a wheel for that machine on any other: the program is static
and uses musl, so that it runs on every Linux there.  ``make wheels`` does that for both.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = "src/holdfast/host/fork_server"
NATIVE = "src/holdfast/host/native"

# A C compiler that pip can install; it brings the headers and the C library with it.
ZIG = "ziglang>=0.13"

# It reads what clients and hostile commands have written: a mistake in it shall end it, and do nothing worse.
# First -U, because some compilers have a number of their own there.
HARDENED = ("-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong")
# Whatever the loader has filled in can only be read afterwards.
SEALED = "-Wl,-z,relro,-z,now"

# What is tried, the best first: not every system has the libraries for each.  Static, because a shim then
# has less memory of its own, and because bubblewrap's sandboxes run it where its libraries may not be seen.
KINDS = (
    (*HARDENED, "-fPIE", "-static-pie", SEALED),
    (*HARDENED, "-fPIE", "-pie", SEALED),
    (*HARDENED, "-static", SEALED),
    ("-O2",),
)
# Zig has another word for the first of these.
ZIG_KINDS = ((*HARDENED, "-fPIE", "-pie", "-static", SEALED),)

# What a compiler must be able to do, to be worth a try: some hosts have one without headers.
TRIAL = "#include <linux/seccomp.h>\n#include <pthread.h>\nint main(void) { return 0; }\n"

FIX = (
    "install a C compiler (apt-get install gcc libc6-dev), or one from PyPI"
    f" (pip install '{ZIG}'), or a wheel of holdfast for this machine"
)


class ForkServerHook(BuildHookInterface[Any]):
    """Puts the program beside its source, where an editable installation finds it, and into the wheel."""

    def dependencies(self) -> list[str]:
        """What pip installs before it builds a wheel: a compiler, unless the host has one."""
        if self.target_name != "wheel":
            return []
        return [] if os.environ.get("HOLDFAST_TARGET") is None and host_compiler() else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        target = os.environ.get("HOLDFAST_TARGET")
        # That of another machine must not take the place of the one that this installation runs.
        program = Path(self.root, PROGRAM if target is None else f"build/{target}/fork_server")
        program.parent.mkdir(parents=True, exist_ok=True)
        failure = compile_program(Path(self.root, NATIVE), program, target)
        if failure is not None:
            # One that an older source left would mean other messages.
            program.unlink(missing_ok=True)
            self.app.abort(f"the fork server cannot be compiled: {failure}")
        build_data["pure_python"] = False
        # A program, not an extension module: any Python will do, but not any machine.
        if target is None:
            build_data["artifacts"].append(f"/{PROGRAM}")
            tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        else:
            build_data["force_include"][str(program)] = PROGRAM.removeprefix("src/")
            # It needs no library, so that any C library is new enough.
            tag = f"manylinux2014_{target}.manylinux_2_17_{target}.musllinux_1_1_{target}"
        build_data["tag"] = f"py3-none-{tag}"


class Compiler(NamedTuple):
    """How a compiler is called, and the kinds of programs it is asked for, the best first."""

    words: tuple[str, ...]
    kinds: tuple[tuple[str, ...], ...]


def host_compiler() -> Compiler | None:
    """What ``CC`` names, or ``cc``; None if it is not there or cannot make a program."""
    return Compiler(host_words(), KINDS) if host_defect() is None else None


def host_words() -> tuple[str, ...]:
    return tuple(shlex.split(os.environ.get("CC", "cc")))


def host_defect() -> str | None:
    """Why the host's compiler cannot make a program; None if it can."""
    words = host_words()
    if not words:
        return "CC is empty"
    with tempfile.TemporaryDirectory() as place:
        trial = Path(place, "trial.c")
        trial.write_text(TRIAL)
        return run([*words, "-o", str(trial.with_suffix("")), str(trial)])


def zig(target: str | None = None) -> Compiler | None:
    """The compiler of the package ``ziglang``, for this machine or another; None if it is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    words = (sys.executable, "-m", "ziglang", "cc", "-target", f"{target or platform.machine()}-linux-musl")
    return Compiler(words, ZIG_KINDS)


def compile_program(sources: Path, program: Path, target: str | None = None) -> str | None:
    """Make the program as well as it can be made.  Why it cannot be, in one line, otherwise.

    Args:
        target: The machine that it is for, if not this one.
    """
    compilers = [zig(target)] if target is not None else [host_compiler(), zig()]
    made = program.with_suffix(".new")
    failure: str | None = None
    for compiler in filter(None, compilers):
        for kind in compiler.kinds:
            failed = build(compiler, sources, made, "-s", *kind)
            if failed is None:
                # In one step, so that nobody ever starts half a program.
                made.replace(program)
                return None
            failure = failed
    if failure is None:
        failure = host_defect() if target is None else "ziglang is not installed"
    return f"{failure}; {FIX}"


def build(compiler: Compiler, sources: Path, made: Path, *options: str) -> str | None:
    """Compile what is in ``sources``.  What the compiler complained of first, if it did not succeed."""
    files = map(str, sorted(sources.glob("*.c")))
    return run([*compiler.words, "-pthread", *options, "-o", str(made), *files])


def run(command: list[str]) -> str | None:
    """Run a compiler.  The first line that it wrote, if it did not succeed."""
    with tempfile.TemporaryDirectory() as cache:
        # Zig keeps the C libraries that it has compiled, for ever if nobody says where.
        zig_caches = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        try:
            ran = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                errors="replace",
                env={**zig_caches, **os.environ},
            )
        except OSError as error:
            return str(error)
    if ran.returncode == 0:
        return None
    return next(iter(ran.stderr.splitlines()), f"the compiler ended with {ran.returncode}")
