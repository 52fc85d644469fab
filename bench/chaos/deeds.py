"""What the clients of the chaos do, one after the other: each deed is a process whose story is known."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from subprocess import PIPE
from typing import Any

from bench.chaos.ledger import Ledger, joined
from bench.chaos.talker import speech
from holdfast.api.handle import Handle
from holdfast.api.host import Host
from holdfast.model import Chunk, Kind, Size, Stream
from holdfast.sandbox import Access, Sandbox, SandboxEntry

PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).with_name("talker.py")))

PATIENCE = 120.0
"""Seconds that a deed may take, however often the server dies and however busy the machine is."""

_ANY = (Stream.STDOUT, Stream.STDERR, Stream.PTY)


@dataclass
class World:
    """What all deeds share."""

    hosts: list[Host]
    marks: Path
    ledger: Ledger
    has_sandbox: bool
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def name(self) -> str:
        """A name that no other process has had."""
        return f"chaos-{next(self.numbers)}"


@dataclass
class Actor:
    """One client's part of the chaos: one process after the other."""

    world: World
    host: Host
    draw: Random

    async def start(self, name: str, *words: object, **options: Any) -> Handle:
        """Start the talker, with a mark that shows how often it was."""
        argv = [*PROGRAM, str(self.world.marks / name), *map(str, words)]
        self.world.ledger.starts += 1
        return await self.host.start(argv, name=name, **options)

    async def follow(self, name: str, handle: Handle) -> list[Chunk]:
        """Everything that a process says, up to its end; the numbers are checked."""
        chunks = [chunk async for chunk in handle.chunks()]
        self.world.ledger.numbers(name, chunks)
        return chunks

    async def heard(self, handle: Handle) -> list[Chunk]:
        """The first that a process says."""
        chunks = handle.chunks()
        return [await anext(chunks)]


Deed = Callable[[Actor, str], Awaitable[None]]


def _plan(draw: Random) -> tuple[int, int, int, int]:
    """A seed, how much is said, how it ends, and the milliseconds between two writes."""
    size = draw.choice((0, 100, 20_000, 200_000, 400_000))
    code = draw.choice((0, 1, 7, 255, -signal.SIGTERM, -signal.SIGKILL))
    return draw.randrange(1 << 30), size, code, draw.choice((0, 5, 20, 60))


def _check(actor: Actor, name: str, handle: Handle, code: int) -> None:
    actor.world.ledger.end(name, handle.returncode, code)


async def pipes(actor: Actor, name: str) -> None:
    """Say something on stdout, stderr or both."""
    seed, size, code, pause = _plan(actor.draw)
    streams = actor.draw.choice(("1", "2", "12"))
    handle = await actor.start(name, "talk", seed, size, streams, code, pause)
    chunks = await actor.follow(name, handle)
    await handle.wait()
    ledger = actor.world.ledger
    for fd, stream in (("1", Stream.STDOUT), ("2", Stream.STDERR)):
        said = speech(seed, int(fd), size) if fd in streams else b""
        ledger.stream(f"{name} {stream.value}", joined(chunks, stream), said)
    _check(actor, name, handle, code)


async def flood(actor: Actor, name: str) -> None:
    """Say much, as fast as it is read: whoever waits for room runs on in the middle of the server's read."""
    seed, size, streams = actor.draw.randrange(1 << 30), actor.draw.randrange(1, 6) << 20, "12"
    in_terminal = actor.draw.random() < 0.3
    options: dict[str, Any] = {"terminal": Size(24, 80)} if in_terminal else {}
    if in_terminal:
        streams = "1"
    handle = await actor.start(name, "talk", seed, size, streams, 3, 0, **options)
    chunks = await actor.follow(name, handle)
    await handle.wait()
    kinds = (Stream.PTY, Stream.STDOUT) if in_terminal else (Stream.STDOUT,)
    actor.world.ledger.stream(f"{name} stdout", joined(chunks, *kinds), speech(seed, 1, size))
    if not in_terminal:
        actor.world.ledger.stream(f"{name} stderr", joined(chunks, Stream.STDERR), speech(seed, 2, size))
    _check(actor, name, handle, 3)


async def terminal(actor: Actor, name: str) -> None:
    """Say something in a terminal."""
    seed, size, code, pause = _plan(actor.draw)
    handle = await actor.start(name, "talk", seed, size, "1", code, pause, terminal=Size(24, 80))
    chunks = await actor.follow(name, handle)
    await handle.wait()
    actor.world.ledger.stream(f"{name} terminal", joined(chunks, *_ANY), speech(seed, 1, size))
    _check(actor, name, handle, code)


