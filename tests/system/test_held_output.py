"""Nobody waits for those who hold an output open: the exit is told at once, and who they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.fakes.client import Client, Message, client, sha256, start_params
from tests.fakes.process import children_of, eventually, status
from tests.fakes.server import Program, is_running, program_at
from tests.fakes.trees import exit_of, knowing

BOTH = pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])

HOLD = "sleep 1000 & echo $!; setsid -f sleep 1000 >&- 2>&- <&-; exit 3"
"""Leaves one behind that holds the output, and one that does not."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
async def talking(served: tuple[Program, str]) -> AsyncIterator[Client]:
    async with knowing(served[1]) as client:
        yield client


def in_a_session(script: str) -> str:
    """A terminal that its first process leaves hangs up on all who did not turn away."""
    return f"trap '' HUP; {script}"


async def hold(talking: Client, script: str = HOLD, *, tty: bool = False, **options: Any) -> Message:
    """Run a program that leaves somebody behind; gives what was told of its exit."""
    await talking.start("p", "sh", "-c", in_a_session(script), tty=tty, **options)
    return await exit_of(talking, "p")


def pids(talking: Client) -> list[int]:
    """The numbers that the program said."""
    return [int(word) for word in talking.tale("p").data().split()]


@BOTH
async def test_an_exit_is_told_while_somebody_holds_the_output(
    talking: Client,
    tty: bool,  # noqa: FBT001
) -> None:
    """`server &` must not make its caller wait for as long as the server runs."""
    end = await hold(talking, tty=tty)

    (holder,) = pids(talking)
    assert end["exitCode"] == 3
    assert end["outcome"]["kind"] == "exit"
    assert end["heldBy"] == [holder]
    assert not talking.tale("p").is_closed
    assert is_running(holder)


@BOTH
async def test_exactly_those_who_hold_the_output_are_named(
    talking: Client,
    tty: bool,  # noqa: FBT001
) -> None:
    """In whatever session they are, on either stream; nobody else."""
    script = (
        "sleep 1000 & echo $!; sleep 1000 2>/dev/null & echo $!; sleep 1000 >/dev/null & echo $!;"
        "setsid -f sleep 1000 >/dev/null 2>&1 </dev/null; (setsid sleep 1000 & echo $!); exit 0"
    )

    end = await hold(talking, script, tty=tty)
    waited = await talking.call("process/wait", {"processId": "p"})

    assert sorted(end["heldBy"]) == sorted(pids(talking))
    assert waited["heldBy"] == end["heldBy"]
    assert not waited["closed"]


@BOTH
async def test_nobody_is_named_if_nobody_holds_the_output(
    talking: Client,
    tty: bool,  # noqa: FBT001
) -> None:
    """A daemon that has let go of everything is not in anybody's way."""
    end = await hold(talking, "setsid -f sleep 1000 >/dev/null 2>&1 </dev/null; exit 0", tty=tty)
    await talking.closed("p")

    assert "heldBy" not in end


async def test_a_holder_among_many_is_named_at_the_latest_to_whoever_asks(talking: Client) -> None:
    """The exit waits for no look at a large tree."""
    others = "for i in $(seq 100); do sleep 1000 >/dev/null 2>&1 & done"
    script = f"{others}; sleep 1000 9>&1 >/dev/null 2>&1 & echo $!; read _; exit 3"
    await talking.start("p", "sh", "-c", script, pipeStdin=True)
    await talking.until(lambda: talking.tale("p").data().endswith(b"\n"))
    (holder,) = pids(talking)
    shell = int(status(holder)["PPid"])
    # Their files are set up before their program runs.
    await eventually(lambda: [status(pid).get("Name") for pid in children_of(shell)] == ["sleep"] * 101)

    await talking.call("process/closeStdin", {"processId": "p"})
    end = await exit_of(talking, "p")
    while (waited := await talking.call("process/wait", {"processId": "p"}))["heldBy"] != [holder]:
        assert waited["exited"]

    assert end["exitCode"] == 3
    assert set(end.get("heldBy", [])) <= {holder}
    assert (await talking.call("process/read", {"processId": "p"}))["heldBy"] == [holder]


