"""Programs that say much, and clients that keep account of it."""

from __future__ import annotations

import base64
import hashlib
import random
from collections import defaultdict
from typing import Any

from tests.fakes.client import Client, Message
from tests.fakes.server import eventually, stat_of

KIB = 1 << 10
MIB = 1 << 20

FLOOD = """
import os, random
numbers = random.Random(1)
for number in range({size} // {block}):
    data = numbers.randbytes({block})
    while data:
        data = data[os.write(1 + number % {streams}, data):]
"""
"""A program that says so many bytes, in pieces of one size, on one stream or on two in turn."""


def flood(size: int, *, block: int = 64 * KIB, streams: int = 1) -> tuple[str, ...]:
    """The arguments of such a program."""
    return "python3", "-I", "-S", "-c", FLOOD.format(size=size, block=block, streams=streams)


def expected(size: int, *, block: int = 64 * KIB, streams: int = 1) -> dict[str, str]:
    """The hashes of what it says, by the stream."""
    numbers = random.Random(1)  # noqa: S311  (a repeatable output, not a secret)
    digests = {name: hashlib.sha256() for name in ("stdout", "stderr")[:streams]}
    for number in range(size // block):
        digests[("stdout", "stderr")[number % streams]].update(numbers.randbytes(block))
    return {name: digest.hexdigest() for name, digest in digests.items()}


class Account:
    """What a client has got of a process: told or read, each number once and none left out."""

    def __init__(self) -> None:
        self._digests = defaultdict[str, Any](hashlib.sha256)
        self.size = 0
        self.last = 0

    def hear(self, params: Message) -> int:
        """Take a notification or a chunk of an answer; gives its number of bytes."""
        assert params["seq"] == self.last + 1
        self.last = params["seq"]
        data = base64.b64decode(params.get("chunk", ""))
        if data:
            self._digests[params["stream"]].update(data)
        self.size += len(data)
        return len(data)

    @property
    def hashes(self) -> dict[str, str]:
        return {name: digest.hexdigest() for name, digest in self._digests.items()}


async def pid_of(talking: Client, name: str = "p") -> int:
    listed = (await talking.call("process/list"))["processes"]
    (pid,) = [one["pid"] for one in listed if one["processId"] == name]
    assert isinstance(pid, int)
    return pid


def is_stuck(pid: int) -> bool:
    """Whether a process waits: these never do but for somebody to read what they write."""
    stat = stat_of(pid)
    return stat is not None and stat.state == "S"


async def stuck(pid: int) -> None:
    """Wait until a process waits, and goes on waiting."""
    seen = 0

    def again() -> bool:
        nonlocal seen
        seen = seen + 1 if is_stuck(pid) else 0
        return seen >= 10

    await eventually(again)


async def read_on(talking: Client, account: Account, *, most: int | None = None, name: str = "p") -> Message:
    """Read until the process has closed, or for so many bytes; gives the last page."""
    while True:
        page = await talking.read(name, afterSeq=account.last, waitMs=10_000, maxBytes=MIB)
        assert "gap" not in page
        for chunk in page["chunks"]:
            if chunk["seq"] == account.last + 2:
                account.last += 1  # The exit, which has a number too.
            account.hear(chunk)
        if page["closed"] and not page["chunks"]:
            return page
        if most is not None and account.size >= most:
            return page
