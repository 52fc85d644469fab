"""One command on a server."""

import asyncio

import holdfast


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        done = await host.run(["echo", "hello"], capture_output=True, text=True, check=True)
        print(done.stdout, end="")


asyncio.run(main())
