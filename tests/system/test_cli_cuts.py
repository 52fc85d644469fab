"""The command line over a connection that is cut again and again: not a byte is lost, or comes twice."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.backends import LONG
from tests.fakes.faults import Fault, Network, Trouble, Way, bad_network
from tests.fakes.server import eventually, program_at
from tests.fakes.terminal import HOLDFAST, SILENT, holdfast, person_at

pytestmark = pytest.mark.slow

CUTS = 1000 if LONG else 15
WITHIN = 10.0 + CUTS / 10

TALKER = """\
import hashlib, os, sys, time
digest, number = hashlib.sha256(), 0
while not os.path.exists("enough"):
    for _ in range(20):
        number += 1
        line = b"line %d\\n" % number
        digest.update(line)
        os.write(1, line)
    time.sleep(0.001)
open("hash", "w").write(digest.hexdigest())
"""
"""Says numbered lines, at the pace of a program that works, until there have been enough cuts."""

ECHO = """\
import hashlib, os
digest = hashlib.sha256()
while data := os.read(0, 65536):
    digest.update(data)
    while data: data = data[os.write(1, data):]
open("hash", "w").write(digest.hexdigest())
"""


def cut_at_random(number: int) -> Fault | None:
    """The fault of a connection: at any place, also in the handshake, but for that of the first."""
    if number >= CUTS:
        return None
    chance = random.Random(number)  # noqa: S311  (the same in each run)
    way = chance.choice((Way.THERE, Way.BACK, Way.BACK))
    # What follows sends little.
    return Fault(
        Trouble.CUT, way, chance.randint(2000 if number == 0 else 20, 4000 if way is Way.THERE else 12_000)
    )


@asynccontextmanager
async def network() -> AsyncIterator[tuple[str, str, Network]]:
    """The URL of a server, and that of the bad way to it."""
    with program_at() as (_, url):
        async with bad_network(url, cut_at_random) as (bad, happened):
            yield url, bad, happened


async def begin(*arguments: str, stdin: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *HOLDFAST,
        *arguments,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **SILENT},
    )


async def enough(happened: Network) -> None:
    await eventually(lambda: happened.faults >= CUTS, within=WITHIN)


@pytest.mark.timeout(2 * WITHIN)
@pytest.mark.parametrize("verb", [("logs", "-f"), ("attach", "--no-stdin")], ids=["logs", "attach"])
async def test_whoever_follows_gets_each_line_once(verb: tuple[str, ...], tmp_path: Path) -> None:
    async with network() as (url, bad, happened):
        options = ("-d", "-H", url, "--name", "talker", "-w", str(tmp_path))
        started = holdfast("run", *options, "--", sys.executable, "-c", TALKER)
        ours = await begin(*verb, "-H", bad, "talker")
        telling = asyncio.ensure_future(ours.communicate())
        await enough(happened)
        (tmp_path / "enough").touch()
        out, err = await telling

    assert started.returncode == 0
    assert (ours.returncode, err) == (0, b"")
    assert hashlib.sha256(out).hexdigest() == (tmp_path / "hash").read_text()


@pytest.mark.timeout(2 * WITHIN)
@pytest.mark.parametrize("verb", ["run", "exec"])
async def test_input_and_output_of_a_program_pass_unchanged(verb: str, tmp_path: Path) -> None:
    """Each piece of input arrives once, also the one on whose way the connection broke."""
    sent, got = hashlib.sha256(), hashlib.sha256()
    async with network() as (_, bad, happened):
        ours = await begin(
            verb,
            "-H",
            bad,
            "-w",
            str(tmp_path),
            "--",
            sys.executable,
            "-c",
            ECHO,
            stdin=asyncio.subprocess.PIPE,
        )
        assert ours.stdin is not None
        assert ours.stdout is not None
        assert ours.stderr is not None
        cuts = asyncio.ensure_future(enough(happened))
        number = 0
        while not cuts.done():
            line = b"%d\n" % number * 50
            sent.update(line)
            ours.stdin.write(line)
            await ours.stdin.drain()
            # What was sent comes back before more is sent: no pipe hides the cuts.
            got.update(await ours.stdout.readexactly(len(line)))
            number += 1
        await cuts
        ours.stdin.close()
        got.update(await ours.stdout.read())
        err = await ours.stderr.read()
        code = await ours.wait()

    assert (code, err) == (0, b"")
    assert sent.hexdigest() == got.hexdigest() == (tmp_path / "hash").read_text()


async def test_a_user_is_told_of_a_connection_that_is_gone_for_long_and_of_its_return(tmp_path: Path) -> None:
    """A terminal that does not answer is taken for a program that hangs."""
    seen = False

    def plan(number: int) -> Fault | None:
        return None if seen else Fault(Trouble.CUT, Way.BACK, 4000 if number == 0 else 20)

    def sit(url: str) -> tuple[int, bytes, bool]:
        nonlocal seen
        command = ("exec", "-t", "-H", url, "-w", str(tmp_path), "--", sys.executable, "-c", TALKER)
        with person_at(*command) as person:
            person.expect(b"\r\nholdfast: connection lost, trying again...\r\n")
            seen = True
            person.expect(b"\r\nholdfast: connected again\r\n")
            person.expect(b"line")
            person.type(b"\x03")
            return person.wait(), person.shown, person.modes() == person.modes_before

    with program_at() as (_, url):
        async with bad_network(url, plan) as (bad, _):
            code, shown, restored = await asyncio.to_thread(sit, bad)

    assert (code, restored) == (130, True)
    assert (shown.count(b"connection lost"), shown.count(b"connected again")) == (1, 1)
