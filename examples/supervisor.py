"""Keeps programs running and shows what they say: supervisor.py [URL]

Without a URL they run in this program, with one on the server there.
"""

from __future__ import annotations

import asyncio
import sys

import holdfast

PROGRAMS = {
    "steady": "echo ready; echo working; echo done",
    "shaky": 'echo "attempt $ATTEMPT"; test $ATTEMPT = 3',
    "hopeless": "echo no; exit 9",
}


async def keep(host: holdfast.Host, name: str, line: str) -> None:
    """Run a command line until it succeeds, three times at most."""
    for attempt in range(1, 4):
        extra = {"ATTEMPT": str(attempt)}
        process = await host.start(line, shell=True, stderr=holdfast.STDOUT, extra_env=extra)
        async with process:  # At the end of the block it is ended, with everything it has started.
            async for text in process.lines():
                print(f"{name}: {text}", end="", flush=True)
            outcome = await process.wait()
        if outcome.exit_code == 0:
            print(f"{name}: succeeded")
            return
    print(f"{name}: given up, {outcome.kind.value} {outcome.exit_code}")


async def main(url: str | None) -> None:
    async with holdfast.connect(url) if url else holdfast.local() as host, asyncio.TaskGroup() as tasks:
        for name, line in PROGRAMS.items():
            tasks.create_task(keep(host, name, line))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
