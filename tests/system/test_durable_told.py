"""What clients and operators are told of durability: in the handshake, and in the figures."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.arena_probe import probe
from tests.fakes.client import client
from tests.fakes.server import eventually_sync, program_at, serving

pytestmark = pytest.mark.slow

here = pytest.mark.skipif(probe() is not None, reason="nothing can outlive a server here")


def restarts(url: str) -> list[str]:
    """The figure on the page of metrics, if it is there."""
    with urllib.request.urlopen(f"{url.replace('ws', 'http', 1)}/metrics") as page:  # noqa: S310  (our own)
        lines = page.read().decode().splitlines()
    return [line for line in lines if line.startswith("holdfast_restarts_total")]


async def told(url: str) -> Any:
    async with client(url) as talking:
        info = await talking.call("environment/info")
    return info["capabilities"]["holdfast"]["durable"]


@here
async def test_a_durable_server_says_so_and_counts_its_restarts() -> None:
    """A client decides by that whether a lost connection may be the end of its processes."""
    with program_at("--durability", "on", "--metrics") as (server, url):
        first = serving(server.pid)
        assert (await told(url), restarts(url)) == (True, ["holdfast_restarts_total 0"])

        os.kill(first, signal.SIGKILL)
        eventually_sync(lambda: serving(server.pid) not in (first, server.pid))

        assert (await told(url), restarts(url)) == (True, ["holdfast_restarts_total 1"])


async def test_a_server_whose_processes_end_with_it_says_so() -> None:
    with program_at("--durability", "off", "--metrics") as (_, url):
        assert (await told(url), restarts(url)) == (False, [])


@here
async def test_the_audit_log_tells_of_a_restart_and_of_the_same_process_before_and_after(
    tmp_path: Path,
) -> None:
    """Else one would look for the line that says that its client has left."""
    log = tmp_path / "audit.log"
    with program_at("--durability", "on", "--audit-log", str(log)) as (server, url):
        first = serving(server.pid)
        async with client(url) as talking:
            await talking.start("p", "sh", "-c", "read _; exit 3", pipeStdin=True)
            os.kill(first, signal.SIGKILL)
        eventually_sync(lambda: serving(server.pid) not in (first, server.pid))
        eventually_sync(lambda: b'"restarted"' in log.read_bytes())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    found = [line for line in lines if line["event"] in ("start", "running", "restarted", "end")]

    assert [line["event"] for line in found] == ["start", "running", "restarted", "end"]
    assert found[2]["restarts"] == 1
    assert len({line["ref"] for line in found if "ref" in line}) == 1
