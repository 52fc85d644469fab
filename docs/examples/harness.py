"""An evaluation: many tasks at once, each within limits, each with a verdict."""

import asyncio
from collections import Counter

import holdfast
from holdfast import Host, Kind, Limits, LinkLost, SpawnFailed

AT_ONCE = 8
LIMITS = Limits(memory=256 << 20, cpu=2, processes=32)

VERDICTS = {
    Kind.OOM: "out of memory",
    Kind.OUTPUT_LIMIT: "too much output",
    Kind.CPU_LIMIT: "too slow",
    Kind.TIMEOUT: "too slow",
}

TASKS = {
    "right": "print(6 * 7)",
    "wrong": "print(6 * 9)",
    "broken": "raise SystemExit(1)",
    "endless": "while True: pass",
    "greedy": "x = b'x' * (1 << 30)",
    "loud": "while True: print('loud')",
}


async def judge(host: Host, program: str) -> str:
    """The verdict on one program, whose answer should be 42."""
    try:
        done = await host.run(
            ["python3", "-c", program],
            capture_output=True,
            timeout=30,
            output_limit=1 << 20,
            limits=LIMITS,
        )
    except (SpawnFailed, LinkLost) as error:
        return f"not judged: {error}"  # Our trouble, not the program's: to be tried again.
    if done.outcome.kind in VERDICTS:
        return VERDICTS[done.outcome.kind]
    if done.returncode:
        return "failed"
    return "passed" if done.stdout.strip() == b"42" else "wrong answer"


async def main() -> None:
    room = asyncio.Semaphore(AT_ONCE)
    verdicts: dict[str, str] = {}

    async def one(host: Host, name: str, program: str) -> None:
        async with room:
            verdicts[name] = await judge(host, program)

    async with holdfast.connect("ws://127.0.0.1:8765") as host, asyncio.TaskGroup() as tasks:
        for name, program in TASKS.items():
            tasks.create_task(one(host, name, program))
    for name in TASKS:
        print(f"{name:8} {verdicts[name]}")
    print("passed", Counter(verdicts.values())["passed"], "of", len(TASKS))


asyncio.run(main())
