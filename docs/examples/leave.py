"""Starts a program and leaves."""

import asyncio

import holdfast

COUNT = "for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done"


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        process = await host.start(["sh", "-c", COUNT], name="counter", keep=True)
        async for chunk in process.chunks():
            print(chunk.seq, chunk.data)
            break
        print("it goes on without us:", process.name)


asyncio.run(main())
