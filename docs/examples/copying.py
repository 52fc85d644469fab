"""Files of a host: write, read, list, remove."""

import asyncio

import holdfast
from holdfast.files import Purpose


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        folder = f"{host.info.temp}/holdfast-example"
        await host.files.make_directory(folder, recursive=True)
        await host.files.write(f"{folder}/config.json", b'{"debug": true}\n')

        file = await host.files.open(f"{folder}/config.json", Purpose.READ)
        try:
            print(await file.read(0, 1 << 20))
        finally:
            file.close()

        print([entry.name for entry in await host.files.list(folder)])
        await host.files.remove(folder, recursive=True, force=True)


asyncio.run(main())
