"""A program that is talked to."""

import asyncio

import holdfast
from holdfast import PIPE


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        process = await host.start(["sh", "-c", "read name; echo hello $name; exit 3"], stdin=PIPE)
        stdout, _ = await process.communicate(b"world\n")
        print(stdout)
        print(process.returncode)


asyncio.run(main())
