"""How near a server is to its limits, as its metrics tell."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from tests.fakes.app_client import AppClient, SocketLink
from tests.fakes.client import Client, Refusal
from tests.fakes.frames import Wire
from tests.fakes.server import PATIENCE, Program, program_at

_FIGURE = re.compile(r'^holdfast_limit(_used|_refusals_total|)\{limit="([^"]+)"\} (\S+)$', re.MULTILINE)


SMALL = {
    "engine.processes": "3",
    "engine.retained_bytes": "1500",
    "engine.retained_chunks": "4",
    "engine.arguments": "50",
    "engine.argument_bytes": "5k",
    "engine.stdin_chunks": "2",
    "engine.write_ids": "2",
    "engine.write_id_bytes": "100",
    "environment.variables": "4",
    "environment.name_bytes": "40",
    "environment.patterns": "3",
    "environment.pattern_bytes": "20",
    "sandbox.entries": "4",
    "sandbox.roots": "2",
    "sandbox.path_bytes": "250",
    "sandbox.text_bytes": "2k",
    "sandbox.patterns": "2",
    "sandbox.matches": "2",
    "sandbox.names": "6",
    "session.names": "5",
    "session.name_bytes": "2k",
    "session.kept_names": "3",
    "session.kept_ended": "1",
    "session.attached_bytes": "1k",
    "session.answer_bytes": "600",
    "session.loopback_ports": "2",
    "session.waiting_ends": "1",
    "connection.waiting_requests": "4",
    "connection.waiting_bytes": "16k",
    "connection.message_bytes": "200k",
    "http.requests": "2",
    "http.connection_requests": "1",
    "http.buffered_bytes": "100",
    "http.buffered_total": "150",
    "http.delta_bytes": "10",
    "http.headers": "3",
    "http.header_bytes": "1k",
    "http.url_bytes": "100",
    "http.redirects": "1",
    "file.read_bytes": "1000",
    "file.at_once_bytes": "300",
    "file.block_bytes": "64",
    "file.handles": "2",
    "file.handle_bytes": "8",
    "file.entries": "3",
    "file.walk_depth": "2",
    "file.walk_directories": "3",
    "file.walk_entries": "4",
    "file.walk_bytes": "150",
    "app.names": "1",
    "app.name_bytes": "100",
    "app.opt_outs": "2",
    "app.opt_out_bytes": "50",
    "app.buffered_bytes": "1000",
    "app.buffered_total": "1500",
}
"""What can be reached by asking."""

BRIEF = {
    "session.closed_seconds": "100ms",
    "session.detached_seconds": "100ms",
    "session.kept_seconds": "100ms",
    "connection.handshake_seconds": "2s",
    "connection.ping_seconds": "500ms",
    "connection.pong_seconds": "1500ms",
}
"""What is reached by waiting."""

ADMISSION = {
    "connection.connections": "3",
    "connection.undecided": "2",
    "connection.output_bytes": "16k",
    "session.sessions": "2",
}
"""What is reached by coming."""

ELSEWHERE = {
    "engine.arena_bytes": "tests/unit/host/test_arena.py",
    "engine.stdin_bytes": "tests/unit/engine/test_stdin.py",
    "engine.stop_seconds": "tests/unit/engine/test_local.py",
    "engine.user_seconds": "tests/unit/engine/test_users.py",
    "sandbox.lookup_seconds": "tests/unit/host/sandbox/test_rules_search.py",
    "sandbox.lookup_threads": "tests/unit/engine/test_local_sandbox.py",
    "sandbox.trial_seconds": "tests/unit/cli/test_serve.py",
    "session.principals": "tests/system/test_bounds_coming.py",
    "session.detached_bytes": "tests/system/test_gap.py",
    "session.window_bytes": "tests/unit/dialects/exec/test_window.py",
    "session.shell_snapshots": "tests/unit/dialects/exec/test_shells.py",
    "session.shell_snapshot_bytes": "tests/unit/dialects/exec/test_shells.py",
    "session.probe_seconds": "tests/system/test_sessions.py",
    "app.drain_seconds": "tests/system/test_app_drain.py",
    "app.process_quiet_seconds": "tests/system/test_app_drain.py",
    "app.command_quiet_seconds": "tests/system/test_app_drain.py",
    "file.threads": "tests/unit/engine/test_workers.py",
    "file.connection_calls": "tests/unit/dialects/exec/test_path_locks.py",
    "connection.exchanges": "tests/unit/server/test_exchange.py",
    "connection.fragment_bytes": "tests/unit/server/test_websocket.py",
    "connection.unsent_bytes": "tests/system/test_back_pressure.py",
    "connection.turn_seconds": "tests/unit/server/test_connection_turns.py",
    "connection.close_seconds": "tests/unit/server/test_websocket.py",
}


def server(limits: dict[str, str], *options: str) -> AbstractContextManager[tuple[Program, str]]:
    """The program with these limits, and its metrics; commands run as they are."""
    given = [f"--limit={name}={value}" for name, value in limits.items()]
    direct = dict.fromkeys((b"http_proxy", b"HTTP_PROXY", b"all_proxy", b"ALL_PROXY"), b"")
    return program_at("--metrics", "--command-sandbox=danger-full-access", *given, *options, env=direct)


@dataclass
class Figures:
    """By the names of the limits."""

    most: dict[str, float]
    used: dict[str, float]
    refusals: dict[str, float]


async def figures(url: str, *headers: str, wire: Wire | None = None) -> Figures:
    """What the server says at this moment, on a socket of its own or on this one."""
    wire = wire or await Wire.dial(url)
    lines = ["GET /metrics HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]
    wire.writer.write("\r\n".join(lines).encode())
    async with asyncio.timeout(PATIENCE):
        text = (await wire.reader.read()).decode()
    await wire.close()
    assert text.startswith("HTTP/1.1 200 "), text
    found: dict[str, dict[str, float]] = {"": {}, "_used": {}, "_refusals_total": {}}
    for kind, name, value in _FIGURE.findall(text):
        found[kind][name] = float(value)
    return Figures(found[""], found["_used"], found["_refusals_total"])


async def until_used(url: str, name: str, amount: float) -> None:
    """Wait until that much of a limit is in use."""
    async with asyncio.timeout(PATIENCE):
        while (await figures(url)).used[name] != amount:
            pass


@contextlib.asynccontextmanager
async def refusals(url: str, name: str, times: int = 1) -> AsyncIterator[None]:
    """Whatever is done within is refused so many times because of a limit, and that is counted."""
    before = await figures(url)
    yield
    after = await figures(url)
    assert after.refusals.get(name, 0) - before.refusals.get(name, 0) == times
    assert {k: v for k, v in after.refusals.items() if k != name} == {
        k: v for k, v in before.refusals.items() if k != name
    }


async def refused(url: str, name: str, ask: Callable[[], Awaitable[object]]) -> None:
    """See that this is refused by name, counted, and that another client is served all the same."""
    most = (await figures(url)).most[name]
    async with refusals(url, name):
        with pytest.raises(Refusal) as caught:
            await ask()
        assert (caught.value.data["name"], caught.value.data["value"]) == (name, most)
    async with session(url) as other:
        await other.call("environment/status")


@contextlib.asynccontextmanager
async def session(url: str) -> AsyncIterator[Client]:
    """A client that takes everything with it when it goes."""
    opened = await Client.open(url)
    try:
        yield opened
        await opened.call("session/close")
    finally:
        await opened.close()


@contextlib.asynccontextmanager
async def app_client(url: str) -> AsyncIterator[AppClient]:
    opened = AppClient(SocketLink(await Wire.open(url)))
    try:
        await opened.initialize()
        yield opened
    finally:
        await opened.close()
