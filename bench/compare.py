"""Measures holdfast beside the reference server: both in one run, taking turns.

See ``bench/README.md``.  The path of the reference comes from the variable CODEX;
without it holdfast is measured alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
from collections import defaultdict

from bench import app, cases
from bench.client import Failed
from bench.figure import Figure
from bench.servers import Server

Results = dict[str, dict[str, list[Figure]]]
"""Figure name -> server name -> one figure per repeat."""

LISTEN = "ws://127.0.0.1:0"

CASES = {**cases.CASES, **app.CASES}


def main() -> int:
    arguments = _arguments()
    _allow_files()
    servers = _servers(arguments)
    results: Results = defaultdict(lambda: defaultdict(list))
    failed = False
    for repeat in range(arguments.repeats):
        for case in arguments.cases:
            # Each goes first every other time: what the one before left behind hits both.
            for server in servers if repeat % 2 == 0 else servers[::-1]:
                print(f"[{repeat + 1}/{arguments.repeats}] {case}: {server.name}", file=sys.stderr)
                try:
                    _measure(server, case, arguments.scale, results)
                except Failed as error:
                    print(f"    {server.name} failed: {error}", file=sys.stderr)
                    failed = True
    print(table(results, [server.name for server in servers]))
    return int(failed)


def _measure(server: Server, case: str, scale: float, results: Results) -> None:
    """Every case gets a server of its own, so that none inherits another's memory."""
    with server.start("app" if case in app.CASES else "exec") as running:
        for figure in CASES[case](running, scale):
            results[figure.name][server.name].append(figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each case; the table has medians (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the work; 0.1 is a quick look (1)")
    parser.add_argument("--cases", type=_cases, default=list(CASES), help=f"of: {','.join(CASES)} (all)")
    parser.add_argument(
        "--quickack",
        action="store_true",
        help="acknowledge at once, which hides that a server does not set TCP_NODELAY",
    )
    parser.add_argument("--holdfast", default="holdfast", help="the program to measure (holdfast in PATH)")
    parser.add_argument("--sandbox", default="auto", help="what holdfast keeps sandboxes with (auto)")
    return parser.parse_args()


def _cases(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    return names


def _servers(arguments: argparse.Namespace) -> list[Server]:
    serve = [arguments.holdfast, "serve", "--listen", LISTEN, "--sandbox", arguments.sandbox]
    ours = Server("holdfast", {"exec": serve, "app": serve}, arguments.quickack)
    codex = os.environ.get("CODEX", "")
    if not codex:
        print("CODEX is not set: holdfast is measured alone", file=sys.stderr)
        return [ours]
    theirs = {
        "exec": [codex, "exec-server", "--listen", LISTEN],
        "app": [codex, "app-server", "--listen", LISTEN],
    }
    return [Server("reference", theirs, arguments.quickack), ours]


def _allow_files() -> None:
    """A thousand connections need as many descriptors, here and in the servers."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# The table.


def table(results: Results, servers: list[str]) -> str:
    head = ["work", "unit", *servers]
    if len(servers) > 1:
        head.append("ratio")
    rows = [head, ["---"] * len(head)]
    for name, by_server in results.items():
        unit = next(iter(by_server.values()))[0].unit
        medians = {
            server: statistics.median(figure.value for figure in figures)
            for server, figures in by_server.items()
        }
        row = [name, unit, *[_short(medians[server]) if server in medians else "-" for server in servers]]
        if len(servers) > 1:
            row.append(_ratio(next(iter(by_server.values()))[0], medians, servers))
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _ratio(figure: Figure, medians: dict[str, float], servers: list[str]) -> str:
    """How many times better the last server is than the first; above 1 is better."""
    first, last = medians.get(servers[0]), medians.get(servers[-1])
    if not figure.unit or not first or not last or min(first, last) <= 0:
        return "-"
    return _short(last / first if figure.higher_is_better else first / last)


def _short(value: float) -> str:
    """Three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
