"""A start that can be repeated: the same request, the same process; and output kept as asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Client, Message, Refusal, page_bytes, sha256, start_params
from tests.fakes.server import Program, held_program, program_at
from tests.fakes.trees import exit_of, knowing

MIB = 1 << 20


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


@pytest.fixture
async def talking(url: str) -> AsyncIterator[Client]:
    async with knowing(url) as client:
        yield client


def repeatable(*argv: str, **options: object) -> Message:
    return start_params("p", *argv, idempotent=True, **options)


def answer(pid: int, *, existing: bool) -> Message:
    return {"processId": "p", "sandboxType": "none", "existing": existing, "pid": pid}


async def pids(talking: Client) -> list[int]:
    return [entry["pid"] for entry in (await talking.call("process/list"))["processes"]]


async def test_the_same_request_finds_the_process_while_it_runs_and_after(talking: Client) -> None:
    """Whoever did not hear the answer asks again."""
    params = repeatable("sh", "-c", "read _; exit 5", pipeStdin=True)
    first = await talking.call("process/start", params)
    (pid,) = await pids(talking)

    second = await talking.call("process/start", params)
    shuffled = await talking.call("process/start", dict(reversed(params.items())))
    same = await pids(talking)
    await talking.write("p", b"\n", "w")
    await talking.closed("p")
    third = await talking.call("process/start", params)
    page = await talking.read("p")

    assert first == answer(pid, existing=False)
    assert second == shuffled == third == answer(pid, existing=True)
    assert same == [pid]
    assert (page["exitCode"], page["closed"]) == (5, True)
    assert talking.tale("p").exit_codes == [5]


@pytest.mark.parametrize(
    "other",
    [
        repeatable("sleep", "1001"),
        repeatable("sleep", "1000", tty=True),
        repeatable("sleep", "1000", cwd="file:///tmp"),
        repeatable("sleep", "1000", env={"A": "b"}),
        repeatable("sleep", "1000", timeoutMs=600_000),
        start_params("p", "sleep", "1000"),
    ],
    ids=["argv", "tty", "cwd", "env", "timeout", "not idempotent"],
)
async def test_another_request_is_refused(talking: Client, other: Message) -> None:
    """The name is taken, by something else than what is wanted."""
    await talking.call("process/start", repeatable("sleep", "1000"))

    with pytest.raises(Refusal) as caught:
        await talking.call("process/start", other)

    assert caught.value.code == -32600
    assert caught.value.text == "process p already exists"
    assert len(await pids(talking)) == 1


async def test_a_process_that_was_not_started_so_is_not_found_so(talking: Client) -> None:
    """Nobody promised that the requests were the same."""
    await talking.start("p", "sleep", "1000")

    with pytest.raises(Refusal) as caught:
        await talking.call("process/start", repeatable("sleep", "1000"))

    assert caught.value.text == "process p already exists"


async def test_two_at_once_start_one(talking: Client) -> None:
    """Also while the first is on its way."""
    params = repeatable("sh", "-c", "echo once; exec sleep 1000")

    posted = talking.post_together(*[("process/start", params)] * 5)
    answers = [await talking.result(each) for each in posted]

    (pid,) = await pids(talking)
    assert answers == [answer(pid, existing=False)] + [answer(pid, existing=True)] * 4


async def test_a_start_that_takes_long_is_waited_for(talking: Client, tmp_path: Path) -> None:
    """The second answer must not say that something runs which may never run."""
    with held_program("/bin/sleep", tmp_path / "held") as held:
        params = repeatable(held.path, "1000")
        posted = talking.post_together(("process/start", params), ("process/start", params))
        await talking.call("environment/status")
        early = [each.done() for each in posted]
        other = talking.post("process/start", repeatable(held.path, "1001"))
        held.release()
        answers = [await talking.result(each) for each in posted]
        refusal = (await other)["error"]["message"]
        (pid,) = await pids(talking)

    assert early == [False, False]
    assert refusal == "process p already exists"
    assert answers == [answer(pid, existing=False), answer(pid, existing=True)]


async def test_a_start_that_fails_fails_for_everybody_and_can_be_tried_again(talking: Client) -> None:
    """There is nothing to find."""
    params = repeatable("/nowhere/nothing")

    posted = talking.post_together(*[("process/start", params)] * 3)
    errors = [(await each)["error"] for each in posted]
    again = (await talking.post("process/start", params))["error"]
    works = await talking.call("process/start", repeatable("true"))
    (pid,) = await pids(talking)

    assert errors == [again] * 3
    assert works == answer(pid, existing=False)


@pytest.mark.slow
@pytest.mark.parametrize("run", range(10))
async def test_a_lost_connection_and_a_repeated_start_make_one_process(url: str, run: int) -> None:
    """Wherever in the middle of it the connection was lost."""
    params = repeatable("sh", "-c", "echo once; exec sleep 1000")
    async with knowing(url) as first:
        first.post("process/start", params)
        if run % 2:
            await first.call("environment/status")
        await first.wire.writer.drain()
        await first.abort()

    async with knowing(url, resume=first.session) as second:
        result = await second.call("process/start", params)
        found = await pids(second)
        page = await second.read("p", waitMs=10_000)
        await second.call("session/close")

    (pid,) = found
    assert result in (answer(pid, existing=True), answer(pid, existing=False))
    assert page_bytes(page) == b"once\n"


async def test_a_terminated_process_is_found_as_it_is(talking: Client) -> None:
    """Repeating the request does not bring it back."""
    params = repeatable("sleep", "1000")
    await talking.call("process/start", params)
    await talking.terminate("p")
    await exit_of(talking, "p")
    (pid,) = await pids(talking)

    assert await talking.call("process/start", params) == answer(pid, existing=True)
    assert (await talking.call("process/wait", {"processId": "p"}))["outcome"]["kind"] == "terminated"


# What is kept.


def blocks(count: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(count))


@pytest.mark.slow
@pytest.mark.parametrize("retain", [1, 4096, 200_000, 4 * MIB])
async def test_as_much_output_is_kept_as_was_asked_for(talking: Client, retain: int) -> None:
    """A client that only wants the end of a log says so; so does one that wants to read it twice."""
    said = blocks(3 * MIB // 8)
    await talking.start("p", "seq", "-f", "%07.0f", "0", str(3 * MIB // 8 - 1), retainBytes=retain)
    tale = await talking.closed("p")

    page = await talking.read("p")
    kept = page_bytes(page)
    (listed,) = (await talking.call("process/list"))["processes"]

    assert sha256(tale.data()) == sha256(said), "what is told does not depend on what is kept"
    assert sha256(kept) == sha256(said[len(said) - len(kept) :])
    assert listed["retainedBytes"] == len(kept)
    largest = max(len(chunk["chunk"]) for chunk in page["chunks"])
    assert len(kept) <= max(retain, largest)
    assert len(kept) == len(said) or len(kept) > retain - 65_536
    assert ("gap" in page) is (len(kept) < len(said))
