"""What happens to all processes of a host, one event after the other."""

import asyncio

import holdfast
from holdfast import EventKind


async def main() -> None:
    async with holdfast.local() as host, host.events() as events:
        ask = ["sh", "-c", "printf 'Continue? '; read answer; echo $answer; exit 3"]
        asks = await host.start(ask, name="asks", stdin=holdfast.PIPE)
        async for event in events:
            print(event.kind, event.name)
            if event.kind is EventKind.WAITING and asks.stdin is not None:
                asks.stdin.write(b"yes\n")
            if event.kind is EventKind.EXITED:
                print("exit code:", event.exit_code)
                break


asyncio.run(main())
