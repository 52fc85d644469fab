"""A program that counts, read over a connection that breaks again and again."""

import asyncio

import holdfast

COUNT = "for i in $(seq 30); do echo $i; sleep 0.1; done"


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8766") as host:
        process = await host.start(["sh", "-c", COUNT])
        assert process.stdout is not None
        lines = [int(line) async for line in process.stdout]
        outcome = await process.wait()
        print("complete:", lines == list(range(1, 31)))
        print("end:", outcome.kind.value, outcome.exit_code)


asyncio.run(main())
