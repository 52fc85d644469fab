"""Fails if a request costs more than in the version before, by instructions (see ``bench.instructions``).

    make bench-gate                 against the commit that is named in bench/baseline
    make bench-gate BASE=REVISION   against another one

The version before is built from the repository's history, below ``build/gate``, and runs with the same
interpreter and the same libraries.  Whoever makes requests dearer on purpose, or cheaper for good, names
another commit in ``bench/baseline`` and says why in the message of that commit.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
from pathlib import Path

from bench import instructions

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "bench" / "baseline"
PLACE = ROOT / "build" / "gate"

FLOOR = 0.95
"""The least ratio of the instructions before to those now."""

SHORT = ["status", "read of nothing", "write of 16 bytes", "echo of 16 bytes", "upload of 64 KiB"]
"""What is counted in the short form.  Starts are left out: they take longest, and differ most."""

SERVE = [sys.executable, "-m", "holdfast", "serve", "--durability", "off", "--sandbox", "off"]


def main() -> int:
    arguments = _arguments()
    revision = arguments.base or BASELINE.read_text().split()[0]
    if not instructions.is_possible():
        print("bench-gate: skipped, valgrind is not installed", file=sys.stderr)
        return 0
    site = _build(revision)
    if site is None:
        print(f"bench-gate: skipped, this checkout has no commit {revision}", file=sys.stderr)
        return 0
    cases = SHORT if arguments.short else list(instructions.CASES)
    results = {
        "before": instructions.measure(SERVE, cases, {"PYTHONPATH": str(site)}),
        "now": instructions.measure(SERVE, cases, {"PYTHONPATH": str(ROOT / "src")}),
    }
    print(instructions.table(results))
    return instructions.judge(results, FLOOR)


def _build(revision: str) -> Path | None:
    """Where that version can be imported from; None if the history does not go back so far."""
    archived = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if archived.returncode:
        return None
    site = PLACE / revision / "site"
    if not site.exists():
        tree = PLACE / revision / "tree"
        with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
            archive.extractall(tree, filter="data")
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        unfinished = site.with_suffix(".new")
        subprocess.run([*pip, "install", "--no-deps", "--target", str(unfinished), str(tree)], check=True)
        unfinished.rename(site)
    return site


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.gate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", metavar="REVISION", help="the version before (the one in bench/baseline)")
    parser.add_argument("--short", action="store_true", help="only what takes a minute and hardly differs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
