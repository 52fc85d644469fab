"""Files of a host: write, read, copy, list, remove."""

import asyncio
import tempfile
from pathlib import Path

import holdfast


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        folder = Path(host.info.temp) / "holdfast-example"
        await host.files.write_text(folder / "config.json", '{"debug": true}', parents=True)
        print(await host.files.read_text(folder / "config.json"))

        try:
            await host.files.read_text(folder / "missing")
        except FileNotFoundError as error:
            print("no such file:", Path(error.filename).relative_to(host.info.temp))

        with tempfile.TemporaryDirectory() as here:
            (Path(here) / "logs").mkdir()
            (Path(here) / "logs" / "today").write_text("all is well\n")
            await host.files.upload(here, folder / "uploaded")

        async for path, _, names in host.files.walk(folder / "uploaded" / "logs"):
            print(*(f"{Path(path).name}/{name}" for name in names))
        await host.files.remove(folder, recursive=True)


asyncio.run(main())
