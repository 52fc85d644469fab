"""Kill the server again and again while clients use it; then nothing may be missing, doubled or left.

    python -m bench.chaos [--kills 500] [--processes 50] [--seed SEED]

See ``bench/README.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import holdfast
from bench.chaos.deeds import Actor, World, act
from bench.chaos.ledger import Ledger
from bench.chaos.victim import Gone, Killer, Victim

CLIENTS = 6

RETENTION = 30.0
"""Seconds for which ended processes can be read: longer than any client is away."""

SETTLING = 90.0
"""Seconds until everything is forgotten, at the most."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=500, help="of the server (500)")
    parser.add_argument("--processes", type=int, default=50, help="at once (50)")
    parser.add_argument(
        "--seed", type=int, default=int.from_bytes(os.urandom(4)), help="to do the same again"
    )
    parser.add_argument("--adopting", type=int, help="restarts that must adopt bytes (a tenth of the kills)")
    parser.add_argument(
        "--retention", type=float, default=RETENTION, help="seconds to read what has ended (30)"
    )
    parser.add_argument("--log", type=Path, help="where the server's log is put")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}: {arguments.kills} kills, {arguments.processes} processes", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(_run(arguments, Path(directory)))


async def _run(arguments: argparse.Namespace, directory: Path) -> int:
    ledger, draw = Ledger(), Random(arguments.seed)
    marks = directory / "marks"
    marks.mkdir()
    retention = f"{arguments.retention:g}s"
    limits = (f"--limit=session.closed_seconds={retention}", f"--limit=session.kept_seconds={retention}")
    began = time.monotonic()
    with Victim(*limits) as victim:
        killer = Killer(victim, draw)

        def changed(connected: bool) -> None:  # noqa: FBT001  (that is how it is called)
            ledger.reconnections += connected

        hosts = [holdfast.connect(victim.url, on_connection_change=changed) for _ in range(CLIENTS)]
        try:
            await asyncio.gather(*(host.open() for host in hosts))
            has_sandbox = hosts[0].info.sandboxes.backend is not None
            world, over = World(hosts, marks, ledger, has_sandbox), asyncio.Event()
            async with asyncio.TaskGroup() as group:
                for number in range(arguments.processes):
                    actor = Actor(world, hosts[number % CLIENTS], Random(draw.random()))
                    group.create_task(act(actor, over))
                try:
                    await killer.run(arguments.kills)
                except Gone as error:
                    ledger.wrong.append(f"{type(error).__name__}: {error}")
                over.set()
        finally:
            for host in hosts:
                await host.aclose()
        ledger.kills, ledger.early = killer.kills, killer.early
        _count_marks(ledger, marks)
        await _settle(ledger, victim)
        _read_log(ledger, victim, arguments)
    gaps = [later - earlier for earlier, later in zip(killer.times, killer.times[1:], strict=False)]
    middle = statistics.median(gaps) if gaps else 0.0
    print(f"{time.monotonic() - began:.0f} s; {middle * 1000:.0f} ms between two kills (median)")
    return ledger.print()


def _count_marks(ledger: Ledger, marks: Path) -> None:
    """Every process that was asked for has run once."""
    sizes = {path.name: path.stat().st_size for path in marks.iterdir()}
    for name, size in sizes.items():
        if size != 1:
            ledger.doubled_starts += size - 1
            ledger.wrong.append(f"{name}: started {size} times")


async def _settle(ledger: Ledger, victim: Victim) -> None:
    """Wait until everything is forgotten, or for as long as that may take; then see what is left."""
    deadline = time.monotonic() + SETTLING
    while victim.code is None:
        cells = int(await asyncio.to_thread(victim.figure, "holdfast_arena_cells"))
        left = victim.commands()
        if (not cells and not left) or time.monotonic() > deadline:
            ledger.cells_left, ledger.processes_left = cells, len(left)
            used = 'holdfast_limit_used{limit="engine.arena_bytes"}'
            ledger.arena_bytes = int(await asyncio.to_thread(victim.figure, used))
            break
        await asyncio.sleep(0.5)
    else:
        ledger.wrong.append(f"the keeper ended with {victim.code}")
    if ledger.processes_left:
        ledger.wrong.append(f"{ledger.processes_left} processes are left")
    if ledger.cells_left:
        ledger.wrong.append(f"{ledger.cells_left} cells of the arena are left")


def _read_log(ledger: Ledger, victim: Victim, arguments: argparse.Namespace) -> None:
    log = victim.said()
    if arguments.log is not None:
        arguments.log.write_text(log)
    ledger.restarts = log.count(" again\n")
    adoptions = [line.rpartition(" ")[2] for line in log.splitlines() if "output without a number" in line]
    ledger.adopting = sum(count != "0" for count in adoptions)
    least = arguments.kills // 10 if arguments.adopting is None else arguments.adopting
    if ledger.adopting < least:
        ledger.wrong.append(f"bytes were adopted in {ledger.adopting} restarts only, not in {least}")
    for word in ("Traceback", "cannot be believed", "does not answer", "there is no memory"):
        if word in log:
            at = log.index(word)
            ledger.wrong.append(f"{log.count(word)} times in the log: {log[max(0, at - 200) : at + 1500]}")


if __name__ == "__main__":
    sys.exit(main())
