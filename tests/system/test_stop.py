"""The end of the server: told, or killed; nothing it started may outlive it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.client import Client, Tale, start_params
from tests.fakes.frames import Wire
from tests.fakes.server import (
    COMMAND,
    PATIENCE,
    Program,
    commands,
    descendants,
    eventually,
    hangup,
    held_program,
    is_same,
    program,
    program_at,
    starts_under_way,
)

STUBBORN = "trap '' TERM HUP INT; sleep 1000 & echo ready; wait"


async def load(url: str) -> Client:
    """A client with ordinary and stubborn processes, on pipes and on terminals."""
    talking = await Client.open(url)
    await talking.start("plain", "sleep", "1000")
    await talking.start("reader", "cat", pipeStdin=True)
    for name, tty in (("stubborn", False), ("stubborn terminal", True)):
        await talking.start(name, "sh", "-c", STUBBORN, tty=tty)
        await said_something(talking.tale(name), talking)
    return talking


async def said_something(tale: Tale, talking: Client) -> None:
    await talking.until(lambda: tale.events)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_with_code_zero_kills_everything_and_says_goodbye(
    number: signal.Signals,
) -> None:
    """Clients learn that the server goes away, instead of guessing at a network problem."""
    with program_at() as (server, url):
        talking = await load(url)
        detached = await load(url)
        await detached.abort()
        server.send_signal(number)

        farewell = await talking.ended()
        code = server.wait()
        await talking.close()
        await eventually(lambda: not server.survivors())

    assert code == 0
    assert farewell is not None
    assert farewell.close_code == 1001
    assert farewell.close_reason == "the server stops"


@pytest.mark.slow
async def test_sigkill_of_the_server_kills_its_children_even_stubborn_ones() -> None:
    """A crash of the server must not leave programs running that nobody can reach."""
    server = Program("--listen", "ws://127.0.0.1:0")
    talking = await load(server.read_url())
    family = descendants(server.pid)

    server.send_signal(signal.SIGKILL)
    code = server.wait()
    await talking.ended()
    await talking.close()
    server.stop()

    assert code == -signal.SIGKILL
    assert len(family) >= 5, "four processes and whatever guards them"


@pytest.mark.slow
async def test_a_stop_does_not_wait_for_a_peer_that_neither_reads_nor_answers() -> None:
    """One dead client must not keep the server from ending."""
    with program_at() as (server, url):
        stalled = await Client.open(url, answers_pings=False)
        stalled.stop_listening()
        stalled.post("process/start", start_params("p", "cat", "/dev/zero"))
        half = await Wire.dial(url)
        half.writer.write(b"GET / HTT")
        await eventually(lambda: len(commands(server.pid)) >= 1)
        server.send_signal(signal.SIGTERM)

        code = server.wait()
        await stalled.abort()
        await half.close()

    assert code == 0


@pytest.mark.slow
async def test_a_stop_during_a_slow_start_leaves_no_process(tmp_path: Path) -> None:
    """The program that was about to run must not run when nobody is there any more."""
    with held_program("/bin/sleep", tmp_path / "held") as held:
        with program_at() as (server, url):
            talking = await Client.open(url)
            talking.post("process/start", start_params("p", held.path, "1000"))
            await eventually(lambda: len(starts_under_way(server.pid)) == 1)
            server.send_signal(signal.SIGTERM)
            code = server.wait()
            await talking.abort()
            held.release()
            await eventually(lambda: not server.survivors())
        assert not held.runs()

    assert code == 0


@pytest.mark.slow
async def test_sigkill_during_a_slow_start_kills_the_other_children_at_once(tmp_path: Path) -> None:
    """Whoever watches over the others does not wait for it; and it ends when it can."""
    with held_program("/bin/sleep", tmp_path / "held") as held:
        server = Program("--listen", "ws://127.0.0.1:0")
        talking = await load(server.read_url())
        others = commands(server.pid)
        talking.post("process/start", start_params("p", held.path, "1000"))
        await eventually(lambda: len(starts_under_way(server.pid)) == 1)
        (stuck,) = starts_under_way(server.pid)

        server.send_signal(signal.SIGKILL)
        server.wait()
        await talking.abort()
        await eventually(lambda: not any(map(is_same, others)))
        held.release()
        await eventually(lambda: not is_same(stuck))
        server.stop()

    assert len(others) >= 4


@pytest.mark.slow
async def test_a_second_signal_changes_nothing() -> None:
    """Impatient users press the keys twice."""
    with program_at() as (server, url):
        talking = await load(url)
        server.send_signal(signal.SIGINT)
        server.send_signal(signal.SIGINT)
        server.send_signal(signal.SIGTERM)

        code = server.wait()
        await talking.close()

    assert code == 0


@pytest.mark.slow
def test_the_guard_of_the_children_does_not_hold_the_servers_output_open() -> None:
    """Whoever reads the server's output until its end must see that end."""
    server = subprocess.Popen(
        [*COMMAND, "--listen", "ws://127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert server.stdout is not None
    server.stdout.readline()
    server.kill()

    rest, _ = server.communicate(timeout=PATIENCE)

    assert rest == b""


@pytest.mark.slow
def test_an_idle_server_stops_at_once() -> None:
    """Nothing to end is the common case."""
    with program("--listen", "ws://127.0.0.1:0", "--listen", "ws://127.0.0.1:0") as server:
        first, second = server.read_url(), server.read_url()
        server.send_signal(signal.SIGTERM)
        code = server.wait()

    assert code == 0
    assert first != second


@pytest.mark.parametrize("durability", ["on", "off"])
async def test_who_closes_the_terminal_of_a_server_stops_it_unless_it_was_started_by_nohup(
    durability: str,
) -> None:
    with hangup(signal.SIG_IGN), program_at("--durability", durability) as (server, url):
        server.send_signal(signal.SIGHUP)
        talking = await Client.open(url)
        await talking.start("after", "true")
        await talking.closed("after")
        await talking.close()
    with hangup(signal.SIG_DFL), program_at("--durability", durability) as (server, _):
        server.send_signal(signal.SIGHUP)

        assert server.wait() == (0 if durability == "on" else -signal.SIGHUP)
