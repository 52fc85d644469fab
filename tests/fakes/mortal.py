"""Servers that are killed, and come back: found below the process that was started, by their names."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping

from tests.fakes.keeper import comm
from tests.fakes.server import Program, descendants, eventually_sync, is_running, program_at

ON = ("--durability", "on")


def part(program: Program, name: str) -> int | None:
    """The pid of the keeper's part of that name; None if it is not there."""
    found = [each.pid for each in descendants(program.pid) if comm(each.pid) == name and is_running(each.pid)]
    return max(found, default=None)


def await_part(program: Program, name: str) -> int:
    """The same, once it is there."""
    eventually_sync(lambda: part(program, name) is not None)
    found = part(program, name)
    assert found is not None
    return found


def kill_server(program: Program) -> int:
    """Kill the server of now; return the pid that it had."""
    pid = await_part(program, "holdfast-server")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    eventually_sync(lambda: not is_running(pid))
    return pid


@contextlib.contextmanager
def mortal_at(*options: str, env: Mapping[bytes, bytes] | None = None) -> Iterator[tuple[Program, str]]:
    """A server whose processes outlive it, and its URL."""
    with program_at(*ON, *options, env=env) as (program, url):
        # Only a spare that is ready forks a server as fast as it should.
        await_part(program, "holdfast-spare")
        yield program, url
