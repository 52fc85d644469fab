"""A server on the standard input and output of a program."""

import asyncio

import holdfast

SERVER = "stdio:holdfast serve --listen stdio"  # Elsewhere: "stdio:ssh HOST holdfast serve --listen stdio"


async def main() -> None:
    async with holdfast.connect(SERVER) as host:
        done = await host.run(["echo", "hello from", host.info.cwd], capture_output=True, text=True)
        print(done.stdout.split(" /")[0])


asyncio.run(main())
