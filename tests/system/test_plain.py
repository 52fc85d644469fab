"""A client that knows nothing of the extensions sees nothing of them, to the last member of a message."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.fakes.client import Client, Message, client
from tests.fakes.server import Program, program_at
from tests.fakes.trees import knowing


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
async def talking(served: tuple[Program, str]) -> AsyncIterator[Client]:
    async with client(served[1]) as plain:
        yield plain


def output(seq: int, stream: str, data: bytes) -> Message:
    return {"seq": seq, "stream": stream, "chunk": base64.b64encode(data).decode()}


async def events(talking: Client) -> list[tuple[str, Message]]:
    return (await talking.closed("p")).events


@pytest.mark.parametrize("code", [0, 3])
async def test_the_life_of_a_process_is_told_as_ever(talking: Client, code: int) -> None:
    """Exactly these messages, with exactly these members."""
    answer = await talking.start("p", "sh", "-c", f"read a; echo $a; exit {code}", pipeStdin=True)
    write = await talking.call(
        "process/write", {"processId": "p", "chunk": base64.b64encode(b"hi\n").decode(), "writeId": "w"}
    )
    told = await events(talking)
    page = await talking.read("p")
    last = await talking.read("p", afterSeq=3)

    assert answer == {"processId": "p", "sandboxType": "none"}
    assert write == {"status": "accepted"}
    assert told == [
        ("output", {"processId": "p", **output(1, "stdout", b"hi\n")}),
        ("exited", {"processId": "p", "seq": 2, "exitCode": code, "sandboxDenied": False}),
        ("closed", {"processId": "p", "seq": 3}),
    ]
    ended = {"exited": True, "exitCode": code, "closed": True, "failure": None, "sandboxDenied": False}
    assert page == {"chunks": [output(1, "stdout", b"hi\n")], "nextSeq": 4, **ended}
    assert last == {"chunks": [], "nextSeq": 4, **ended}


async def test_a_running_process_is_read_as_ever(talking: Client) -> None:
    """Nothing is said of an end that has not come."""
    await talking.start("p", "cat", tty=True)

    page = await talking.read("p")
    signalled = await talking.call("process/signal", {"processId": "p", "signal": "interrupt"})

    assert page == {
        "chunks": [],
        "nextSeq": 1,
        "exited": False,
        "exitCode": None,
        "closed": False,
        "failure": None,
        "sandboxDenied": False,
    }
    assert signalled == {}


async def test_an_unusual_end_says_more_and_nothing_else(talking: Client) -> None:
    """A code of 137 may mean many things; what was used is still not told."""
    await talking.start("p", "sh", "-c", "kill -9 $$")
    told = await events(talking)
    page = await talking.read("p")

    outcome = {"kind": "signal", "exitCode": None, "signal": "SIGKILL", "by": None, "detail": None}
    plain = {"exitCode": 137, "sandboxDenied": False, "outcome": outcome}
    assert told == [
        ("exited", {"processId": "p", "seq": 1, **plain}),
        ("closed", {"processId": "p", "seq": 2}),
    ]
    assert page == {"chunks": [], "nextSeq": 3, "exited": True, "closed": True, "failure": None, **plain}


async def test_a_client_that_knows_is_told_everything(served: tuple[Program, str]) -> None:
    """The same process, to another client: the tests above can fail."""
    async with knowing(served[1]) as talking:
        await talking.start("p", "sh", "-c", "exit 3")
        told = await events(talking)
        page = await talking.read("p")

    outcome = {"kind": "exit", "exitCode": 3, "signal": None, "by": None, "detail": None}
    (_, end), _ = told
    assert end.pop("usage").keys() == {"userMs", "systemMs", "maxRssBytes"}
    assert end == {"processId": "p", "seq": 1, "exitCode": 3, "sandboxDenied": False, "outcome": outcome}
    assert page["outcome"] == outcome
    assert page["usage"].keys() == {"userMs", "systemMs", "maxRssBytes"}


async def test_a_session_is_told_as_its_last_client_wants(served: tuple[Program, str]) -> None:
    """What one client knows, the next may not."""
    async with knowing(served[1]) as first:
        await first.start("p", "sh", "-c", "read _; exit 3", pipeStdin=True)
        await first.abort()

    async with client(served[1], resume=first.session) as second:
        await second.write("p", b"\n", "w")
        told = await events(second)

    assert told == [
        ("exited", {"processId": "p", "seq": 1, "exitCode": 3, "sandboxDenied": False}),
        ("closed", {"processId": "p", "seq": 2}),
    ]


async def test_the_extensions_are_announced_and_otherwise_out_of_sight(served: tuple[Program, str]) -> None:
    """One member of the capabilities, and nothing else."""
    talking = await Client.connect(served[1])
    result = await talking.initialize()
    await talking.close()

    capabilities = result["environmentInfo"]["capabilities"]
    announced = capabilities.pop("holdfast")
    assert result.keys() == {"sessionId", "environmentInfo"}
    true = {
        "capabilityDiscoverySandbox",
        "capabilityDiscoveryV2",
        "environmentConfigRead",
        "fsWatchMissing",
        "httpHeaderEnvVars",
        "sandboxedFileStreaming",
        "fileWriteStreaming",
        "shellSnapshotV2",
    }
    assert {name for name, value in capabilities.items() if value is not False} == true
    assert announced["version"] == 1
    assert announced["treeExact"] is True
    assert announced["features"] == sorted(announced["features"])
