"""An agent: a model chooses commands, a host runs them, the model is told what came of it."""

import asyncio
from collections.abc import AsyncIterator

import holdfast
from holdfast import Host, SpawnFailed

MOST = 2000  # Characters of output that the model is shown.


async def tool(host: Host, argv: list[str]) -> str:
    """Run one command; return what the model should know of it."""
    try:
        done = await host.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=host.info.temp,
            timeout=4,
            output_limit=10 << 20,
        )
    except SpawnFailed as error:
        return f"not started: {error.reason}"
    said = done.stdout + done.stderr
    return f"{done.outcome.kind.value} {done.returncode}: {said[-MOST:]!r}"


async def model() -> AsyncIterator[list[str]]:
    """Stands for a model: these are its wishes, one after the other."""
    yield ["sh", "-c", "echo 'def half(n): return n / 2' >half.py"]
    yield ["python3", "-c", "import half; print(half.half(5))"]
    yield ["sh", "-c", "echo waiting; sleep 60"]
    yield ["no-such-program"]


async def main() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765") as host:
        async for argv in model():
            print(argv[0], "->", await tool(host, argv))


asyncio.run(main())