@BOTH
async def test_a_client_that_knows_nothing_is_told_of_the_holders_too(
    served: tuple[Program, str],
    tty: bool,  # noqa: FBT001
) -> None:
    """It says more than the protocol can."""
    async with client(served[1]) as talking:
        end = await hold(talking, tty=tty)
        (holder,) = pids(talking)

    assert end == {
        "processId": "p",
        "seq": end["seq"],
        "exitCode": 3,
        "sandboxDenied": False,
        "heldBy": [holder],
    }


@BOTH
async def test_what_a_holder_says_after_the_exit_is_told(
    talking: Client,
    tty: bool,  # noqa: FBT001
) -> None:
    """The output belongs to the process, whoever writes it."""
    expected = b"".join(b"%d\n" % number for number in range(1, 5001))
    await hold(talking, "(sleep 0.1; seq 5000) & exit 0", tty=tty)

    tale = await talking.closed("p")

    assert sha256(tale.data().replace(b"\r", b"")) == sha256(expected)
    assert tale.kinds.index("exited") < tale.kinds.index("closed")
    assert tale.kinds[-2] == "output"
    assert tale.seqs == list(range(1, len(tale.events) + 1))


# Drain.


@BOTH
@pytest.mark.parametrize("drain", [0, 100])
async def test_a_drain_bounds_the_wait_and_spares_the_holder(
    talking: Client,
    tty: bool,  # noqa: FBT001
    drain: int,
) -> None:
    """The client gets its end; the daemon, which may be wanted, goes on."""
    end = await hold(talking, tty=tty, drainMs=drain)
    tale = await talking.closed("p")

    (holder,) = pids(talking)
    answer = await talking.call("process/list")
    alive = is_running(holder)
    ended = await talking.call("process/terminate", {"processId": "p", "graceMs": 0})

    assert end["heldBy"] == [holder]
    assert tale.kinds[-2:] == ["exited", "closed"]
    assert [entry["state"] for entry in answer["processes"]] == ["closed"]
    assert alive
    assert ended == {"running": False, "survivors": [], "treeExact": True}
    assert not is_running(holder)


@BOTH
async def test_a_drain_loses_nothing_that_was_written_before(
    talking: Client,
    tty: bool,  # noqa: FBT001
) -> None:
    """The child wrote it; that somebody else has the pipe open does not change it."""
    expected = b"".join(b"%d\n" % number for number in range(1, 9001))

    await hold(talking, "sleep 1000 & seq 9000; exit 0", tty=tty, drainMs=0)
    tale = await talking.closed("p")

    assert sha256(tale.data().replace(b"\r", b"")) == sha256(expected)


@pytest.mark.slow
async def test_what_a_holder_says_within_the_drain_is_told(talking: Client) -> None:
    """The drain is there for those who are nearly done."""
    await hold(talking, "(seq 5000; exec sleep 1000) & exit 0", drainMs=1000)
    tale = await talking.closed("p")

    assert sha256(tale.data()) == sha256(b"".join(b"%d\n" % number for number in range(1, 5001)))


async def test_a_holder_that_never_stops_talking_does_not_prolong_the_drain(talking: Client) -> None:
    """Never hang: a bound is a bound."""
    end = await hold(talking, "yes & echo $!; exit 0", drainMs=100)
    tale = await talking.closed("p")

    assert tale.is_closed
    assert len(end["heldBy"]) == 1


async def test_a_client_that_does_not_listen_loses_nothing_by_the_drain(
    served: tuple[Program, str], talking: Client
) -> None:
    """What was written before the end of the drain is told, however late the client listens."""
    script = "head -c 8000000 /dev/zero; sleep 1000 & exit 0"
    async with knowing(served[1]) as other:
        talking.stop_listening()
        answer = talking.post("process/start", start_params("p", "sh", "-c", script, drainMs=50))
        await other.start("clock", "sleep", "0.3")
        await other.closed("clock")
        talking.listen_again()
        await talking.result(answer)
        tale = await talking.closed("p")

    assert len(tale.data()) == 8_000_000
