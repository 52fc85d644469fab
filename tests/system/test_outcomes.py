"""How a process ended, and why: each kind of outcome by a real cause."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.fakes.client import Client, Message, sha256
from tests.fakes.server import Program, program_at
from tests.fakes.trees import exit_of, knowing

IDLE_MS = 400
"""How long a process may be silent."""

PACE = "i=0; while [ $i -lt 50 ]; do echo .; sleep 0.02; i=$((i+1)); done"
"""A program that talks all the time, and for longer than ``IDLE_MS``."""

TERM_TALE = "trap 'seq 20000; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
"""A program that says much when it is asked to end, and then does."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
async def talking(served: tuple[Program, str]) -> AsyncIterator[Client]:
    async with knowing(served[1]) as client:
        yield client


def outcome(kind: str, **members: Any) -> Message:
    return {"kind": kind, "exitCode": None, "signal": None, "by": None, "detail": None, **members}


async def told(talking: Client, *argv: str, **options: Any) -> Message:
    """Run a program to its end; gives what is told of it."""
    await talking.start("p", *argv, **options)
    return await exit_of(talking, "p")


# By itself.


@pytest.mark.parametrize("code", [0, 1, 3, 255])
@pytest.mark.parametrize("tty", [False, True])
async def test_a_program_that_ends_by_itself_has_its_code(
    talking: Client,
    code: int,
    tty: bool,  # noqa: FBT001
) -> None:
    """The usual case."""
    end = await told(talking, "sh", "-c", f"exit {code}", tty=tty)

    assert end["exitCode"] == code
    assert end["outcome"] == outcome("exit", exitCode=code)


@pytest.mark.parametrize(
    ("number", "name", "code"),
    [("SEGV", "SIGSEGV", 139), ("KILL", "SIGKILL", 137), ("TERM", "SIGTERM", 143), ("40", "SIGRTMIN+6", 168)],
)
async def test_a_program_that_dies_of_a_signal_has_its_name(
    talking: Client, number: str, name: str, code: int
) -> None:
    """A crash is not an exit with a large code."""
    end = await told(talking, "sh", "-c", f"kill -{number} $$")

    assert end["exitCode"] == code
    assert end["outcome"] == outcome("signal", signal=name)


async def test_an_exit_with_the_code_of_a_signal_is_an_exit(talking: Client) -> None:
    """Shells pass the death of a child on as a code; only the kernel knows the difference."""
    end = await told(talking, "sh", "-c", "exit 137")

    assert end["exitCode"] == 137
    assert end["outcome"] == outcome("exit", exitCode=137)


async def test_everybody_who_asks_is_told_the_same(talking: Client) -> None:
    """The notification, the page, the list and the wait must not contradict each other."""
    end = await told(talking, "sh", "-c", "kill -USR1 $$")
    await talking.closed("p")

    page = await talking.read("p")
    waited = await talking.call("process/wait", {"processId": "p"})
    (listed,) = (await talking.call("process/list"))["processes"]

    assert page["outcome"] == waited["outcome"] == listed["outcome"] == end["outcome"]
    assert waited["usage"] == end["usage"]
    assert end["outcome"] == outcome("signal", signal="SIGUSR1")


# By a client.


async def test_a_terminated_program_was_ended_by_a_client(talking: Client) -> None:
    """Its death of SIGKILL is not a crash."""
    await talking.start("p", "sleep", "1000")
    await talking.terminate("p")
    end = await exit_of(talking, "p")

    assert end["exitCode"] == 137
    assert end["outcome"] == outcome("terminated", signal="SIGKILL", by="client")


async def test_a_client_that_ends_a_program_by_signal_gets_a_death_by_signal(talking: Client) -> None:
    """A signal is what the client sent; what the program makes of it is the program's affair."""
    await talking.start("p", "sleep", "1000")
    await talking.call("process/signal", {"processId": "p", "signal": "hangup"})
    end = await exit_of(talking, "p")

    assert end["outcome"] == outcome("signal", signal="SIGHUP")


# By time.


