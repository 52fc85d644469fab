"""A command that is ended once it is silent; it is asked first."""

import asyncio

import holdfast

COMMAND = "trap 'echo tidied up; exit' TERM; echo working; sleep 60 & wait"


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        process = await host.start(["sh", "-c", COMMAND], idle_timeout=0.5, grace=5)
        async for data in process:
            print(data.decode(), end="")
        outcome = await process.wait()
        print(outcome.kind.value, "-", outcome.detail)


asyncio.run(main())
