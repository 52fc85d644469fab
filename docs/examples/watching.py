"""What a process uses while it runs: two looks, and the difference between them."""

import asyncio

import holdfast


async def main() -> None:
    async with holdfast.local() as host:
        busy = await host.start(["sh", "-c", "while :; do :; done"], name="busy")
        (before,) = await host.usage("busy")
        await asyncio.sleep(1)
        (after,) = await host.usage("busy")
        seconds = 1 + before.age - after.age
        share = (after.cpu_us - before.cpu_us) / 1_000_000 / seconds
        print("busy:", share > 0.01, "processes:", after.processes)
        await busy.kill()


asyncio.run(main())
