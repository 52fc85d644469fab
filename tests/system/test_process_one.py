"""The program as process 1, as in a container without an init."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import start_params
from tests.fakes.server import COMMAND, eventually_sync, stat_of

UNSHARE = (shutil.which("unshare") or "unshare", "-Upf", "--map-root-user", "--mount-proc", "--kill-child")


class Talk:
    """With a program on its standard streams."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        self._program = program

    def call(self, method: str, params: object) -> Any:
        """The answer; notifications are passed over."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        message = {"id": method, "method": method, "params": params}
        self._program.stdin.write(json.dumps(message).encode() + b"\n")
        self._program.stdin.flush()
        while (told := json.loads(self._program.stdout.readline())).get("id") != method:
            pass
        return told["result"]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()]


def states(pid: int) -> str:
    """Of its children, a letter each."""
    return "".join(stat.state for child in children(pid) if (stat := stat_of(child)) is not None)


@pytest.mark.slow
def test_no_dead_process_is_left_when_the_fork_server_was_killed() -> None:
    """Its shims are nobody else's then.  Dead ones would use up the numbers of the container."""
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], check=False).returncode:
        pytest.skip("no PID namespace can be made here")
    with subprocess.Popen(
        [*UNSHARE, *COMMAND, "--listen", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        talk = Talk(program)
        talk.call("initialize", {"clientName": "t"})
        assert program.stdin is not None
        program.stdin.write(b'{"method":"initialized"}\n')
        for name in ("a", "b", "c"):
            talk.call("process/start", start_params(name, "sleep", "1000"))
        (server,) = children(program.pid)
        (fork_server,) = (
            pid for pid in children(server) if Path(f"/proc/{pid}/comm").read_text() == "holdfast-fork\n"
        )

        os.kill(fork_server, signal.SIGKILL)
        eventually_sync(lambda: len(children(server)) >= 3 and fork_server not in children(server))
        for name in ("a", "b", "c"):
            talk.call("process/terminate", {"processId": name})

        eventually_sync(lambda: "Z" not in states(server))
        talk.call("process/start", start_params("d", "true"))
        program.stdin.close()
        assert program.wait() == 0
