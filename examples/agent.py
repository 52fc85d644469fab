"""Does what a model asks for, and shows it what came of it: agent.py [URL]

Without a URL the commands run in this program, with one on the server there.
"""

from __future__ import annotations

import asyncio
import sys

import holdfast
from holdfast import STDOUT, HeadTail, HoldfastError, Host

SHOWN = HeadTail(head=10, tail=10)
"""What the model is shown of an output."""

WISHES = ["echo $((6 * 7)) | tr 4 5", "seq 1 1000", "echo waiting; sleep 1000", "exit 3"]
"""They stand for a model."""


async def tool(host: Host, line: str) -> str:
    """Run one command line; return what the model should know of it."""
    try:
        done = await host.run(line, shell=True, capture=SHOWN, stderr=STDOUT, text=True, timeout=2)
    except HoldfastError as error:
        return f"not run: {error}"
    return f"{done.outcome.kind.value} {done.returncode}: {done.stdout!r}"


async def main(url: str | None) -> None:
    async with holdfast.connect(url) if url else holdfast.local() as host:
        for line in WISHES:
            print(await tool(host, line))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
