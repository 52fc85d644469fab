"""Holds a conversation with a program: talk.py"""

from __future__ import annotations

import asyncio

import holdfast


async def ask(process: holdfast.Handle, question: str) -> str:
    """Write a line, read a line."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{question}\n".encode())
    await process.stdin.drain()
    return (await process.stdout.readline()).decode().strip()


async def main() -> None:
    async with holdfast.local() as host:
        script = "while read a b; do echo $((a * b)); done"
        async with await host.start(["sh", "-c", script], stdin=holdfast.PIPE) as process:
            for question in ("6 7", "12 12", "99 101"):
                print(question, "->", await ask(process, question))


if __name__ == "__main__":
    asyncio.run(main())
