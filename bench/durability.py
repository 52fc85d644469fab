"""What it costs that processes outlive the server, and how long a client waits when it dies.

    python -m bench.durability --recovery 1,100,1000      from the kill to the answer to a read
    python -m bench.durability --paired --rounds 40       rates with it on against off, in turn
    python -m bench.durability --memory                   of the keeper, the spare, and for idle processes
    python -m bench.durability --startup --rounds 20      from the start to listening, on against off

Each figure is printed with its goal beside it.  The exit code is 0 only if all goals are met.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.cases import LINE, TRUE, Echo
from bench.chaos.victim import Victim, children, name_of, state_of
from bench.client import Client, Process

GIB = 1 << 30

APART = 4.0
"""Seconds between two kills that are measured: the keeper waits after more than three in 10 seconds."""

TIMES = 10
"""Kills of which the median is taken."""

RECOVERY = {1: 50.0, 100: 80.0, 1000: 220.0}
"""Goals: milliseconds, by the number of processes."""

COLD, START = 1.5, 1.1
"""Goals: recovery without a spare against start-up; start-up with durability against that without."""

BURST = 48 << 20
"""Bytes of one burst of output."""


class Talker(Client):
    """A client that knows its session, and may go on with one."""

    def __init__(self, url: str, session: str | None = None) -> None:
        self.session = ""
        if session is not None:
            self.greeting = {**Client.greeting, "resumeSessionId": session}  # type: ignore[misc]
        super().__init__(url)

    def call(self, method: str, params: Any = None, *, timeout: float = 30) -> Any:
        result = super().call(method, params, timeout=timeout)
        if method == "initialize":
            self.session = result["sessionId"]
        return result


class Goals:
    """Prints figures, and remembers whether they are met."""

    def __init__(self) -> None:
        self.missed = 0

    def at_most(self, what: str, figure: float, goal: float, unit: str, note: str = "") -> None:
        self._print(what, figure, f"at most {goal:g}", unit, note, is_met=figure <= goal)

    def at_least(self, what: str, figure: float, goal: float, unit: str, note: str = "") -> None:
        self._print(what, figure, f"at least {goal:g}", unit, note, is_met=figure >= goal)

    def _print(self, what: str, figure: float, goal: str, unit: str, note: str, *, is_met: bool) -> None:
        self.missed += not is_met
        verdict = "" if is_met else "  MISSED"
        print(f"{what:44} {figure:10.2f} {unit:6} {goal:>16}{verdict}  {note}", flush=True)


def wait_for_part(victim: Victim, name: str, old: int = 0) -> int:
    """The pid of a part of the server, once it is there and another one than before."""
    while True:
        parents = [victim.pid, *children(victim.pid)]
        for parent in parents:
            for pid in children(parent):
                if pid != old and name_of(pid) == name and state_of(pid) not in "ZX":
                    return pid
        time.sleep(0.002)


def cpu(pid: int) -> float:
    """Seconds of processor time of a process."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def rollup(pid: int, *names: str) -> int:
    """Bytes of memory of these kinds, as ``smaps_rollup`` has them."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return sum(int(words[1]) << 10 for words in lines if words[0].rstrip(":") in names)


def anonymous(pid: int) -> int:
    """Bytes of memory that belong to no file; a page that is copied on a write counts once all the time."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return next(int(words[1]) << 10 for words in lines if words[0] == "RssAnon:")


def private(pid: int) -> int:
    """Bytes that nobody else has."""
    return rollup(pid, "Private_Clean", "Private_Dirty")


# Recovery.


def recovery(counts: list[int], goals: Goals) -> None:
    for count in counts:
        with Victim() as victim:
            figures = _recover(victim, count, lambda pid: None)
            note = f"{min(figures):.0f} to {max(figures):.0f}"
            goals.at_most(
                f"kill to answer, {count} processes, p50",
                statistics.median(figures),
                RECOVERY.get(count, 220.0),
                "ms",
                note,
            )
    starts = [_start_time("on") for _ in range(5)]
    with Victim() as victim:
        spare = wait_for_part(victim, "holdfast-spare")

        def kill_spare(server: int) -> None:
            nonlocal spare
            spare = wait_for_part(victim, "holdfast-spare")
            os.kill(spare, signal.SIGKILL)

        figures = _recover(victim, 100, kill_spare)
    ratio = statistics.median(figures) / (statistics.median(starts) * 1000)
    goals.at_most(
        "without a spare, 100 processes, to start-up",
        ratio,
        COLD,
        "x",
        f"{statistics.median(figures):.0f} ms",
    )


