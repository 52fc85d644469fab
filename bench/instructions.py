"""Counts the instructions that a server executes for each kind of request, with Valgrind's callgrind.

Times of a shared machine differ from run to run by a fifth; instructions of the same requests differ by a few
in a hundred, whatever else the machine does.  Requests are sent one after the other, so that nothing depends
on how many happen to arrive together.  What the kernel and the children do is not counted.

    python -m bench.instructions before=/elsewhere/bin/holdfast now=.venv/bin/holdfast --floor 0.95

Each argument names a program, and may add options of ``serve`` behind a blank.  With two of them the table
has the ratio of the first figure to the second: above 1, the second program needs fewer instructions.
``--floor`` makes a lower ratio an error.  ``bench.gate`` compares a checkout with the version before.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.client import Client, Failed, Process

_URL = re.compile(rb"ws://[0-9.]+:[1-9][0-9]*(?=\s)")
_PATIENCE = 120.0
"""Seconds for whatever a server does under Valgrind, fifty times slower than without."""

_QUIET = 2.0
"""Seconds without any work after which a server is taken to have settled."""

_SUMMARY = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
_LISTEN = ("--listen", "ws://127.0.0.1:0")


class Counted:
    """A server under callgrind."""

    def __init__(self, command: list[str], environment: dict[str, str], place: Path) -> None:
        self._place = place
        self._log = place / "server.log"
        self._dumps = 0
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "valgrind",
                    "--tool=callgrind",
                    "--instr-atstart=no",
                    f"--callgrind-out-file={place}/out",
                    *command,
                    *_LISTEN,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Another order of dictionaries would be another number of comparisons.
                env={**os.environ, **environment, "PYTHONHASHSEED": "0"},
            )

    def url(self) -> str:
        deadline = time.monotonic() + _PATIENCE
        while (found := _URL.search(self._log.read_bytes())) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"the server did not start:\n{self._log.read_text(errors='replace')}")
            time.sleep(0.05)
        return found[0].decode()

    def settle(self) -> None:
        """Wait until it has done what it does after its start without being asked."""
        before = -1.0
        while (now := self._busy()) != before:
            before = now
            time.sleep(_QUIET)

    def _busy(self) -> float:
        """Ticks of processor time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return float(fields[11]) + float(fields[12])

    def count(self, work: Callable[[], None]) -> int:
        """The instructions that the server executes while ``work`` runs."""
        self._control("--instr=on")
        work()
        self._dumps += 1
        self._control("--dump")
        self._control("--instr=off")
        text = (self._place / f"out.{self._dumps}").read_text(errors="replace")
        found = _SUMMARY.findall(text)
        if not found:
            raise Failed("callgrind has counted nothing")
        return int(found[-1])

    def _control(self, order: str) -> None:
        done = subprocess.run(
            ["callgrind_control", order, str(self._process.pid)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        if done.returncode or "OK" not in done.stdout:
            raise Failed(f"callgrind_control {order}: {done.stdout}{done.stderr}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


# What is counted.


def status(client: Client, count: int) -> Iterator[int]:
    yield 0
    for _ in range(count):
        client.call("environment/status", timeout=_PATIENCE)


def read_nothing(client: Client, count: int) -> Iterator[int]:
    process = _started(client, ["/bin/sleep", "1000"])
    yield 0
    params = {"processId": process.name, "afterSeq": 0, "maxBytes": 65_536, "waitMs": 0}
    for _ in range(count):
        client.call("process/read", params, timeout=_PATIENCE)


def write(client: Client, count: int) -> Iterator[int]:
    process = _started(client, ["/bin/sh", "-c", "exec cat >/dev/null"], stdin=True)
    chunk = base64.b64encode(b"0123456789abcdef").decode()
    yield 0
    for number in range(count):
        _write(client, process, chunk, number)


def echo(client: Client, count: int) -> Iterator[int]:
    process = _started(client, ["/bin/cat"], stdin=True)
    chunk = base64.b64encode(b"0123456789abcdef").decode()
    yield 0
    for number in range(count):
        _write(client, process, chunk, number)
        client.run(lambda: process.received >= 16 * (number + 1), timeout=_PATIENCE)  # noqa: B023


def long_poll(client: Client, count: int) -> Iterator[int]:
    process = _started(client, ["/bin/cat"], stdin=True)
    chunk = base64.b64encode(b"0123456789abcdef").decode()
    answers: list[object] = []
    yield 0
    for number in range(count):
        params = {"processId": process.name, "afterSeq": number, "waitMs": 60_000}
        client.request("process/read", params, answers.append)
        _write(client, process, chunk, number)
        client.run(lambda: len(answers) > number and process.received >= 16 * (number + 1), timeout=_PATIENCE)  # noqa: B023


def upload(client: Client, count: int) -> Iterator[int]:
    process = _started(client, ["/bin/sh", "-c", "exec cat >/dev/null"], stdin=True)
    chunk = base64.b64encode(b"u" * 65_536).decode()
    yield 0
    for number in range(count):
        _write(client, process, chunk, number)


def start(client: Client, count: int) -> Iterator[int]:
    yield 0
    for _ in range(count):
        process = client.start(["/bin/true"])
        client.wait_done(process, timeout=_PATIENCE)
        client.forget(process)


def start_terminal(client: Client, count: int) -> Iterator[int]:
    yield 0
    for _ in range(count):
        process = client.start(["/bin/true"], tty=True)
        client.wait_done(process, timeout=_PATIENCE)
        client.forget(process)


def output(client: Client, count: int) -> Iterator[int]:
    # Each write waits for a line, so that one chunk is one write, however slow the server is.
    script = "while read -r line; do head -c 60000 /dev/zero; done"
    process = _started(client, ["/bin/sh", "-c", script], stdin=True)
    chunk = base64.b64encode(b"\n").decode()
    yield 0
    for number in range(count):
        _write(client, process, chunk, number)
        client.run(lambda: process.received >= 60_000 * (number + 1), timeout=_PATIENCE)  # noqa: B023


def _started(client: Client, argv: list[str], *, stdin: bool = False) -> Process:
    process = client.start(argv, stdin=stdin)
    client.run(lambda: bool(process.answered), timeout=_PATIENCE)
    return process


def _write(client: Client, process: Process, chunk: str, number: int) -> None:
    params = {"processId": process.name, "chunk": chunk, "writeId": f"{process.name} {number}"}
    answer = client.call("process/write", params, timeout=_PATIENCE)
    assert answer is None or answer["status"] == "accepted", answer


Case = Callable[[Client, int], Iterator[int]]
"""Gets ready up to its first ``yield``; what comes after it is counted."""

CASES: dict[str, tuple[Case, int]] = {
    "status": (status, 100),
    "read of nothing": (read_nothing, 100),
    "write of 16 bytes": (write, 100),
    "echo of 16 bytes": (echo, 100),
    "long poll of an echo": (long_poll, 100),
    "upload of 64 KiB": (upload, 40),
    "output of 60 KB": (output, 40),
    "start of a pipe": (start, 40),
    "start of a terminal": (start_terminal, 40),
}
"""By name: what is done, and how often."""


def measure(
    command: list[str], cases: list[str], environment: dict[str, str] | None = None
) -> dict[str, float]:
    """Instructions per operation of each case, by name, of the server that ``command`` starts."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="instructions-") as place, contextlib.ExitStack() as stack:
        server = Counted(command, environment or {}, Path(place))
        stack.callback(server.stop)
        url = server.url()
        server.settle()
        for name in cases:
            case, count = CASES[name]
            # Once before: whatever is made at first use is made.  Each time another client: names are free.
            client = Client(url)
            _run(case(client, count // 4 + 1))
            client.close()
            # The least of two: now and then the server tidies up in between, of its own accord.
            found[name] = min(_count(server, url, case, count) for _ in range(2)) / count
    return found


def _count(server: Counted, url: str, case: Case, count: int) -> int:
    client = Client(url)
    work = case(client, count)
    next(work)
    instructions = server.count(lambda: _run(work))
    client.close()
    return instructions


def _run(work: Iterator[int]) -> None:
    for _ in work:
        pass


def main() -> int:
    arguments = _arguments()
    if not is_possible():
        print("valgrind is not installed: apt-get install valgrind", file=sys.stderr)
        return 2
    named = dict(program.partition("=")[::2] for program in arguments.programs)
    results = {name: measure(_command(program), arguments.cases) for name, program in named.items()}
    print(table(results))
    return judge(results, arguments.floor)


def is_possible() -> bool:
    """Whether Valgrind is installed."""
    return shutil.which("valgrind") is not None


def _command(program: str) -> list[str]:
    """Starts a server.  By the interpreter itself: Valgrind follows no script to its interpreter."""
    path, *options = shlex.split(program)
    python = Path(path).absolute().parent / "python"
    return [str(python if python.exists() else sys.executable), path, "serve", *options]


def table(results: dict[str, dict[str, float]]) -> str:
    """One row per case: instructions per operation, and how many times fewer the second program needs."""
    names = list(results)
    rows = [["instructions for", *names, *(["ratio"] if len(names) > 1 else [])]]
    rows.append(["---"] * len(rows[0]))
    for case in results[names[0]]:
        figures = [results[name][case] for name in names]
        ratio = [f"{figures[0] / figures[1]:.2f}"] if len(names) > 1 else []
        rows.append([case, *(f"{figure:,.0f}" for figure in figures), *ratio])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def judge(results: dict[str, dict[str, float]], floor: float | None) -> int:
    """Whether the second program needs too many more instructions than the first."""
    if floor is None or len(results) < 2:
        return 0
    first, second = list(results.values())[:2]
    worse = [case for case in first if first[case] < floor * second[case]]
    for case in worse:
        print(f"{case}: a ratio of {first[case] / second[case]:.2f} is below {floor}", file=sys.stderr)
    return int(bool(worse))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.instructions", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "programs", nargs="+", metavar="NAME=COMMAND", help="a holdfast program and its options"
    )
    parser.add_argument("--cases", type=_cases, default=list(CASES), help="separated by commas (all)")
    parser.add_argument(
        "--floor", type=float, help="the least share of the first one's speed that is allowed"
    )
    return parser.parse_args()


def _cases(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
