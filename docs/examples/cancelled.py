"""What cancelling a call does to the process."""

import asyncio

import holdfast


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        process = await host.start(["sleep", "60"])
        try:
            await asyncio.wait_for(process.wait(), timeout=0.2)
        except TimeoutError:
            print("we wait no longer; it runs:", process.returncode is None)
        await process.end()

        command = asyncio.create_task(host.run(["sleep", "60"]))
        await asyncio.sleep(0.2)
        command.cancel()
        await asyncio.wait([command])
        running = [each for each in await host.processes() if each.state == "running"]
        print("a cancelled run is ended:", running == [])


asyncio.run(main())
