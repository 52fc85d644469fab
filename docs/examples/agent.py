"""An agent: a model chooses commands, a host runs them, the model is told what came of it."""

import asyncio

import holdfast
from holdfast import STDOUT, HeadTail, HoldfastError, Host

SHOWN = HeadTail(head=1000, tail=1000)  # Bytes of output that the model is shown.

WISHES = [  # They stand for a model.
    "echo 'def half(n): return n / 2' >half.py",
    "python3 -c 'import half; print(half.half(5))'",
    "echo waiting; sleep 60",
    "grep -c third half.py",
]


async def tool(host: Host, line: str) -> str:
    """Run one command line; return what the model should know of it."""
    try:
        done = await host.run(
            line, shell=True, capture=SHOWN, stderr=STDOUT, text=True, errors="replace", cwd="/tmp", timeout=4
        )
    except HoldfastError as error:
        return f"not run: {error}"
    return f"{done.outcome}: {done.stdout!r}"


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        for line in WISHES:
            print(line.split()[0], "->", await tool(host, line))


asyncio.run(main())
