"""Windows: a process waits for the client that acknowledges its output, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.config import SessionLimits
from tests.fakes.client import Client, Tale, client, page_bytes
from tests.fakes.floods import KIB, MIB, Account, expected, flood, pid_of, read_on, stuck
from tests.fakes.server import Program, commands, eventually, inside, is_running, program_at, stat_of
from tests.fakes.trees import exit_of, knowing


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module, which keeps nothing more for those who are away."""
    with program_at("--retain-detached-bytes", "1") as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


async def acknowledge(talking: Client, seq: int | None = None, *, name: str = "p", **params: object) -> None:
    assert await talking.call("process/ack", {"processId": name, "seq": seq, **params}) == {}


async def hear_all(talking: Client, *, name: str = "p", method: str = "process/ack") -> Tale:
    """Acknowledge whatever comes, by either method, until the process has closed."""
    tale = talking.tale(name)
    while not tale.is_closed:
        seq = tale.events[-1][1]["seq"] if tale.events else 0
        await talking.call(method, {"processId": name, "seq": seq, "afterSeq": seq, "maxBytes": 1})
        await talking.until(partial(_is_ahead, tale, seq))
    assert tale.seqs == list(range(1, len(tale.seqs) + 1))
    return tale


def _is_ahead(tale: Tale, seq: int) -> bool:
    return bool(tale.events) and tale.events[-1][1]["seq"] > seq


# A client that is there.


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("streams", [1, 2])
async def test_much_output_goes_through_a_small_window(url: str, streams: int) -> None:
    """The client acknowledges only when it has nothing more to hear, and then no more than it must."""
    size, window = 16 * MIB, 64 * KIB
    account, unacknowledged, most = Account(), dict[int, int](), 0
    async with client(url) as talking:
        await talking.start("p", *flood(size, streams=streams), window=window)
        tale, kind = talking.tale("p"), ""
        while kind != "closed":
            await talking.until(lambda: tale.events)
            while tale.events:
                kind, params = tale.events.pop(0)
                unacknowledged[params["seq"]] = account.hear(params)
                if account.size < size - MIB:  # At its end all that the pipes hold is told at once.
                    most = max(most, sum(unacknowledged.values()))
            seq = 0
            while unacknowledged and (not seq or sum(unacknowledged.values()) >= window):
                seq = min(unacknowledged)
                del unacknowledged[seq]
            await acknowledge(talking, seq)

    assert account.size == size
    assert account.hashes == expected(size, streams=streams)
    assert window <= most < window + 64 * KIB


async def test_a_process_that_says_less_needs_no_acknowledgement(url: str) -> None:
    async with client(url) as talking:
        await talking.start("p", "sh", "-c", "echo out; echo err >&2; exit 3", window=100)
        tale = await talking.closed("p")

    assert sorted(tale.kinds) == ["closed", "exited", "output", "output"]
    assert tale.exit_codes == [3]


async def test_the_news_of_an_end_waits_with_the_output(url: str) -> None:
    """What is said before it comes before it; and is there when the client has said so."""
    async with client(url) as talking:
        await talking.start("p", "sh", "-c", "echo out; read line; exit 3", window=1, pipeStdin=True)
        tale, pid = talking.tale("p"), await pid_of(talking)
        await talking.until(lambda: tale.events)
        await talking.write("p", b"\n", "w")
        await eventually(lambda: not is_running(pid))
        page = await talking.read("p")
        waited = await talking.call("process/wait", {"processId": "p", "waitMs": 20})
        before = tale.kinds.copy()
        await acknowledge(talking, 1)
        await talking.closed("p")

    assert (page["exited"], waited["exited"], before) == (False, False, ["output"])
    assert tale.seqs == [1, 2, 3]


async def test_a_released_window_holds_nothing(url: str) -> None:
    size = 8 * MIB
    account = Account()
    async with client(url) as talking:
        await talking.start("p", *flood(size), window=1)
        await stuck(await pid_of(talking))
        tale = talking.tale("p")
        assert len(tale.events) == 1
        await acknowledge(talking, None, release=True)
        await talking.closed("p")
        await acknowledge(talking, 1, release=True)

    for _, params in tale.events:
        account.hear(params)
    assert account.hashes == expected(size)


@pytest.mark.parametrize("method", ["process/ack", "process/read"])
async def test_a_terminal_waits_too(url: str, method: str) -> None:
    """Its output is what goes through, and not what its reader types."""
    async with client(url) as talking:
        await talking.start("p", "seq", "100000", tty=True, window=1000)
        tale = talking.tale("p")
        await stuck(await pid_of(talking))
        held = len(tale.data())
        await hear_all(talking, method=method)

    assert 1000 <= held < 1000 + 64 * KIB
    assert tale.data("pty") == b"".join(b"%d\r\n" % number for number in range(1, 100_001))