async def echo(actor: Actor, name: str) -> None:
    """Give a process its input piece by piece, by the library's own stdin."""
    draw = actor.draw
    in_terminal, code = draw.random() < 0.3, draw.randrange(256)
    lines = [_line(name, number, draw) for number in range(draw.randrange(1, 60))]
    size = sum(map(len, lines)) if in_terminal else 0
    options: dict[str, Any] = {"terminal": Size(24, 80)} if in_terminal else {"stdin": PIPE}
    handle = await actor.start(name, "echo", size, code, draw.choice((0, 0, 30)), **options)
    (first,) = await actor.heard(handle)  # Before that, a terminal is not as it has to be.

    async def feed() -> None:
        assert handle.stdin is not None
        for line in lines:
            handle.stdin.write(line)
            await handle.stdin.drain()
            await asyncio.sleep(draw.choice((0, 0.01, 0.04)))
        if not in_terminal:
            handle.stdin.close()

    feeding = asyncio.create_task(feed())
    rest = [chunk async for chunk in handle.chunks()]
    await feeding
    await handle.wait()
    _check_echo(actor, name, [first, *rest], lines)
    _check(actor, name, handle, code)


async def twice(actor: Actor, name: str) -> None:
    """Write with identifiers of our own, some writes twice: those must come once."""
    draw = actor.draw
    code = draw.randrange(256)
    lines = [_line(name, number, draw) for number in range(draw.randrange(1, 40))]
    handle = await actor.start(name, "echo", 0, code, 0, stdin=PIPE)
    process = handle._process  # The library chooses identifiers by itself.

    async def feed() -> None:
        for number, line in enumerate(lines):
            await process.write(line, write_id=f"{name}/{number}")
            if draw.random() < 0.5:
                actor.world.ledger.repeated += 1
                await process.write(line, write_id=f"{name}/{number}")
            await asyncio.sleep(draw.choice((0, 0.02)))
        await process.close_stdin(write_id=f"{name}/end")

    feeding = asyncio.create_task(feed())
    chunks = [chunk async for chunk in handle.chunks()]
    await feeding
    await handle.wait()
    _check_echo(actor, name, chunks, lines)
    _check(actor, name, handle, code)


def _line(name: str, number: int, draw: Random) -> bytes:
    """One write: a line that is like no other."""
    return f"{name}/{number}:{'x' * draw.choice((0, 10, 300, 5000, 70_000))}\n".encode()


def _check_echo(actor: Actor, name: str, chunks: list[Chunk], lines: list[bytes]) -> None:
    ledger, got = actor.world.ledger, joined(chunks, *_ANY)
    ledger.numbers(name, chunks)
    ledger.writes += len(lines)
    seen = Counter(hashlib.sha256(line).digest() for line in got[1:].splitlines(keepends=True))
    for line in lines:
        count = seen[hashlib.sha256(line).digest()]
        ledger.lost_writes += not count
        ledger.doubled_writes += max(0, count - 1)
    ledger.stream(f"{name} echo", got, b"!" + b"".join(lines))


async def shared(actor: Actor, name: str) -> None:
    """Start a process that belongs to nobody, and have another client read it from the beginning."""
    seed, size, code, pause = _plan(actor.draw)
    started = await actor.start(name, "talk", seed, size, "1", code, pause, keep=True)
    started.detach()
    await asyncio.sleep(actor.draw.random())
    other = actor.draw.choice(actor.world.hosts)
    handle = await other.attach(name)
    chunks = await actor.follow(name, handle)
    await handle.wait()
    got, said = joined(chunks, *_ANY), speech(seed, 1, size)
    actor.world.ledger.stream(f"{name} shared", got, said)
    _check(actor, name, handle, code)


async def ended(actor: Actor, name: str) -> None:
    """End a process that has children of its own, who have gone their own ways."""
    handle = await actor.start(name, "stay", "parent")
    heard = await actor.heard(handle)
    await asyncio.sleep(actor.draw.random() / 2)
    result = await handle.end()
    ledger = actor.world.ledger
    ledger.stream(f"{name} ended", joined(heard, *_ANY), b"!")
    outcome = await handle.wait()
    ledger.end(name, (outcome.kind, outcome.by), (Kind.TERMINATED, "client"))
    ledger.end(f"{name}, survivors", tuple(result.survivors), ())


