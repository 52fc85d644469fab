"""A bad network: every connection through it breaks after 0.3 seconds."""

import asyncio
import contextlib


async def main() -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", 8765)
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(0.3):
                await asyncio.gather(forward(reader, back), forward(there, writer))
        back.transport.abort()
        writer.transport.abort()

    server = await asyncio.start_server(relay, "127.0.0.1", 8766)
    await server.serve_forever()


asyncio.run(main())
