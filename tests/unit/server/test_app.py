"""The server as a whole, in this loop: sessions that end by themselves, limits, telemetry, stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
import struct
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast.config import ConnectionLimits, EngineLimits, SessionLimits
from holdfast.server.listen import BadListen, TcpListen, UnixListen
from holdfast.telemetry import Tally
from tests.fakes.client import Client, Refusal, client, page_bytes, start_params
from tests.fakes.frames import CLOSE, Wire
from tests.fakes.server import PATIENCE, ServerLoop, commands, eventually, held_program, inside, is_same

# Listening.


async def test_a_unix_socket_is_for_the_owner_only_and_gone_after_the_stop(tmp_path: Path) -> None:
    """Whoever can connect can run programs."""
    path = tmp_path / "s"
    async with inside(where=UnixListen(str(path))) as server:
        mode = path.stat().st_mode
        async with client(server.url) as talking:
            await talking.start("p", "true")
            await talking.closed("p")

    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    assert not path.exists()


@pytest.mark.parametrize(("any_path", "status"), [(True, b"101"), (False, b"404")])
async def test_a_unix_socket_has_the_routes_of_its_server(
    tmp_path: Path, *, any_path: bool, status: bytes
) -> None:
    path = tmp_path / "s"
    async with inside(where=UnixListen(str(path)), any_path=any_path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(
            b"GET /foo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
        )
        line = await asyncio.wait_for(reader.readline(), PATIENCE)
        writer.close()

    assert line.split()[1] == status


async def test_a_listener_that_cannot_be_had_says_why(tmp_path: Path) -> None:
    """The words reach the operator as they are."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with inside() as server:
            with pytest.raises(BadListen) as in_use:
                await server.server.listen(TcpListen("127.0.0.1", port))
            with pytest.raises(BadListen) as exposed:
                await server.server.listen(TcpListen("0.0.0.0", 0))
            with pytest.raises(BadListen) as nowhere:
                await server.server.listen(UnixListen(str(tmp_path / "missing" / "s")))

    assert str(in_use.value) == f"cannot listen on ws://127.0.0.1:{port}: Address already in use"
    assert "without auth" in str(exposed.value)
    assert "No such file or directory" in str(nowhere.value)