async def asked(actor: Actor, name: str) -> None:
    """Ask a process to end, and let it say goodbye."""
    handle = await actor.start(name, "stay", "polite")
    first = await actor.heard(handle)
    await handle.end(grace=PATIENCE)
    chunks = first + [chunk async for chunk in handle.chunks()]
    outcome = await handle.wait()
    actor.world.ledger.numbers(name, chunks)
    actor.world.ledger.stream(f"{name} asked", joined(chunks, *_ANY), b"!bye")
    actor.world.ledger.end(name, (outcome.kind, outcome.exit_code), (Kind.TERMINATED, 9))


async def timeout(actor: Actor, name: str) -> None:
    """Let a process run out of its time; it must have had all of it."""
    seconds = actor.draw.uniform(0.3, 2.0)
    option = actor.draw.choice(("timeout", "idle_timeout"))
    kind = Kind.TIMEOUT if option == "timeout" else Kind.IDLE_TIMEOUT
    began = time.monotonic()
    handle = await actor.start(name, "stay", "parent", **{option: seconds})
    chunks = await actor.follow(name, handle)
    outcome = await handle.wait()
    took = time.monotonic() - began
    ledger = actor.world.ledger
    ledger.end(name, outcome.kind, kind)
    if took < seconds:
        ledger.end(f"{name}, seconds", round(took, 3), round(seconds, 3))
    if joined(chunks, *_ANY) not in (b"", b"!"):  # It may not have come so far as to say it.
        ledger.stream(f"{name} timeout", joined(chunks, *_ANY), b"!")


async def output_limit(actor: Actor, name: str) -> None:
    """Let a process say more than it may."""
    seed, limit = actor.draw.randrange(1 << 30), 50_000
    handle = await actor.start(name, "talk", seed, 300_000, "1", 0, 10, output_limit=limit)
    chunks = await actor.follow(name, handle)
    outcome = await handle.wait()
    got = joined(chunks, *_ANY)
    actor.world.ledger.stream(f"{name} limit", got, speech(seed, 1, 300_000)[: max(len(got), limit)])
    actor.world.ledger.end(name, outcome.kind, Kind.OUTPUT_LIMIT)


async def sandboxed(actor: Actor, name: str) -> None:
    """Have a process try what it may not; that it did is told at its end."""
    if not actor.world.has_sandbox:
        return
    marks = actor.world.marks
    forbidden = str(marks.parent / "forbidden")
    entries = SandboxEntry("/", Access.READ), SandboxEntry(str(marks), Access.WRITE)
    sandbox = Sandbox(entries, network=True, cwd="/")
    seed, size, _, pause = _plan(actor.draw)
    handle = await actor.start(
        name, "confined", forbidden, seed, size, "1", 5, pause, sandbox=sandbox, terminal=None
    )
    chunks = await actor.follow(name, handle)
    await handle.wait()
    ledger = actor.world.ledger
    ledger.stream(f"{name} sandboxed", joined(chunks, *_ANY), speech(seed, 1, size))
    _check(actor, name, handle, 5)
    end = handle._process.exit  # Denials are told to backends only.
    assert end is not None
    denied = end.denied
    paths = () if denied is None else [each.subject for each in denied.denials]
    if denied is not None and denied.exact:
        ledger.end(f"{name}, refused", forbidden in paths, expected=True)


DEEDS: dict[Deed, float] = {
    pipes: 6,
    flood: 6,
    terminal: 4,
    echo: 4,
    twice: 3,
    shared: 3,
    ended: 1,
    asked: 1,
    timeout: 1,
    output_limit: 1,
    sandboxed: 1,
}
"""How often each is done, in proportion."""


async def act(actor: Actor, over: asyncio.Event) -> None:
    """Do one deed after the other until it is over."""
    ledger = actor.world.ledger
    while not over.is_set():
        (deed,) = actor.draw.choices(list(DEEDS), list(DEEDS.values()))
        name = f"{deed.__name__}-{actor.world.name()}"
        try:
            async with asyncio.timeout(PATIENCE):
                await deed(actor, name)
        except Exception as error:  # noqa: BLE001  (every failure is told, and the others go on)
            ledger.wrong.append(f"{name}: {type(error).__name__}: {error}")
        ledger.deeds[deed.__name__] += 1
