"""Fuzz with a view of the branches that are reached: ``make fuzz``, or ``python -m tests.fuzz.run --help``.

Each target has a process of its own, one after the other.  What was found interesting is kept in
``build/fuzz/NAME``, and is where the next run begins; what fails is in ``build/fuzz/failures``.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "fuzz"

LONGEST = 2048
"""Bytes of a case; what can be long is made long by the targets."""

HANG_SECONDS = 30
MEMORY_MB = 2048

KEPT_CASES, KEPT_LONGEST = 100, 400
"""What ``--keep`` puts into the repository, per target: cases, and bytes of one."""

Step = tuple[CodeType, int, int]

_STATUS = re.compile(r"#(\d+)\s+\w+\s+(?:cov: (\d+) ft: (\d+) corp: (\d+)/\S+)?.*?exec/s: (\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz what decodes a peer's bytes.")
    parser.add_argument("--runs", type=int, default=1_000_000, help="cases, of all targets together")
    parser.add_argument("--target", help="only this one")
    parser.add_argument("--keep", action="store_true", help="renew the cases in tests/fuzz/corpus")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options, more = parser.parse_known_args()
    if options.one:
        return _fuzz(options.one, more)
    from .targets.table import TARGETS

    if options.target and options.target not in TARGETS:
        parser.error(f"the targets are {', '.join(TARGETS)}")
    names = [options.target] if options.target else list(TARGETS)
    shares = sum(TARGETS[name].share for name in names)
    failed = 0
    for name in names:
        _prepare(name)
        if options.keep:
            _keep(name)
        else:
            runs = max(1, options.runs * TARGETS[name].share // shares)
            failed += not _run(name, runs, more)
    return 1 if failed else 0


def _fuzz(name: str, arguments: list[str]) -> int:
    """Fuzz one target, in this process, to its end."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["holdfast"]):
        from .targets.table import TARGETS

    atheris.Setup([sys.argv[0], *arguments], TARGETS[name].check)
    atheris.Fuzz()
    return 0


def _prepare(name: str) -> None:
    from .targets.table import TARGETS, kept

    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    (WORK / "failures").mkdir(exist_ok=True)
    for index, case in enumerate([*TARGETS[name].seeds, *kept(name)]):
        (folder / f"known-{index}").write_bytes(case)
    words = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in TARGETS[name].words)
    (WORK / f"{name}.dict").write_text("".join(f'"{word}"\n' for word in words))


def _command(name: str, *arguments: str) -> list[str]:
    return [
        *(sys.executable, "-m", "tests.fuzz.run", "--one", name, f"-max_len={LONGEST}", *arguments),
        *(f"-timeout={HANG_SECONDS}", f"-rss_limit_mb={MEMORY_MB}"),
    ]


def _run(name: str, runs: int, more: list[str]) -> bool:
    """Whether nothing was found; what was is shown."""
    start, words = time.monotonic(), WORK / f"{name}.dict"
    found = subprocess.run(
        _command(
            name,
            f"-runs={runs}",
            f"-artifact_prefix={WORK / 'failures' / name}-",
            *([f"-dict={words}"] if words.stat().st_size else []),
            *more,
            str(WORK / name),
        ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    said = found.stdout + found.stderr
    lines = [match.groups() for match in _STATUS.finditer(said)]
    cases, branches, features, corpus, _ = lines[-1] if lines else ("0", "", "", "", "")
    speed = round(int(cases) / max(0.001, time.monotonic() - start))
    verdict = "ok" if found.returncode == 0 else "FAILED"
    print(
        f"{name:15} {verdict:7} cases {cases:>8}  per second {speed:>6}  branches {branches or '?':>5}  "
        f"features {features or '?':>5}  corpus {corpus or '?':>5}",
        flush=True,
    )
    if found.returncode:
        print(said[-6000:], flush=True)
    return found.returncode == 0


def _keep(name: str) -> None:
    """Choose from what was found the shortest cases that reach all that is reached."""
    from .targets.table import CORPUS, TARGETS

    target = TARGETS[name]
    reached = set[Step]().union(*(_steps(target.check, case) for case in target.seeds))
    found = sorted(
        {path.read_bytes() for path in (WORK / name).iterdir()}, key=lambda case: (len(case), case)
    )
    lines: list[str] = []
    for case in found:
        if len(case) > KEPT_LONGEST or len(lines) >= KEPT_CASES:
            break
        new = _steps(target.check, case) - reached
        if new:
            reached |= new
            lines.append(base64.b64encode(case).decode())
    CORPUS.mkdir(exist_ok=True)
    if lines:
        (CORPUS / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    print(f"{name:15} kept {len(lines)} of {len(found)}", flush=True)


def _steps(check: Callable[[bytes], None], case: bytes) -> set[Step]:
    """The steps from line to line that a case takes in what is fuzzed."""
    steps: set[Step] = set()

    def enter(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        if "/holdfast/" not in frame.f_code.co_filename:
            return None
        code, last = frame.f_code, 0

        def step(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            nonlocal last
            if event == "line":
                steps.add((code, last, frame.f_lineno))
                last = frame.f_lineno
            return step

        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        check(case)
    finally:
        sys.settrace(before)
    return steps


if __name__ == "__main__":
    sys.exit(main())
