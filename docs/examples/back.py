"""Comes back to a program, and reads on behind what is known."""

import asyncio

import holdfast


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        process = await host.attach("counter", after=1)
        text = b"".join([data async for data in process])
        outcome = await process.wait()
        print(text.decode(), end="")
        print("end:", outcome.kind.value, outcome.exit_code)


asyncio.run(main())