# Ends of a process that is held.


async def held(talking: Client, **options: object) -> int:
    """A process that waits for an acknowledgement; gives its pid."""
    await talking.start("p", *flood(64 * MIB), window=1, **options)
    pid = await pid_of(talking)
    await stuck(pid)
    return pid


async def test_a_held_process_can_be_terminated(url: str) -> None:
    """Nothing has to be acknowledged for it."""
    async with knowing(url) as talking:
        await held(talking)
        result = await talking.call("process/terminate", {"processId": "p"})
        tale = talking.tale("p")

    assert (result["running"], result["survivors"]) == (True, [])
    assert tale.kinds[-2:] == ["exited", "closed"]
    assert tale.seqs == list(range(1, len(tale.seqs) + 1))


async def test_a_held_process_can_be_terminated_with_a_grace(url: str) -> None:
    async with knowing(url) as talking:
        await held(talking)
        result = await talking.call("process/terminate", {"processId": "p", "graceMs": 100})
        tale = talking.tale("p")

    assert (result["running"], result["survivors"]) == (True, [])
    assert tale.kinds[-2:] == ["exited", "closed"]


async def test_a_held_process_has_its_timeout(url: str) -> None:
    async with knowing(url) as talking:
        await talking.start("p", *flood(64 * MIB), window=1, timeoutMs=300)
        told = await exit_of(talking, "p")
        await talking.closed("p")

    assert told["outcome"]["kind"] == "timeout"


async def test_a_held_process_that_was_killed_has_its_end_told_after_what_it_said(url: str) -> None:
    async with knowing(url) as talking:
        pid = await held(talking)
        await talking.call("process/signal", {"processId": "p", "signal": "kill"})
        await eventually(lambda: not is_running(pid))
        await hear_all(talking)
        told = await exit_of(talking, "p")

    assert (told["outcome"]["kind"], told["outcome"]["signal"]) == ("signal", "SIGKILL")


async def test_a_held_process_ends_with_its_session(served: tuple[Program, str]) -> None:
    async with client(served[1]) as talking:
        pid = await held(talking)
        result = await talking.call("session/close")

    assert result == {"survivors": []}
    assert not is_running(pid)


async def test_a_held_process_ends_with_the_server() -> None:
    with program_at() as (server, url):
        talking = await Client.open(url)
        pid = await held(talking)
        server.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.wait)
        await talking.abort()

    assert code == 0
    assert not is_running(pid)


# A client that is cut off.