def _recover(victim: Victim, count: int, also: Callable[[int], None]) -> list[float]:
    """Milliseconds from each kill to the answer to a read in the same session."""
    client = Talker(victim.url)
    processes = [client.start(["/bin/cat"], stdin=True) for _ in range(count)]
    client.wait_started(*processes)
    figures = []
    for _ in range(TIMES):
        time.sleep(APART)
        server = wait_for_part(victim, "holdfast-server")
        also(server)
        began = time.perf_counter()
        os.kill(server, signal.SIGKILL)
        client = _resumed(victim.url, client.session)
        client.call("process/read", {"processId": processes[-1].name})
        figures.append((time.perf_counter() - began) * 1000)
    return figures


def _resumed(url: str, session: str) -> Talker:
    """A client of the next server: the connection to the one that is dying may be cut once more."""
    while True:
        try:
            return Talker(url, session)
        except OSError:
            time.sleep(0.001)


# Rates.


def one_by_one(client: Talker, pid: int) -> float:
    """Starts per second, one after the other."""
    began = time.perf_counter()
    for _ in range(40):
        process = client.start(TRUE)
        client.wait_done(process)
        client.forget(process)
    return 40 / (time.perf_counter() - began)


def in_flight(client: Talker, pid: int) -> float:
    """Starts per second, 128 at once."""
    live: set[Process] = set()
    asked, total = 0, 256
    began = time.perf_counter()
    while live or asked < total:
        while len(live) < 128 and asked < total:
            live.add(client.start(TRUE))
            asked += 1
        client.run(lambda: any(process.done for process in live))
        for process in [process for process in live if process.done]:
            live.remove(process)
            client.forget(process)
    return total / (time.perf_counter() - began)


def _echo(count: int, rounds: int, *, tty: bool) -> Callable[[Talker, int], float]:
    def measure(client: Talker, pid: int) -> float:
        echo = Echo(client, count, tty=tty)
        echo.rounds(3)
        began = time.perf_counter()
        echo.rounds(rounds)
        took = time.perf_counter() - began
        echo.stop()
        return count * rounds / took

    return measure


def _output(argv: list[str], *, by_cpu: bool) -> Callable[[Talker, int], float]:
    def measure(client: Talker, pid: int) -> float:
        began, used = time.perf_counter(), cpu(pid)
        process = client.start(argv)
        client.wait_done(process, timeout=600)
        assert process.received == BURST
        took, used = time.perf_counter() - began, cpu(pid) - used
        client.forget(process)
        return BURST / GIB / (used if by_cpu else took)

    return measure


ZEROS = ["head", "-c", str(BURST), "/dev/zero"]
LINES = ["/bin/sh", "-c", f"yes '{LINE}' | head -c {BURST}"]

RATES: dict[str, tuple[Callable[[Talker, int], float], float]] = {
    "start to closed": (one_by_one, 0.85),
    "128 in flight": (in_flight, 0.85),
    "one echo": (_echo(1, 200, tty=False), 0.85),
    "64 echoes, pipes": (_echo(64, 20, tty=False), 0.75),
    "64 echoes, terminals": (_echo(64, 15, tty=True), 0.75),
    "zeros": (_output(ZEROS, by_cpu=False), 0.85),
    "short lines": (_output(LINES, by_cpu=False), 0.80),
    "zeros, bytes per CPU": (_output(ZEROS, by_cpu=True), 1 / 1.3),
    "short lines, bytes per CPU": (_output(LINES, by_cpu=True), 1 / 1.3),
}
"""What is measured, more is better; and the least ratio."""


def paired(rounds: int, only: str, goals: Goals) -> None:
    with Victim() as on, Victim(durability="off") as off:
        sides = [(Talker(on.url), wait_for_part(on, "holdfast-server")), (Talker(off.url), off.pid)]
        for name, (measure, goal) in RATES.items():
            if only not in name:
                continue
            ratios, figures = [], []
            for number in range(rounds + 1):
                found = [0.0, 0.0]
                for side in random.sample((0, 1), 2):
                    found[side] = measure(*sides[side])
                if number:  # The first warms things up.
                    ratios.append(found[0] / found[1])
                    figures.append(found)
            usual = [statistics.median(each[side] for each in figures) for side in (0, 1)]
            goals.at_least(name, statistics.median(ratios), goal, "x", f"{usual[0]:.4g} and {usual[1]:.4g}")