async def test_connections_over_the_limit_are_told_to_come_later(caplog: pytest.LogCaptureFixture) -> None:
    """A limit that is not enforced is a wish.  Whoever looks after the server can see it."""
    caplog.set_level(logging.INFO, logger="holdfast")
    tally = Tally()
    async with inside(connections=ConnectionLimits(connections=2), telemetry=tally) as server:
        async with client(server.url), client(server.url):
            refused = await Wire.dial(server.url)
            refused.writer.write(
                b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            answer = await refused.reader.read()
            await refused.close()
        async with client(server.url) as later:
            status = await later.call("environment/status")

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert status == {"status": "ready"}
    assert tally.counts["holdfast_limit_refusals_total", "connection.connections"] == 1
    told = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert told == ["connection refused or ended: limit connection.connections"]


async def test_connections_are_counted_until_they_end() -> None:
    """What the server believes about its clients is what is so."""
    async with inside() as server:
        first, second = await Client.open(server.url), await Client.open(server.url)
        during = server.server.connections
        await first.close()
        await second.abort()
        await eventually(lambda: server.server.connections == 0)

    assert during == 2


async def test_a_peer_that_is_gone_before_it_is_accepted_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Port scanners do this all day."""
    with caplog.at_level(logging.WARNING):
        async with inside() as server:
            address = urlsplit(server.url)
            for _ in range(5):
                gone = socket.create_connection((address.hostname, address.port))
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.close()
            async with client(server.url) as talking:
                status = await talking.call("environment/status")

    assert status == {"status": "ready"}
    assert [record for record in caplog.records if record.name.startswith("holdfast")] == []


# Sessions that end by themselves.


async def test_a_detached_session_expires_and_its_processes_are_killed() -> None:
    """A client that never comes back must not leave programs running for ever."""
    async with inside(sessions=SessionLimits(detached_seconds=0.05)) as server:
        talking = await Client.open(server.url)
        before = commands(os.getpid())
        await talking.start("p", "sh", "-c", "trap '' TERM HUP; sleep 1000 & wait")
        await talking.start("q", "sleep", "1000", tty=True)
        family = commands(os.getpid()) - before
        await talking.abort()

        await eventually(lambda: not any(map(is_same, family)))
        late = await Client.connect(server.url)
        with pytest.raises(Refusal) as refusal:
            await late.initialize(talking.session)
        await late.close()

    assert len(family) >= 2
    assert refusal.value.text == f"unknown session id {talking.session}"


async def test_a_session_that_was_resumed_does_not_expire() -> None:
    """The time counts from the last goodbye, not from the first."""
    times = ServerLoop()
    async with inside(sessions=SessionLimits(detached_seconds=8), times=times) as server:
        async with client(server.url) as first:
            await first.start("p", "sleep", "1000")
        await eventually(lambda: server.server.connections == 0)
        times.move(7)
        async with client(server.url, resume=first.session) as second:
            times.move(7)
        await eventually(lambda: server.server.connections == 0)
        times.move(7)
        async with client(server.url, resume=second.session) as third:
            running = await third.terminate("p")

    assert running


async def test_expiry_gives_up_a_start_that_is_still_under_way(tmp_path: Path) -> None:
    """Nobody is left who could want the process."""
    async with inside(sessions=SessionLimits(detached_seconds=0.05)) as server:
        with held_program("/bin/sleep", tmp_path / "held") as held:
            talking = await Client.open(server.url)
            talking.post("process/start", start_params("p", held.path, "1000"))
            await talking.call("environment/status")
            # Not an abort: the child that is stuck has a copy of our socket too.
            await talking.close()
            await eventually(lambda: len(server.endpoint.sessions) == 0)
            held.release()
            await eventually(lambda: not held.runs())


async def test_a_closed_process_is_forgotten_after_its_time_and_its_name_is_free() -> None:
    """Names come back, and so does the memory of what was said under them."""
    times = ServerLoop()
    async with inside(times=times) as server, client(server.url) as talking:
        await talking.start("p", "echo", "first")
        await talking.closed("p")
        page = await talking.read("p")
        with pytest.raises(Refusal):
            await talking.start("p", "echo", "second")
        times.move(SessionLimits().closed_seconds)
        await talking.start("p", "echo", "second")
        tale = talking.tale("p")
        await talking.until(lambda: tale.kinds.count("closed") == 2)

    assert page_bytes(page) == b"first\n"
    assert tale.seqs == [1, 2, 3, 1, 2, 3]


async def test_a_silent_holder_loses_its_session_after_the_probe() -> None:
    """With a short time for the probe, the whole exchange takes no longer than that."""
    async with inside(sessions=SessionLimits(probe_seconds=0.05)) as server:
        silent = await Client.open(server.url, answers_pings=False)
        async with client(server.url, resume=silent.session) as heir:
            assert heir.session == silent.session
        farewell = await silent.ended()
        await silent.close()

    assert farewell is not None
    assert farewell.close_reason == "the session was resumed by another connection"


async def test_of_two_clients_that_want_a_silent_holders_session_one_gets_it() -> None:
    """Two retries of the same client may overlap."""
    async with inside(sessions=SessionLimits(probe_seconds=0.2)) as server:
        silent = await Client.open(server.url, answers_pings=False)
        rivals = [await Client.connect(server.url) for _ in range(3)]
        outcomes = await asyncio.gather(
            *(rival.initialize(silent.session) for rival in rivals), return_exceptions=True
        )
        for peer in (silent, *rivals):
            await peer.close()

    winners = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    losers = [outcome.code for outcome in outcomes if isinstance(outcome, Refusal)]
    assert (len(winners), losers) == (1, [-32010, -32010])


# Limits.


async def test_limits_are_named_in_the_refusal() -> None:
    """A client that runs into a wall should see which one."""
    async with (
        inside(sessions=SessionLimits(sessions=1, names=2), engine=EngineLimits(processes=1)) as server,
        client(server.url) as talking,
    ):
        await talking.start("p", "sleep", "1000")
        with pytest.raises(Refusal) as processes:
            await talking.start("q", "sleep", "1000")
        other = await Client.connect(server.url)
        with pytest.raises(Refusal) as sessions:
            await other.initialize()
        await other.close()

    assert processes.value.data == {
        "kind": "limitReached",
        "limit": "processes",
        "value": 1,
        "name": "engine.processes",
    }
    assert sessions.value.data == {
        "kind": "limitReached",
        "limit": "sessions",
        "value": 1,
        "name": "session.sessions",
    }


# Telemetry.


async def test_a_scripted_session_is_counted_exactly() -> None:
    """Names, labels and numbers are what dashboards are built on."""
    tally = Tally()
    async with inside(telemetry=tally) as server:
        async with client(server.url) as talking:
            await talking.start("good", "true")
            await talking.closed("good")
            await talking.start("bad", "false")
            await talking.closed("bad")
            await talking.start("ended", "sleep", "1000")
            await talking.terminate("ended")
            await talking.closed("ended")
            await talking.start("left", "sleep", "1000")
            await talking.call("environment/status")
            for method, params in (
                ("process/start", start_params("none", "/no/such/program")),
                ("process/read", {"processId": "nobody"}),
                ("process/write", {}),
                ("process/dance", {}),
            ):
                with pytest.raises(Refusal):
                    await talking.call(method, params)
        await eventually(lambda: tally.counts["exec_server_connections_active", "websocket"] == 0)

    assert {key: count for key, count in tally.counts.items() if count} == {
        ("exec_server_connections_total", "websocket"): 1,
        ("exec_server_requests_total", "initialize", "success"): 1,
        ("exec_server_requests_total", "environment/status", "success"): 1,
        ("exec_server_requests_total", "process/start", "success"): 4,
        ("exec_server_requests_total", "process/start", "error"): 1,
        ("exec_server_requests_total", "process/terminate", "success"): 1,
        ("exec_server_requests_total", "process/read", "error"): 1,
        ("exec_server_requests_total", "process/write", "error"): 1,
        ("exec_server_requests_total", "unknown", "error"): 1,
        ("exec_server_processes_finished_total", "success"): 1,
        ("exec_server_processes_finished_total", "error"): 1,
        ("exec_server_processes_finished_total", "terminated"): 2,
    }
    timed = {key: sum(buckets) for key, buckets in tally.durations.items()}
    assert timed["exec_server_process_duration_seconds", "terminated"] == 2
    assert timed["exec_server_request_duration_seconds", "process/start", "success"] == 4
    assert timed["exec_server_request_queue_duration_seconds", "process/start"] == 5
    assert timed["exec_server_request_total_duration_seconds", "unknown", "error"] == 1


async def test_processes_of_an_expired_session_count_as_terminated() -> None:
    """Nobody asked, but somebody ended them."""
    tally = Tally()
    async with inside(telemetry=tally, sessions=SessionLimits(detached_seconds=0.02)) as server:
        talking = await Client.open(server.url)
        await talking.start("p", "sleep", "1000")
        await talking.abort()
        await eventually(lambda: tally.counts["exec_server_processes_finished_total", "terminated"] == 1)

    assert tally.counts["exec_server_processes_active",] == 0


# The end.


async def test_a_stop_says_goodbye_to_everybody_and_kills_everything() -> None:
    """Nothing of a server in a test, or in another program, outlives it."""
    before = commands(os.getpid())
    async with inside() as server:
        talking = await Client.open(server.url)
        await talking.start("p", "sleep", "1000")
        family = commands(os.getpid()) - before
    farewell = await talking.ended()
    await talking.close()

    await eventually(lambda: not any(map(is_same, family)))
    assert len(family) == 1
    assert farewell is not None
    assert (farewell.op, farewell.close_code) == (CLOSE, 1001)
