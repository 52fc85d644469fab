"""Runs a sample of the tests with a fork server that watches itself: ``python -m tests.native.sanitized``.

The fork server is built with the sanitizers of addresses and of undefined behaviour, and put into a copy
of the package.  So every process of it is watched: the fork server, shims with their witness, and the first
process in a sandbox.  So is what a child does before it runs its program, in the memory of its shim.

What is not: leaks (``sanitized.c`` says why), and faults that the processor reports.  The fork server sets
every signal back to what it does by default: such a fault ends it without a report, and the test fails.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hatch_build

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "sanitized"
FOUND = WORK / "found"
FORK_SERVER = WORK / "holdfast" / "host" / "fork_server"

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FLAGS = ("-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS, f'-DFOUND="{FOUND}/by"')
RUNTIMES = (("-static-libasan", "-static-libubsan"), ())
"""How they are linked.  GCC's share what they were told only in this way; others may not know the words."""

OPTIONS = Path(__file__).with_name("sanitized.c")

SAMPLE = (
    *(
        f"tests/unit/host/test_fork_server{part}.py"
        for part in ("", "_trees", "_sandbox", "_bubblewrap", "_masks", "_witness", "_user")
    ),
    "tests/unit/host/test_shim_holding.py",
    "tests/unit/host/test_keeper.py",
    "tests/unit/host/test_keeper_handover.py",
    "tests/system/test_start.py",
    "tests/system/test_trees.py",
    "tests/system/test_sandbox_guard.py",
    "tests/system/test_sandbox_guard_links.py",
    "tests/system/test_sandbox_escape.py",
)

BLIND = (
    "tests/unit/host/test_fork_server_bubblewrap.py"
    "::test_a_program_that_cannot_be_seen_inside_is_told_as_such"
)
"""A sandbox in which no library can be seen.  Only a static program starts there, and no sanitizer is one."""

MISTAKES = {
    "memory": "#include <stdlib.h>\nint main(int n) { char *p = malloc(n); free(p); return *p; }",
    "arithmetic": "#include <limits.h>\nint main(int n) { return INT_MAX + n; }",
}

NO_RANDOM_ADDRESSES = 0x0040000  # ADDR_NO_RANDOMIZE of <sys/personality.h>.


def main() -> int:
    compiler = hatch_build.host_compiler()
    if compiler is None:
        print("there is no compiler: nothing is tested with sanitizers", file=sys.stderr)
        return 0
    shutil.rmtree(WORK, ignore_errors=True)
    FOUND.mkdir(parents=True)
    FOUND.chmod(0o1777)  # Servers of other users find something, too.
    # Older runtimes crash now and then where addresses are drawn from a larger range than they know of.
    ctypes.CDLL(None).personality(NO_RANDOM_ADDRESSES)
    tried = {runtime: _try_out(compiler, runtime) for runtime in RUNTIMES}
    runtime = next((runtime for runtime, reason in tried.items() if not reason), None)
    if runtime is None:
        print(f"nothing is tested with sanitizers: {'; '.join(tried.values())}", file=sys.stderr)
        return 0
    package = ROOT / "src" / "holdfast"
    shutil.copytree(
        package, FORK_SERVER.parents[1], ignore=shutil.ignore_patterns("__pycache__", "fork_server")
    )
    failure = hatch_build.build(
        compiler, ROOT / hatch_build.NATIVE, FORK_SERVER, *FLAGS, *runtime, str(OPTIONS)
    )
    if failure is not None:
        print(f"the fork server cannot be built with sanitizers: {failure}", file=sys.stderr)
        return 1
    return _run(sys.argv[1:]) or _tell()


def _try_out(compiler: hatch_build.Compiler, runtime: tuple[str, ...]) -> str:
    """Have mistakes found in the way that the fork server's would be.  Why that cannot be, or nothing."""
    for what, mistake in MISTAKES.items():
        source, program = WORK / f"{what}.c", WORK / what
        source.write_text(f"{mistake}\n", encoding="ascii")
        command = [*compiler.words, *FLAGS, *runtime, "-o", str(program), str(source), str(OPTIONS)]
        built = subprocess.run(command, check=False, capture_output=True, text=True)
        if built.returncode:
            return next(iter(built.stderr.splitlines()), "the compiler knows no sanitizers")
        subprocess.run([program], check=False, env={}, stderr=subprocess.DEVNULL)
        found = list(FOUND.iterdir())
        if not found:
            return f"they do not find a mistake with {what} here"
        for report in found:
            report.unlink()
    return ""


def _run(chosen: list[str]) -> int:
    """The sample, on the copy."""
    known = {**os.environ, "PYTHONPATH": str(WORK), "HOLDFAST_SANITIZED": str(FORK_SERVER)}
    options = ["--quiet", "-r", "fE", "--deselect", BLIND]
    at_once = ["--numprocesses", os.environ.get("TEST_PROCESSES", "2"), "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", *at_once, *options, *(chosen or SAMPLE)]
    ran = subprocess.run(command, check=False, cwd=ROOT, env=known).returncode
    if ran:
        _tell()
    return ran


def _tell() -> int:
    """What was found is an error, whatever became of the tests."""
    found = sorted(FOUND.iterdir())
    for report in found:
        print(report.read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