async def test_a_program_that_takes_too_long_has_timed_out(talking: Client) -> None:
    """Whoever set the timeout wants to know that it was the cause."""
    end = await told(talking, "sleep", "1000", timeoutMs=30)

    assert end["exitCode"] == 137
    assert end["outcome"] == outcome("timeout", signal="SIGKILL", by="limit", detail="more than 0.03 seconds")


async def test_a_program_that_ends_in_time_has_not_timed_out(talking: Client) -> None:
    """Nor is it told anything later."""
    end = await told(talking, "sh", "-c", "exit 4", timeoutMs=600_000)

    assert end["outcome"] == outcome("exit", exitCode=4)


@pytest.mark.slow
async def test_a_timeout_with_grace_keeps_the_last_words_and_the_code(talking: Client) -> None:
    """A test run that is cut off should still write its report."""
    expected = sha256(b"ready\n" + b"".join(b"%d\n" % number for number in range(1, 20001)))

    end = await told(talking, "sh", "-c", TERM_TALE, timeoutMs=300, graceMs=60_000)
    tale = await talking.closed("p")

    assert end["exitCode"] == 5
    assert end["outcome"] == outcome("timeout", exitCode=5, by="limit", detail="more than 0.3 seconds")
    assert sha256(tale.data("stdout")) == expected


@pytest.mark.slow
async def test_a_timeout_with_grace_kills_the_deaf(talking: Client) -> None:
    """Grace has an end."""
    end = await told(
        talking, "sh", "-c", "trap '' TERM; while :; do sleep 1; done", timeoutMs=30, graceMs=100
    )

    assert end["outcome"] == outcome("timeout", signal="SIGKILL", by="limit", detail="more than 0.03 seconds")


# By silence.

SILENT = outcome(
    "idleTimeout", signal="SIGKILL", by="limit", detail="more than 0.4 seconds without output or input"
)


@pytest.mark.slow
async def test_a_silent_program_is_idle(talking: Client) -> None:
    """A prompt that nobody answers waits for ever."""
    end = await told(talking, "cat", pipeStdin=True, idleTimeoutMs=IDLE_MS)

    assert end["outcome"] == SILENT


@pytest.mark.slow
async def test_a_program_that_talks_is_not_idle(talking: Client) -> None:
    """However long it takes as a whole."""
    end = await told(talking, "sh", "-c", f"{PACE}; exec sleep 1000", idleTimeoutMs=IDLE_MS)
    tale = await talking.closed("p")

    assert tale.data() == b".\n" * 50, "it was ended in the middle"
    assert end["outcome"] == SILENT


@pytest.mark.slow
async def test_a_program_that_is_talked_to_is_not_idle(talking: Client) -> None:
    """It may read a large upload without a word."""
    heard = talking.tale("pacer").events
    await talking.start("p", "sh", "-c", "cat >/dev/null", pipeStdin=True, idleTimeoutMs=IDLE_MS)
    await talking.start("pacer", "sh", "-c", PACE)

    statuses = set()
    while not talking.tale("pacer").is_closed:
        before = len(heard)
        await talking.until(lambda before=before: len(heard) > before)  # type: ignore[misc]
        statuses.add(await talking.write("p", b"x", f"w{before}"))
    ran_to_the_end = not talking.tale("p").exit_codes
    end = await exit_of(talking, "p")

    assert statuses == {"accepted"}
    assert ran_to_the_end
    assert end["outcome"] == SILENT


@pytest.mark.slow
async def test_a_program_whose_client_does_not_listen_is_not_idle(
    served: tuple[Program, str], talking: Client
) -> None:
    """It talks as much as it may; that nobody takes it is not its fault."""
    async with knowing(served[1]) as other:
        await talking.start("p", "cat", "/dev/zero", idleTimeoutMs=IDLE_MS)
        await talking.until(lambda: talking.tale("p").events)
        talking.stop_listening()
        await other.start("pacer", "sh", "-c", PACE)
        await other.closed("pacer")

        answer = talking.post("process/terminate", {"processId": "p"})
        talking.listen_again()
        result = await talking.result(answer)
        end = await exit_of(talking, "p")

    assert result["running"], "it was ended before"
    assert end["outcome"] == outcome("terminated", signal="SIGKILL", by="client")


