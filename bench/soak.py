"""A hundred clients do everything at once for a long time, and then nothing may be left of it.

See ``bench/README.md``.  Every answer and every notification is checked while it runs; at the end
the server must be as it was: descriptors, processes, tasks, memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from bench.soaking import deeds
from bench.soaking.gauges import Sample, Watched, slope
from bench.soaking.peer import PATIENCE, check
from bench.soaking.user import NOISE_BYTES, Deed, User, World
from bench.soaking.web import Web

SETTLING = 60.0
"""Seconds that the longest retention may take: 30 for a session whose client is gone, and some more."""

JUDGED_FROM = 300.0
"""Seconds of load from which on the rise of memory is judged.  Before, the server still fills what it keeps:
processes for 30 s after their end, sessions for 30 s after their client, and what lives once per server."""

GROWTH_MIB, GROWTH_SHARE = 8.0, 0.1
"""How much memory may rise over the second half of the load, in all; the larger of the two counts.  What is
kept of ended processes moves it by some MiB, as chance has it; a leak of a KiB per deed adds up to more."""

SLACK = 24
"""Objects of one class that may be more than in the beginning: those of the eight kept processes, which are
remembered for an hour, and what is made once, when it is first needed."""

CACHES = {"holdfast.model.Outcome": 512, "holdfast.model.Cause": 512, "holdfast.model.Chunk": 1600}
"""Classes of which so many are kept: by caches, and as the last KiB that each kept process has said."""

READY_MADE = {"/memfd:holdfast-arguments (deleted)": 64, "anon_inode:[landlock-ruleset]": 64}
"""Open files of which so many are kept: sandboxes for the next command that asks for the same one."""


def main() -> int:
    arguments = _arguments()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(
        f"seed {arguments.seed}, {arguments.connections} connections for {arguments.seconds:g} s", flush=True
    )
    with tempfile.TemporaryDirectory() as directory:
        soak = Soak(arguments, Path(directory))
        asyncio.run(soak.run())
        return soak.report()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1800, help="of load; settling comes on top (1800)")
    parser.add_argument("--connections", type=int, default=100, help="at once (100)")
    parser.add_argument("--rate", type=float, default=12, help="deeds per second, of all together (12)")
    parser.add_argument(
        "--seed", type=int, default=int.from_bytes(os.urandom(4)), help="to do the same again"
    )
    parser.add_argument("--sandbox", default="auto", help="as of `holdfast serve`")
    return parser.parse_args()


class Soak:
    """One run."""

    def __init__(self, arguments: argparse.Namespace, directory: Path) -> None:
        self._arguments = arguments
        self._directory = directory
        self._samples: list[Sample] = []
        self._wrong: list[str] = []
        self._holds = 0
        self._took = self._cpu = self._own_cpu = self._all_cpu = 0.0

    async def run(self) -> None:
        noise = Random(self._arguments.seed).randbytes(NOISE_BYTES)
        (self._directory / "noise").write_bytes(noise)
        path = self._directory / "socket"
        listen = ("--listen", "ws://127.0.0.1:0", "--listen", f"unix://{path}")
        web = Web(noise)
        # One of the clients sends the worst that is legal to methods that remove files, and we may be root.
        with Watched(*listen, "--sandbox", self._arguments.sandbox, within=self._directory) as server:
            urls = [server.read_url(), server.read_url()]
            # Two of three on TCP.
            pause = self._arguments.connections / self._arguments.rate
            self.world = World([urls[0], *urls], self._directory, await web.open(), noise, pause)
            await self._warm_up()
            before = await asyncio.to_thread(server.census)
            self.first = await asyncio.to_thread(server.sample)
            files = server.files()
            await self._load(server)
            await self._tidy_up()
            self.last = await self._settle(server, before, files)
            self._cpu = server.cpu()
            log = server.said()
        await web.close()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._all_cpu = usage.ru_utime + usage.ru_stime
        self._holds = log.count("the event loop was held")
        self._judge(log, server.code)

    async def _warm_up(self) -> None:
        """See what the server can do, and have it make what it makes once."""
        for number, is_app in ((-1, False), (-2, True)):
            user = User(self.world, number, 0, is_app=is_app)
            peer = await user.connect()
            if not is_app:
                info = (await peer.call("environment/info"))["capabilities"]["holdfast"]
                self.world.has_sandbox = info["sandbox"]["backend"] is not None
            for deed in deeds.ONCE_APP if is_app else deeds.ONCE:
                await deed(user)
            if not is_app:
                await peer.call("session/close")
            await peer.close()

    async def _load(self, server: Watched) -> None:
        over, began = asyncio.Event(), time.monotonic()
        seed, count = self._arguments.seed, self._arguments.connections
        users = [User(self.world, number, seed, is_app=number % 5 == 4) for number in range(count)]
        async with asyncio.TaskGroup() as group:
            for user in users:
                group.create_task(user.live(_deeds(user), over))
            interval = max(2.0, self._arguments.seconds / 400)
            while (left := self._arguments.seconds - (time.monotonic() - began)) > 0:
                await asyncio.sleep(min(interval, left))
                self._samples.append(await asyncio.to_thread(server.sample))
                if len(self._samples) % 30 == 0:
                    self._progress()
            over.set()
        self._took, self._own_cpu = time.monotonic() - began, time.process_time()

    def _progress(self) -> None:
        last = self._samples[-1]
        print(
            f"{last.at:6.0f} s: {sum(self.world.done.values())} deeds, {len(self.world.failures)} failed, "
            f"{last.resident:.1f} MiB, {last.files} files, {last.tasks} tasks, {last.family} processes",
            flush=True,
        )

    async def _tidy_up(self) -> None:
        """End the processes that belong to nobody; the others end with their sessions."""
        user = User(self.world, -3, 0, is_app=False)
        peer = await user.connect()
        for listed in (await peer.call("process/list"))["processes"]:
            ended = await peer.call("process/terminate", {"processId": listed["processId"]})
            check(not ended["survivors"], f"{listed}: {ended}")
        await user.leave(peer)

    async def _settle(self, server: Watched, before: dict[str, int], files: Counter[str]) -> Sample:
        """Wait until everything is as it was, or for as long as it may take; then see what is not."""
        deadline = time.monotonic() + SETTLING + PATIENCE
        while True:
            self.grown = _grown(before, await asyncio.to_thread(server.census))
            now = await asyncio.to_thread(server.sample)
            self.opened = server.files() - files - Counter(READY_MADE)
            is_quiet = not self.opened and now.family <= self.first.family and not self.grown
            if is_quiet or time.monotonic() > deadline:
                return now
            await asyncio.sleep(1)

    # The verdict.

    def _judge(self, log: str, code: int | None) -> None:
        first, last = self.first, self.last
        for name in ("family", "tasks"):
            was, now = getattr(first, name), getattr(last, name)
            if now > was:
                self._wrong.append(f"{name}: {was} in the beginning, {now} at the end")
        if self.opened:
            self._wrong.append(f"files that are left open: {dict(self.opened)}")
        if last.zombies:
            self._wrong.append(f"{last.zombies} zombies")
        if self.grown:
            self._wrong.append(f"objects that are left: {self.grown}")
        rise, bound = self._rise()
        if self._took >= JUDGED_FROM and rise > bound:
            self._wrong.append(
                f"memory rose by {rise:.1f} MiB in the second half; {bound:.1f} are within noise"
            )
        if "Traceback" in log or code != 0:
            self._wrong.append(f"the server ended with {code} and said:\n{log}")
        self._wrong += self.world.failures

    def _rise(self) -> tuple[float, float]:
        """How much memory rose over the second half of the load, and how much it may."""
        half = self._samples[len(self._samples) // 2 :]
        span = half[-1].at - half[0].at
        usual = sorted(sample.resident for sample in half)[len(half) // 2]
        return slope([(each.at, each.resident) for each in half]) * span, max(
            GROWTH_MIB, GROWTH_SHARE * usual
        )

    def report(self) -> int:
        """Print the figures; return the exit code."""
        world, took = self.world, self._took
        half = self._samples[len(self._samples) // 2 :]
        per_hour = slope([(each.at, each.resident) for each in half]) * 3600
        rise, bound = self._rise()
        judged = "judged" if took >= JUDGED_FROM else f"not judged below {JUDGED_FROM:g} s"
        print(f"\n{'':26} {'first':>9} {'highest':>9} {'last':>9}")
        for name, unit in (
            ("resident", "MiB"),
            ("proportional", "MiB"),
            ("files", ""),
            ("threads", ""),
            ("tasks", ""),
            ("family", "processes"),
            ("zombies", ""),
        ):
            seen = [getattr(each, name) for each in (self.first, *self._samples, self.last)]
            cells = "".join(
                f" {value:9.1f}" if unit == "MiB" else f" {value:9}"
                for value in (seen[0], max(seen), seen[-1])
            )
            print(f"{name + (', ' + unit if unit else ''):26}{cells}")
        print(
            f"\nmemory in the second half  {per_hour:+.1f} MiB/h, {rise:+.1f} of {bound:.1f} MiB ({judged})"
        )
        print(f"deeds, requests            {sum(world.done.values())}, {world.requests} in {took:.0f} s")
        print(f"received                   {world.bytes / (1 << 20):.0f} MiB")
        print(f"loop held above 0.25 s     {self._holds} times told")
        commands = self._all_cpu - self._cpu
        print(
            f"processor                  server {self._cpu:.1f} s, all it started {commands:.1f} s, "
            f"clients {self._own_cpu:.1f} s"
        )
        print(
            "deeds                      "
            + ", ".join(f"{name} {count}" for name, count in sorted(world.done.items()))
        )
        for wrong in self._wrong[:20]:
            print(f"\nWRONG: {wrong}")
        print(f"\nseed {self._arguments.seed}: {f'{len(self._wrong)} wrong' if self._wrong else 'all well'}")
        return int(bool(self._wrong))


def _deeds(user: User) -> dict[Deed, float]:
    """What a user does all the time: every tenth sends nothing but the worst, half of them as apps."""
    if user.number % 20 in (7, 19):
        return deeds.ADVERSARY
    return deeds.APP if user.is_app else deeds.EXEC


def _grown(before: dict[str, int], now: dict[str, int]) -> dict[str, str]:
    """The classes of which there are more objects than before."""
    return {
        kind: f"{before.get(kind, 0)} -> {count}"
        for kind, count in now.items()
        if count > before.get(kind, 0) + CACHES.get(kind, SLACK)
    }


if __name__ == "__main__":
    sys.exit(main())
