"""Everything that can go wrong with a connection, and whose move it is."""

import asyncio

import holdfast
from holdfast import Host, LinkLost, OutcomeUnknown, OutputGap, ProcessLost


async def follow(host: Host, name: str) -> None:
    """Print what a process says, to its end."""
    process = await host.attach(name)
    chunks = process.chunks()
    while True:
        try:
            async for chunk in chunks:
                print(chunk.seq, chunk.data)
            break
        except OutputGap as gap:
            print(f"[{gap.size} bytes are no longer kept]")  # What follows can still be read.
    print("end:", (await process.wait()).kind.value)


async def main() -> None:
    try:
        async with holdfast.connect("ws://127.0.0.1:8765", reconnect_timeout=60) as host:
            await host.start(["echo", "done"], name="job", keep=True)
            await follow(host, "job")
    except ProcessLost as error:
        print("the server has forgotten it; start again:", error)
    except OutcomeUnknown as error:
        print("look before you repeat it:", error)
    except LinkLost as error:
        print("no connection for a minute; the process may still run:", error)


asyncio.run(main())
