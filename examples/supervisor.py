"""Keeps programs running and shows what they say: supervisor.py [URL]

Without a URL they run in this program, with one on the server there.
"""

import asyncio
import sys

from holdfast import STDOUT, Host, connect, local

PROGRAMS = {
    "steady": "echo ready; echo working; echo done",
    "shaky": 'echo "attempt $ATTEMPT"; test $ATTEMPT = 3',
    "hopeless": "echo no; exit 9",
}


async def keep(host: Host, name: str, line: str) -> None:
    """Run a command line until it succeeds, three times at most."""
    for attempt in range(1, 4):
        extra = {"ATTEMPT": str(attempt)}
        # At the end of the block it is ended, with everything it has started.
        async with await host.start(line, shell=True, stderr=STDOUT, extra_env=extra) as process:
            async for text in process.lines():
                print(f"{name}: {text}", end="", flush=True)
            outcome = await process.wait()
        print(f"{name}: {outcome}", flush=True)
        if outcome.exit_code == 0:
            return


async def main() -> None:
    async with connect(sys.argv[1]) if sys.argv[1:] else local() as host:
        await asyncio.gather(*(keep(host, *program) for program in PROGRAMS.items()))


asyncio.run(main())
