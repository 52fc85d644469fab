"""How much memory a server needs for processes that have ended: before them, right after, and later.

    python -m bench.ended [--processes 10000] [--at-once 64] [--say BYTES] [--later 60] [--beside SRC ...]

After a minute the server has forgotten them, and what it has not given back to the system is what they cost.
``--beside`` names other source trees to be measured too, all at the same time: memory does not depend on
the pace.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path

from bench.client import Client, Process
from bench.servers import Server

HERE = Path(__file__).resolve().parents[1] / "src"

PROGRAM = "from holdfast.cli.main import main; raise SystemExit(main())"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--processes", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=64, help="starts in flight (default: 64)")
    parser.add_argument("--say", metavar="BYTES", type=int, default=0, help="output of each (default: none)")
    # Twice the time for which a server retains an ended process.
    parser.add_argument("--later", metavar="SECONDS", type=float, default=60.0)
    parser.add_argument("--beside", metavar="SRC", type=Path, action="append", default=[])
    arguments = parser.parse_args()

    threads = [threading.Thread(target=_measure, args=(t, arguments)) for t in (HERE, *arguments.beside)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


def _measure(tree: Path, arguments: argparse.Namespace) -> None:
    start = f"import sys; sys.path.insert(0, {str(tree)!r}); {PROGRAM}"
    command = [sys.executable, "-c", start, "serve", "--listen", "ws://127.0.0.1:0"]
    argv = ["/bin/sh", "-c", f"echo {'x' * (arguments.say - 1)}"] if arguments.say else ["/bin/true"]
    with Server("holdfast", {"exec": command}).start("exec") as server:
        client, figures = server.connect(), [server.memory()]
        _run(client, argv, arguments.processes, arguments.at_once)
        figures.append(server.memory())
        time.sleep(arguments.later)
        figures.append(server.memory())
        client.close()
    print(f"{tree}:", " / ".join(f"{size / 2**20:.1f}" for size in figures), "MiB", flush=True)


def _run(client: Client, argv: list[str], count: int, at_once: int) -> None:
    live: set[Process] = set()
    asked = 0
    while live or asked < count:
        while len(live) < at_once and asked < count:
            live.add(client.start(argv))
            asked += 1
        client.run(lambda: any(process.done for process in live))
        for process in [process for process in live if process.done]:
            live.remove(process)
            client.forget(process)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    raise SystemExit(main())
