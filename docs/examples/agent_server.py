"""A program in the background of an agent: it is waited for, used, and ended with its children."""

import asyncio

import holdfast


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        command = ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
        async with await host.start(command, stderr=holdfast.STDOUT) as server:
            assert server.stdout is not None
            line = await server.stdout.readline()  # "Serving HTTP on 127.0.0.1 port ..."
            port = line.split()[5].decode()
            fetch = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}').status)"
            done = await host.run(["python3", "-c", fetch], capture_output=True, text=True)
            print("status", done.stdout, end="")
        print("ended:", server.outcome is not None)


asyncio.run(main())
