"""A process that outlives the program that has started it."""

import asyncio

import holdfast


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        await host.start(["sh", "-c", "echo ready; sleep 60"], name="web", keep=True)

    async with holdfast.connect("ws://127.0.0.1:8765") as host:  # Later, or elsewhere.
        for listing in await host.processes():
            print(listing.name, listing.state)
        web = await host.attach("web")
        assert web.stdout is not None
        print(await web.stdout.readline())
        ended = await web.end(grace=5)
        print("ended, and left behind:", list(ended.survivors))


asyncio.run(main())
