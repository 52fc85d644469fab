"""Uses of holdfast with an event loop, as programs write them: checked for types, not run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import assert_type

import holdfast
from holdfast import DEVNULL, PIPE, STDOUT


async def words(stream: asyncio.StreamReader) -> list[bytes]:
    """A function that was written for ``asyncio``."""
    return [word async for line in stream for word in line.split()]


async def connected() -> None:
    async with holdfast.connect("ws://127.0.0.1:8765", token="secret") as host:
        assert_type(host, holdfast.Host)
        process = await host.start(["pytest", "-q"], cwd=Path("/repo"), timeout=600, grace=5)
        async for data in process:
            assert_type(data, bytes)
        outcome = await process.wait()
        assert_type(outcome, holdfast.Outcome)
        assert_type(outcome.kind, holdfast.Kind)
        assert_type(process.returncode, int | None)


async def streams() -> None:
    host = await holdfast.local().open()
    process = await host.create_subprocess_exec("sort", stdin=PIPE, stderr=STDOUT)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"b\na\n")
    await process.stdin.drain()
    process.stdin.write_eof()
    assert_type(await words(process.stdout), list[bytes])
    shell = await host.create_subprocess_shell("ls | wc -l", stdout=DEVNULL, terminal=holdfast.Size(24, 80))
    assert_type(await shell.communicate(), tuple[bytes | None, bytes | None])
    async for chunk in (await host.attach("job", after=7)).chunks():
        assert_type(chunk, holdfast.Chunk)
        assert_type(chunk.stream, holdfast.Stream)
    assert_type(await host.processes(), Sequence[holdfast.Listing])
    assert_type(await process.end(grace=1.0), holdfast.Ended)
    await host.aclose()


async def commands(host: holdfast.Host) -> None:
    raw = await host.run(["ls"], capture_output=True, limits=holdfast.Limits(memory=1 << 30))
    assert_type(raw, holdfast.Completed[bytes])
    assert_type(raw.stdout, bytes)
    text = await host.run(["ls"], capture_output=True, text=True, input="in")
    assert_type(text.stdout.splitlines(), list[str])
    coded = await host.run(["ls"], capture_output=True, encoding="latin-1", env={"A": "1"})
    assert_type(coded.stderr, str)
    ends = await host.run("ls | sort", shell=True, capture=holdfast.HeadTail(9, 9), stderr=STDOUT, text=True)
    assert_type(ends, holdfast.Completed[str])
    assert_type(ends.omitted.total, int)
    bare = await host.run(["ls"], capture=holdfast.HeadTail(9, 9), extra_env={"A": "1", "B": None})
    assert_type(bare.stdout, bytes)
    async for done in host.map([["ls"], ["pwd"]], text=True, timeout=3):
        assert_type(done, holdfast.Completed[str])
    async for given in host.map(["ls"], shell=True, return_exceptions=True, output_limit=9):
        assert_type(given, holdfast.Completed[bytes] | holdfast.HoldfastError)
    async for line in (await host.start(["ls"], output_limit=9, truncate_output=True)).lines():
        assert_type(line, str)
    assert_type(await host.start(["id"], user="nobody"), holdfast.Handle)
    assert_type((await host.run(["id"], user=1000, text=True, capture_output=True)).stdout, str)
    shown = await host.run(["ls"], check=True)
    assert_type(shown.stdout, bytes | str | None)
    try:
        await host.run(["make"], check=True, timeout=3)
    except holdfast.CommandFailed as failed:
        assert_type(failed.completed, holdfast.Completed[bytes | str | None])
        assert_type(failed.returncode, int)
        assert_type(failed.outcome, holdfast.Outcome)
    except holdfast.TimedOut as late:
        assert_type(late.timeout, float)
    except holdfast.OutputGap as gap:
        assert_type(gap.size, int | None)
    except holdfast.HoldfastError:
        pass


async def restricted(host: holdfast.Host) -> None:
    sandbox = holdfast.Sandbox.workspace(write=["/out", Path("more")], network=False, deny=["**/*.pem"])
    done = await host.run(["make"], capture_output=True, sandbox=sandbox)
    assert_type(done.denials, tuple[holdfast.Denial, ...])
    handle = await host.start(["make"], sandbox=holdfast.Sandbox.read_only())
    assert_type(handle.denials, tuple[holdfast.Denial, ...])


async def fetched(host: holdfast.Host) -> None:
    whole = await host.http.get("http://localhost/", headers={"a": "b"}, timeout=3)
    assert_type(await whole.read(), bytes)
    async with await host.http.request("POST", "http://localhost/", body=b"x") as response:
        assert_type(response.header("a"), str | None)
        async for piece in response:
            assert_type(piece, bytes)
