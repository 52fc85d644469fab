"""Judges programs, many at once, each within limits: harness.py [URL]

Without a URL they run in this program, with one on the server there.
"""

from __future__ import annotations

import asyncio
import sys

import holdfast
from holdfast import Completed, HoldfastError, Kind, Limits

TASKS = {
    "right": "print(6 * 7)",
    "wrong": "print(6 * 9)",
    "broken": "raise SystemExit(1)",
    "endless": "while True: pass",
    "loud": "while True: print('loud')",
}


def judge(done: Completed[bytes] | HoldfastError) -> str:
    """The verdict on one program, whose answer should be 42."""
    if isinstance(done, HoldfastError):
        return f"not judged: {done}"
    if not done.ok:
        return "failed" if done.outcome.kind is Kind.EXIT else done.outcome.kind.value
    return "passed" if done.stdout.strip() == b"42" else "wrong answer"


async def main(url: str | None) -> None:
    programs = [[sys.executable, "-c", program] for program in TASKS.values()]
    limits = Limits(cpu=1, processes=32)
    async with holdfast.connect(url) if url else holdfast.local() as host:
        results = host.map(
            programs, limit=4, return_exceptions=True, timeout=60, output_limit=1 << 20, limits=limits
        )
        for name in TASKS:
            print(f"{name}: {judge(await anext(results))}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
