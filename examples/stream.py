"""Runs a command and shows its output as it comes: stream.py [--url URL] [COMMAND ARGUMENT...]

Without a URL it runs in this program, with one on the server there.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import holdfast


async def run(url: str | None, argv: list[str]) -> int:
    """Start ``argv``, copy its output to ours, return its exit code."""
    async with holdfast.connect(url) if url else holdfast.local() as host:
        process = await host.start(argv, timeout=60)
        async for chunk in process.chunks():
            out = sys.stderr if chunk.stream is holdfast.Stream.STDERR else sys.stdout
            out.buffer.write(chunk.data)
            out.flush()
        outcome = await process.wait()
        print(f"{process.name}: {outcome.kind.value}", file=sys.stderr)
        return outcome.exit_code if outcome.exit_code is not None else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("argv", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    sys.exit(asyncio.run(run(given.url, given.argv or ["sh", "-c", "echo hello from process $$"])))
