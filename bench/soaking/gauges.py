"""A server that is watched: started, looked at from outside, asked a little, stopped."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.soaking import fence

_NUMBER = re.compile(r"\[[0-9]+\]$")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1 << 20
_ROOT = str(Path(__file__).parents[2])
_NO_FILES = ("/sys/fs/cgroup", "/proc", "/dev/pts")
"""What a server needs to write, and where nobody has files."""

_LAUNCHER = "bench.soaking.launcher"
_ALONE = ("--durability", "off")


class Silent(Exception):
    """The server does not answer."""


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment."""

    at: float
    resident: float
    """MiB of the server alone; what it shares with others counts."""
    proportional: float
    """The same, with what is shared divided by those who share it."""
    files: int
    threads: int
    tasks: int
    family: int
    """Processes below the server: the fork server, shims, commands and what those have started."""
    zombies: int


class Watched:
    """The server of a soak.  A context manager: it is stopped at the end."""

    def __init__(self, *options: str, within: Path | None = None) -> None:
        """``within`` is the one place where it can write files, if this host allows such a thing."""
        fenced, places = within is not None and fence.can_fence(), [str(within), *_NO_FILES]
        before = (*fence.COMMAND, ":".join(places)) if fenced else ()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server has ended
        self._answers, theirs = os.pipe()
        self._process = subprocess.Popen(
            # What is asked of it must be answered by the process that is asked, not by its keeper.
            [
                *before,
                sys.executable,
                "-m",
                "bench.soaking.launcher",
                str(theirs),
                "serve",
                *options,
                *_ALONE,
            ],
            env={**os.environ, **({"PYTHONPATH": _ROOT, "TMPDIR": str(within)} if fenced else {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            pass_fds=(theirs,),
        )
        os.close(theirs)
        self._lines = os.fdopen(self._answers, "rb")
        self._said = ""
        self._began = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    def read_url(self) -> str:
        """The next line that the server prints: the URL of a listener."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().rstrip("\n")
        if not line:
            raise Silent(self.said())
        return line

    def said(self) -> str:
        """What is in its log."""
        if not self._log.closed:
            self._log.seek(0)
            self._said = self._log.read().decode(errors="replace")
        return self._said

    def tasks(self) -> int:
        """The number of asyncio tasks."""
        tasks: int = self._ask(signal.SIGUSR1)["tasks"]
        return tasks

    def census(self) -> dict[str, int]:
        """How many objects of each class there are, after a collection."""
        objects: dict[str, int] = self._ask(signal.SIGUSR2)["objects"]
        return objects

    def _ask(self, number: signal.Signals) -> dict[str, Any]:
        self._process.send_signal(number)
        line = self._lines.readline()
        if not line:
            raise Silent(self.said())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def files(self) -> Counter[str]:
        """What its descriptors lead to, by kind."""
        folder, kinds = Path(f"/proc/{self.pid}/fd"), Counter[str]()
        for fd in os.listdir(folder):
            with contextlib.suppress(OSError):
                kinds[_NUMBER.sub("", os.readlink(folder / fd))] += 1
        return kinds

    def cpu(self) -> float:
        """Seconds of processor time of the server alone."""
        fields = _stat(self.pid)
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def sample(self) -> Sample:
        """Look at everything."""
        folder = Path(f"/proc/{self.pid}")
        family = self._family()
        return Sample(
            at=time.monotonic() - self._began,
            resident=int((folder / "statm").read_text().split()[1]) * _PAGE / _MIB,
            proportional=_proportional(folder),
            files=len(os.listdir(folder / "fd")),
            threads=len(os.listdir(folder / "task")),
            tasks=self.tasks(),
            family=len(family),
            zombies=family.count("Z"),
        )

    def _family(self) -> list[str]:
        """The states of all processes below the server."""
        parents: dict[int, list[int]] = {}
        states: dict[int, str] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    fields = _stat(int(entry))
                    states[int(entry)] = fields[0]
                    parents.setdefault(int(fields[1]), []).append(int(entry))
        found, look = [], [self.pid]
        while look:
            children = parents.get(look.pop(), [])
            found += children
            look += children
        return [states[pid] for pid in found]

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self._lines.close()
            self.said()
            self._log.close()
            if self._process.stdout is not None:
                self._process.stdout.close()

    @property
    def code(self) -> int | None:
        return self._process.returncode


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _proportional(folder: Path) -> float:
    for line in (folder / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Rise per second: the median of the slopes between all pairs, which single outliers do not move."""
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for index, earlier in enumerate(points)
        for later in points[index + 1 :]
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) if slopes else 0.0
