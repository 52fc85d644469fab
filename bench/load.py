"""A thousand connections and two thousand processes at once, on two processors.

See ``bench/README.md``.  The path of the reference comes from the variable CODEX; it then gets the same
load, after holdfast.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import resource
import sys
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator

from bench.client import Failed
from bench.compare import LISTEN, Results, table
from bench.crowd import Crowd
from bench.figure import Figure
from bench.servers import Running, Server

STATUS, WRITES, REPLACED, BURSTS = 500.0, 200.0, 20.0, 10.0
"""Per second, of all connections together.  It leaves room on two processors, so that what is measured is how
long a request waits for others, and not how long for a processor."""

_FILES = 65_536


def main() -> int:
    arguments = _arguments()
    _prepare()
    results: Results = defaultdict(lambda: defaultdict(list))
    servers, failed = _servers(arguments), False
    for server in servers:
        print(f"{server.name}: {arguments.seconds:g} s", file=sys.stderr, flush=True)
        try:
            with server.start("exec") as running:
                for figure in _measure(running, arguments):
                    results[figure.name][server.name].append(figure)
                    failed |= figure.name == "errors" and bool(figure.value) and server is servers[0]
        except Failed as failure:
            print(f"{server.name} failed: {failure}", file=sys.stderr)
            failed = True
    print(table(results, [server.name for server in servers[::-1]]))
    return int(failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make load", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300, help="of load on each server (300)")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--holdfast", default="holdfast", help="the program to measure (holdfast in PATH)")
    return parser.parse_args()


def _servers(arguments: argparse.Namespace) -> list[Server]:
    servers = [Server("holdfast", {"exec": [arguments.holdfast, "serve", "--listen", LISTEN]})]
    codex = os.environ.get("CODEX", "")
    if codex:
        servers.append(Server("reference", {"exec": [codex, "exec-server", "--listen", LISTEN]}))
    return servers


def _prepare() -> None:
    """Two processors for everything, and enough descriptors for all connections and processes."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        hard = max(hard, _FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _measure(server: Running, arguments: argparse.Namespace) -> Iterator[Figure]:
    crowd = Crowd(server, arguments.connections, arguments.processes, arguments.seed)
    # A pause of our own collector would be taken for one of the server.
    gc.collect()
    gc.freeze()
    gc.disable()
    cpu, own, requests, began = server.cpu(), time.process_time(), crowd.requests, time.perf_counter()
    rates = {crowd.ask_status: STATUS, crowd.write: WRITES, crowd.replace: REPLACED, crowd.burst: BURSTS}
    crowd.run(arguments.seconds, rates)
    took = time.perf_counter() - began
    cpu, own = server.cpu() - cpu, time.process_time() - own
    gc.enable()
    gc.unfreeze()
    for words, count in crowd.errors.items():
        print(f"    {count} times: {words}", file=sys.stderr)
    yield Figure("errors", crowd.errors.total(), "")
    yield Figure("requests", crowd.requests - requests, "")
    yield Figure("output", crowd.received / 1e6, "MB")
    yield from _quantiles("status", crowd.status, (0.5, 0.99, 0.999, 1))
    yield from _quantiles("start", crowd.starts, (0.5, 0.99, 1))
    yield from _quantiles("echo", crowd.echoes, (0.5, 0.99, 1))
    yield Figure("server CPU", cpu, "s")
    yield Figure("server CPU, share of a core", cpu / took, "")
    yield Figure("server memory, highest", server.highest_memory() / (1 << 20), "MiB")
    yield Figure("driver CPU, share of a core", own / took, "")
    yield from _quantiles("driver: sent after it was due", crowd.late, (0.5, 0.99, 1))
    yield from _quantiles("driver: between two looks at the sockets", crowd.spans, (0.5, 0.99, 1))
    crowd.close()


def _quantiles(name: str, times: array[float], shares: tuple[float, ...]) -> Iterator[Figure]:
    ranked = sorted(times)
    for share in shares:
        label = "max" if share == 1 else f"p{share * 100:g}"
        at = min(len(ranked) - 1, int(share * len(ranked)))
        yield Figure(f"{name}, {label}", ranked[at] * 1e3 if ranked else 0.0, "ms")


if __name__ == "__main__":
    sys.exit(main())
