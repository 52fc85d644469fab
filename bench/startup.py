"""How long ``holdfast run -- true`` takes beside ``import asyncio``, the least that any such program needs.

    python bench/startup.py [--rounds 40] [--beside SRC ...]

Both run with the interpreter that runs this, and take turns.  Printed are medians of the
time that passes and of the processor time of the program and of those it has waited for,
and how many times that of ``import asyncio`` they are.  ``--beside`` names other source
trees to be measured in the same turns: a trick is worth what it saves there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "src"

PROGRAM = "from holdfast.cli.main import main; raise SystemExit(main())"
"""What the script does that an installation makes."""


class Entrant:
    """A command, and what its runs took."""

    def __init__(self, name: str, *arguments: str, source: Path) -> None:
        self.name = name
        self._argv = [sys.executable, *arguments]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("HOLDFAST", "PYTHON"))}
        self._env = {**kept, "PYTHONPATH": str(source)}
        self.passed: list[float] = []
        self.used: list[float] = []

    def run(self) -> None:
        """Run it once; its input is empty, and it must succeed."""
        before = time.perf_counter()
        empty = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        pid = os.posix_spawn(self._argv[0], self._argv, self._env, file_actions=[empty])
        _, status, usage = os.wait4(pid, 0)
        self.passed.append(time.perf_counter() - before)
        self.used.append(usage.ru_utime + usage.ru_stime)
        if status != 0:
            raise SystemExit(f"{self.name} failed: {os.waitstatus_to_exitcode(status)}")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="runs of each (default: 40)")
    parser.add_argument("--beside", metavar="SRC", type=Path, action="append", default=[])
    arguments = parser.parse_args()

    least = Entrant("import asyncio", "-c", "import asyncio", source=HERE)
    trees = [HERE, *arguments.beside]
    ours = [Entrant(str(tree), "-c", PROGRAM, "run", "--", "true", source=tree) for tree in trees]
    entrants = [least, *ours]
    for entrant in entrants:
        entrant.run()  # The first fills caches: of files, and of compiled modules.
        entrant.passed.clear()
        entrant.used.clear()
    for number in range(arguments.rounds):
        # Each is first in its turn: what the one before left behind hits all.
        first = number % len(entrants)
        for entrant in entrants[first:] + entrants[:first]:
            entrant.run()
    print(f"{'':40} {'passed':>9} {'ratio':>6} {'least':>6} {'used':>9} {'ratio':>6} {'least':>6}")
    for entrant in entrants:
        cells = ""
        for figures, base in ((entrant.passed, least.passed), (entrant.used, least.used)):
            middle = statistics.median(figures)
            cells += f" {middle * 1000:6.1f} ms {middle / statistics.median(base):6.2f}"
            cells += f" {min(figures) / min(base):6.2f}"
        print(f"{entrant.name[-40:]:40}{cells}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
