"""An evaluation: many tasks at once, each within limits, each with a verdict."""

import asyncio

import holdfast
from holdfast import Completed, HoldfastError, Kind, Limits

LIMITS = Limits(memory=256 << 20, cpu=2, processes=32)

VERDICTS = {Kind.OOM: "out of memory", Kind.OUTPUT_LIMIT: "too much output"}
VERDICTS |= dict.fromkeys([Kind.CPU_LIMIT, Kind.TIMEOUT], "too slow")

TASKS = {
    "right": "print(6 * 7)",
    "wrong": "print(6 * 9)",
    "broken": "raise SystemExit(1)",
    "endless": "while True: pass",
    "greedy": "x = b'x' * (1 << 30)",
    "loud": "while True: print('loud')",
}


def judge(done: Completed[bytes] | HoldfastError) -> str:
    """The verdict on one program, whose answer should be 42."""
    if isinstance(done, HoldfastError):
        return f"not judged: {done}"  # Our trouble, not the program's: to be tried again.
    if not done.ok:
        return VERDICTS.get(done.outcome.kind, "failed")
    return "passed" if done.stdout.strip() == b"42" else "wrong answer"


async def main() -> None:
    programs = [["python3", "-c", program] for program in TASKS.values()]
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        results = host.map(
            programs, limit=8, return_exceptions=True, timeout=30, output_limit=1 << 20, limits=LIMITS
        )
        verdicts = [judge(done) async for done in results]
    for name, verdict in zip(TASKS, verdicts, strict=True):
        print(f"{name:8} {verdict}")
    print("passed", verdicts.count("passed"), "of", len(TASKS))


asyncio.run(main())