async def cut_off(url: str, argv: tuple[str, ...], *, window: int, after: int) -> tuple[str, Account, int]:
    """Start a program, hear so many bytes of it, and vanish; gives session, account and pid."""
    account = Account()
    talking = await Client.open(url)
    await talking.start("p", *argv, window=window)
    pid = await pid_of(talking)
    tale = talking.tale("p")
    while account.size < after:
        await talking.until(lambda: tale.events)
        while tale.events:
            account.hear(tale.events.pop(0)[1])
        talking.post("process/ack", {"processId": "p", "seq": account.last})
    await talking.abort()
    return talking.session, account, pid


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("window", "size"), [(1, 16 * MIB), (64 * KIB, 32 * MIB), (4 * MIB, 32 * MIB)], ids=["1", "64K", "4M"]
)
async def test_a_client_that_is_cut_off_finds_every_byte(url: str, window: int, size: int) -> None:
    """What it was not told it reads, from the number that it has; the process has waited meanwhile."""
    session, account, pid = await cut_off(url, flood(size), window=window, after=size // 4)
    await stuck(pid)

    async with client(url, resume=session) as back:
        page = await read_on(back, account)

    assert account.size == size
    assert account.hashes == expected(size)
    assert (page["exitCode"], page["closed"]) == (0, True)


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_client_may_be_cut_off_again_and_again(url: str) -> None:
    """Whatever was on its way each time: what it was given and could not keep can be read again."""
    size = 8 * MIB
    session, account, pid = await cut_off(url, flood(size), window=256 * KIB, after=MIB)
    for part in range(2, 8):
        await stuck(pid)
        back = await Client.open(url, resume=session)
        await read_on(back, account, most=part * MIB)
        # This one is never heard.
        back.post("process/read", {"processId": "p", "afterSeq": account.last, "waitMs": 1000})
        await back.abort()

    async with client(url, resume=session) as last:
        await read_on(last, account)

    assert account.size == size
    assert account.hashes == expected(size)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("window", [1, 1000, MIB])
async def test_single_bytes_arrive_too(url: str, window: int) -> None:
    size = 60_000
    account = Account()
    argv = flood(size, block=1, streams=2)
    session, account, _ = await cut_off(url, argv, window=window, after=500)

    async with client(url, resume=session) as back:
        await read_on(back, account)

    assert account.size == size
    assert account.hashes == expected(size, block=1, streams=2)


async def test_output_up_to_its_end_is_there_after_the_client_was_away(served: tuple[Program, str]) -> None:
    """A process that ended meanwhile, with all that its window let through and all that its pipe held."""
    server, url = served
    before, size = commands(server.pid), 900 * KIB
    session, account, pid = await cut_off(url, flood(size), window=MIB, after=1)
    await eventually(lambda: not is_running(pid) and commands(server.pid) <= before)

    async with client(url, resume=session) as back:
        first = await back.read("p", afterSeq=0)
        account = Account()
        await read_on(back, account)
        again = await back.read("p", afterSeq=0)

    assert account.hashes == expected(size)
    assert page_bytes(first) == page_bytes(again), "the answer may be lost with its connection"


WIDE = """
import fcntl, os
os.write(1, bytes(65536))
os.read(0, 1)
for fd in (1, 2):
    fcntl.fcntl(fd, 1031, 1 << 20)
    for number in range(16):
        os.write(fd, bytes([number]) * 65536)
"""


@pytest.mark.parametrize("end", ["exit", "terminate"])
async def test_a_program_that_widens_its_pipes_loses_nothing(url: str, end: str) -> None:
    """All that they hold is read at once if it is terminated, far beyond the window."""
    async with client(url) as talking:
        source = WIDE + ("" if end == "exit" else "os.read(0, 1)")
        await talking.start("p", "python3", "-I", "-S", "-c", source, window=1, pipeStdin=True)
        pid, tale = await pid_of(talking), talking.tale("p")
        await talking.until(lambda: tale.events)
        await talking.write("p", b"x", "w")
        if end == "exit":
            await eventually(lambda: not is_running(pid))
            await hear_all(talking)
        else:
            await stuck(pid)
            await talking.terminate("p")
        page = await talking.read("p")

    blocks = b"".join(bytes([number]) * 65536 for number in range(16))
    assert tale.data("stdout") == bytes(65536) + blocks
    assert tale.data("stderr") == blocks
    if end == "terminate":
        assert "gap" not in page
        assert page_bytes(page) == tale.data()


# A process that belongs to no client.


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 64 * KIB])
async def test_one_client_goes_on_where_another_was_cut_off(url: str, window: int) -> None:
    """Nothing is lost between them, because the process has waited."""
    name, size, account = f"p-{os.urandom(8).hex()}", 8 * MIB, Account()
    talking = await Client.open(url)
    await talking.start(name, *flood(size), keep=True, window=window)
    for part in range(1, 8):
        await read_on(talking, account, most=part * MIB, name=name)
        # The answer to this one is lost with its connection.
        talking.post("process/read", {"processId": name, "afterSeq": account.last})
        await talking.abort()
        talking = await Client.open(url)
    page = await read_on(talking, account, name=name)
    await talking.close()

    assert account.size == size
    assert account.hashes == expected(size)
    assert page["exitCode"] == 0


@pytest.mark.slow
async def test_a_window_that_nobody_uses_does_not_hold_it_for_ever() -> None:
    """Its client may have gone for good; the process is everybody's."""
    async with inside(sessions=SessionLimits(detached_seconds=0.2)) as server:
        first = await Client.open(server.url)
        await first.start("p", *flood(4 * MIB), keep=True, window=1)
        pid = await pid_of(first)
        await first.abort()
        await eventually(lambda: not is_running(pid))

        async with client(server.url) as second:
            waited = await second.call("process/wait", {"processId": "p", "waitMs": 10_000})
            page = await second.read("p")

    assert waited["exitCode"] == 0
    assert page["gap"]["bytes"] + len(page_bytes(page)) == 4 * MIB


@pytest.mark.slow
async def test_a_client_that_goes_on_reading_holds_it_for_as_long_as_it_likes() -> None:
    """Also if it reads the same again and again, and acknowledges nothing."""
    limits = SessionLimits(detached_seconds=0.2)
    async with inside(sessions=limits) as server, client(server.url) as talking:
        await talking.start("p", *flood(4 * MIB), keep=True, window=1)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        while loop.time() < begin + 1.0:
            page = await talking.read("p")
            assert len(page["chunks"]) <= 1
        stat = stat_of(await pid_of(talking))
        await talking.terminate("p")

    assert stat is not None
    assert stat.state == "S"
