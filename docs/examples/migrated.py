"""What was written for asyncio.subprocess, with a host in front."""

import asyncio

import holdfast
from holdfast import PIPE


async def main() -> None:
    async with holdfast.local() as host:
        process = await host.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one line\n")
        await process.stdin.drain()
        print(await process.stdout.readline())
        await process.terminate()  # Awaited: it may cross a network.
        await process.wait()
        print(process.returncode)


asyncio.run(main())