# Memory.

KIB, MIB = 1 << 10, 1 << 20

SETTLED = 4.0
"""Seconds after which server and spare have loaded what they do not need at once; nothing tells when."""


def memory(goals: Goals) -> None:
    arena = 'holdfast_limit_used{limit="engine.arena_bytes"}'
    grown = {}
    for durability in ("on", "off"):
        with Victim("--limit=session.closed_seconds=2s", durability=durability) as victim:
            pid = wait_for_part(victim, "holdfast-server") if durability == "on" else victim.pid
            client, count = Talker(victim.url), 1000

            def size(pid: int = pid, victim: Victim = victim) -> int:
                return anonymous(pid) + int(victim.figure(arena))

            client.terminate(_sleepers(client, 200))
            time.sleep(SETTLED)
            if durability == "on":
                _parts(victim, goals, "first server")
            before = size()
            sleepers = _sleepers(client, count)
            grown[durability] = (size() - before) / count
            if durability == "on":
                _parts(victim, goals, "1,000 processes")
            client.terminate(sleepers)
            if durability == "on":
                deadline = time.monotonic() + 30
                while victim.figure("holdfast_arena_cells") > 8 and time.monotonic() < deadline:
                    time.sleep(0.2)  # Nothing says when the last one is forgotten.
                goals.at_most("arena, all forgotten", victim.figure(arena) / MIB, 9, "MiB")
                os.kill(pid, signal.SIGKILL)
                wait_for_part(victim, "holdfast-server", pid)
                time.sleep(SETTLED)
                _parts(victim, goals, "after a restart")  # From here on the two share most of it.
            client.close()
    more = (grown["on"] - grown["off"]) / KIB
    note = f"{grown['on'] / KIB:.2f} and {grown['off'] / KIB:.2f}"
    goals.at_most("an idle process, more than with off", more, 1.2, "KiB", note)


def _parts(victim: Victim, goals: Goals, when: str) -> None:
    """What keeper and spare have for themselves."""
    spare = wait_for_part(victim, "holdfast-spare")
    for name, pid, unit, size, goal in (
        ("keeper", victim.pid, "KiB", KIB, 256),
        ("spare", spare, "MiB", MIB, 12),
    ):
        clean = rollup(pid, "Private_Clean") / size
        goals.at_most(f"{name}, private, {when}", private(pid) / size, goal, unit, f"{clean:.1f} of it clean")


def _sleepers(client: Talker, count: int) -> list[Process]:
    found = [client.start(["sleep", "1000"]) for _ in range(count)]
    client.wait_started(*found)
    return found


# Start-up.


def _start_time(durability: str) -> float:
    began = time.perf_counter()
    with Victim(durability=durability):
        return time.perf_counter() - began


def startup(rounds: int, goals: Goals) -> None:
    found: dict[str, list[float]] = {"on": [], "off": []}
    for _ in range(rounds):
        for durability in random.sample(("on", "off"), 2):
            found[durability].append(_start_time(durability) * 1000)
    least = {name: min(figures) for name, figures in found.items()}
    usual = {name: statistics.median(figures) for name, figures in found.items()}
    note = (
        f"least {least['on']:.0f} and {least['off']:.0f} ms, median {usual['on']:.0f} and {usual['off']:.0f}"
    )
    goals.at_most("start-up, least of the rounds", least["on"] / least["off"], START, "x", note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--recovery", metavar="N,...", help="with so many processes")
    parser.add_argument("--paired", action="store_true")
    parser.add_argument("--only", default="", help="rates whose name has this in it")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--startup", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    goals = Goals()
    if arguments.recovery:
        recovery([int(word) for word in arguments.recovery.split(",")], goals)
    if arguments.paired:
        paired(arguments.rounds, arguments.only, goals)
    if arguments.memory:
        memory(goals)
    if arguments.startup:
        startup(arguments.rounds, goals)
    return int(bool(goals.missed))


if __name__ == "__main__":
    sys.exit(main())