# By what it said.


async def test_a_program_that_says_too_much_is_over_its_limit(talking: Client) -> None:
    """A loop that prints must not fill the disk of whoever keeps its output."""
    end = await told(talking, "cat", "/dev/zero", outputBytesLimit=100_000)
    tale = await talking.closed("p")

    assert end["exitCode"] == 137
    assert end["outcome"] == outcome(
        "outputLimit", signal="SIGKILL", by="limit", detail="more than 100000 bytes of output"
    )
    assert len(tale.data()) > 100_000


async def test_a_program_that_says_exactly_what_it_may_is_within_its_limit(talking: Client) -> None:
    """More than the limit is over it; the limit is not."""
    end = await told(
        talking, "sh", "-c", "head -c 60000 /dev/zero; head -c 40000 /dev/zero >&2", outputBytesLimit=100_000
    )
    tale = await talking.closed("p")

    assert end["outcome"] == outcome("exit", exitCode=0)
    assert len(tale.data()) == 100_000


async def test_both_streams_count(talking: Client) -> None:
    """The bytes are kept together."""
    end = await told(
        talking,
        "sh",
        "-c",
        "head -c 60000 /dev/zero; head -c 40001 /dev/zero >&2; sleep 1000",
        outputBytesLimit=100_000,
    )

    assert end["outcome"]["kind"] == "outputLimit"


async def test_a_program_that_says_too_much_may_go_on_unheard(talking: Client) -> None:
    """Whoever looks at the begin of a long output alone need not end its writer."""
    end = await told(
        talking,
        *("sh", "-c", "head -c 1000000 /dev/zero; head -c 500000 /dev/zero >&2; exit 3"),
        outputBytesLimit=100_000,
        truncateOutput=True,
    )
    tale = await talking.closed("p")

    assert end["outcome"] == outcome("exit", exitCode=3)
    assert 100_000 <= len(tale.data()) <= 100_000 + 65_536
    assert end["droppedBytes"] == 1_500_000 - len(tale.data())
    waited = await talking.call("process/wait", {"processId": "p"})
    assert waited["droppedBytes"] == (await talking.read("p"))["droppedBytes"] == end["droppedBytes"]


# What it used.


@pytest.mark.slow
async def test_the_processor_time_of_a_program_and_of_whom_it_waited_for_is_told(talking: Client) -> None:
    """Bills and quotas are made of it."""
    script = (
        "import os, time\nwhile time.process_time() < 0.2: pass\nprint(int(time.process_time() * 1000))\n"
    )
    end = await told(talking, "sh", "-c", 'python3 -c "$0"; python3 -c "$0"; exit 0', script)
    tale = await talking.closed("p")

    own = sum(int(line) for line in tale.data().split())
    used = end["usage"]["userMs"] + end["usage"]["systemMs"]
    assert own >= 400
    assert own - 20 <= used <= own + 1000, "the start of two interpreters is not worth a second"


@pytest.mark.slow
async def test_the_peak_of_memory_is_told(talking: Client) -> None:
    """Of the largest, also if somebody else was it."""
    script = "b = bytearray(96 << 20); b[::4096] = b'x' * len(b[::4096])"
    small = await told(talking, "true")
    await talking.start("large", "sh", "-c", 'python3 -c "$0"; exit 0', script)
    large = await exit_of(talking, "large")

    assert 96 << 20 <= large["usage"]["maxRssBytes"] < 192 << 20
    assert 0 < small["usage"]["maxRssBytes"] < 32 << 20


async def test_a_lost_program_has_no_usage_and_no_code(talking: Client) -> None:
    """Nobody knows; so nothing is said."""
    await talking.start("p", "sh", "-c", "read _; kill -9 $PPID; sleep 1000", pipeStdin=True)
    await talking.write("p", b"\n", "w")
    end = await exit_of(talking, "p")
    await talking.closed("p")
    listing = await talking.call("process/list")

    assert end["exitCode"] == -1
    assert end["outcome"] == outcome("lost", detail="its shim was killed")
    assert "usage" not in end
    assert [entry["state"] for entry in listing["processes"]] == ["closed"]
