"""What a principal may use at once, over all its connections, against the real program."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Client, Message, Refusal, client, page_bytes
from tests.fakes.frames import Wire
from tests.fakes.server import program_at
from tests.fakes.tokens import bearer, signing_options, token

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all tests of this module; each has a principal of its own."""
    with program_at(*signing_options(tmp_path_factory.mktemp("auth"))) as (_, url):
        yield url


@pytest.fixture
def name() -> str:
    """Of a principal that no other test has."""
    return f"p-{os.urandom(8).hex()}"


async def too_much(talking: Client, process: str, *argv: str) -> Message:
    with pytest.raises(Refusal) as caught:
        await talking.start(process, *argv)
    data: Message = caught.value.data
    return data


async def test_processes_are_counted_over_all_connections_until_they_end(url: str, name: str) -> None:
    shown = token(name, holdfast={"processes": 2})
    async with (
        client(url, token=shown) as first,
        client(url, token=shown) as second,
        client(url, token=token(f"other-{name}", holdfast={"processes": 1})) as other,
    ):
        await first.start("a", "sleep", "1000")
        await second.start("b", "sleep", "1000")
        reached = [await too_much(each, "c", "true") for each in (first, second)]
        await other.start("c", "true")
        await other.closed("c")
        await first.terminate("a")
        await first.closed("a")
        await second.start("c", "true")
        await second.closed("c")

    limit = "processes of one principal"
    expected = {"kind": "limitReached", "limit": limit, "value": 2, "name": "token.processes"}
    assert reached == [expected, expected]


async def test_what_a_process_leaves_behind_counts_too(url: str, name: str, tmp_path: Path) -> None:
    async with client(url, token=token(name, holdfast={"processes": 1})) as talking:
        await talking.start("p", "sh", "-c", f"sleep 1000 >/dev/null 2>&1 & echo $! >{tmp_path}/pid")
        await talking.closed("p")
        assert (await too_much(talking, "q", "true"))["name"] == "token.processes"
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        started = []

        async def free() -> bool:
            try:
                started.append(await talking.start("q", "true"))
            except Refusal:
                return False
            return True

        while not await free():
            pass
        await talking.closed("q")

    assert started == [{"processId": "q", "sandboxType": "none"}]


async def test_processes_of_sessions_without_a_client_count_too(url: str, name: str) -> None:
    shown = token(name, holdfast={"processes": 1})
    gone = await Client.open(url, token=shown)
    await gone.start("p", "sleep", "1000")
    await gone.abort()

    async with client(url, token=shown) as talking:
        assert (await too_much(talking, "q", "true"))["value"] == 1
    async with client(url, token=shown, resume=gone.session) as back:
        await back.terminate("p")
        await back.closed("p")
        await back.start("q", "true")
        await back.closed("q")


async def test_output_beyond_the_quota_is_dropped_and_told_and_others_keep_theirs(
    url: str, name: str
) -> None:
    size = 400_000
    argv = ("head", "-c", str(size), "/dev/zero")
    async with (
        client(url, token=token(name, holdfast={"retainedBytes": 100_000})) as small,
        client(url, token=token(f"other-{name}")) as large,
    ):
        for each in (large, small):
            await each.start("p", *argv)
            tale = await each.closed("p")
            assert len(tale.data()) == size
        dropped, whole = await small.read("p"), await large.read("p")

    kept = len(page_bytes(dropped))
    assert 0 < kept <= 100_000
    assert dropped["gap"]["bytes"] == size - kept
    assert (len(page_bytes(whole)), "gap" in whole) == (size, False)


async def test_connections_are_counted_per_principal(url: str, name: str) -> None:
    shown = token(name, holdfast={"connections": 1})
    async with client(url, token=shown):
        wire = await Wire.dial(url)
        wire.writer.write(
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            + bearer(shown).encode()
            + b"\r\n\r\n"
        )
        answer = await wire.reader.read()
        await wire.close()
        async with client(url, token=token(f"other-{name}", holdfast={"connections": 1})):
            pass
    async with client(url, token=shown):  # The place is free again.
        pass

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b"limit reached: connections of one principal (1)")


async def test_sessions_are_counted_with_those_that_wait_for_their_client(url: str, name: str) -> None:
    shown = token(name, holdfast={"sessions": 1})
    gone = await Client.open(url, token=shown)
    await gone.abort()

    with pytest.raises(Refusal) as caught:
        await Client.open(url, token=shown)
    async with client(url, token=shown, resume=gone.session) as back:
        await back.call("session/close")
        await back.initialize()
        async with client(url, token=token(f"other-{name}", holdfast={"sessions": 1})):
            pass

    limit = "sessions of one principal"
    assert caught.value.data == {"kind": "limitReached", "limit": limit, "value": 1, "name": "token.sessions"}


async def test_nothing_is_left_of_a_principal_that_has_gone(url: str, name: str) -> None:
    """Its quota is whole again, also after connections that said nothing."""
    shown = token(name, holdfast={"connections": 2, "sessions": 1, "processes": 1})
    for _ in range(20):
        async with client(url, token=shown) as talking:
            await talking.start("p", "true")
            await talking.closed("p")
            await talking.call("session/close")
    wires = [await Wire.open(url, headers=[bearer(shown)]) for _ in range(2)]
    for wire in wires:
        wire.abort()
        await wire.close()

    async def open_again() -> bool:
        try:
            wire = await Wire.open(url, headers=[bearer(shown)])
        except AssertionError:
            return False
        await wire.close()
        return True

    while not await open_again():
        pass
