"""An end with time to put one's affairs in order: the whole tree is asked, and then not any more."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.fakes.client import Client, Message, sha256
from tests.fakes.server import Program, eventually, is_running, program_at
from tests.fakes.trees import exit_of, knowing

LONG = 600_000
"""Milliseconds of grace that nobody waits for."""

FAMILY = """
trap 'echo first ends; wait; exit 6' TERM
(trap 'echo second ends; exit 0' TERM; echo ready; while :; do sleep 0.01; done) &
setsid sh -c "trap 'echo third ends; exit 0' TERM; echo ready; while :; do sleep 0.01; done" &
echo ready
wait
"""
"""Three who answer when they are asked to end; one of them is in a session of its own."""

DEAF = "trap '' TERM; echo $$; while :; do sleep 0.01; done"


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
async def talking(served: tuple[Program, str]) -> AsyncIterator[Client]:
    async with knowing(served[1]) as client:
        yield client


async def start(talking: Client, script: str, *, lines: int = 1, tty: bool = False) -> list[bytes]:
    """Start a shell, and wait until it has said so many lines; gives them."""
    tale = talking.tale("p")
    await talking.start("p", "sh", "-c", script, tty=tty)
    await talking.until(lambda: tale.data().count(b"\n") >= lines)
    return tale.data().split()


async def terminate(talking: Client, grace: int | None = None) -> Message:
    params: Message = {"processId": "p"} if grace is None else {"processId": "p", "graceMs": grace}
    return await talking.call("process/terminate", params)


@pytest.mark.slow
@pytest.mark.parametrize("tty", [False, True])
async def test_the_whole_tree_is_asked_and_its_last_words_are_kept(
    talking: Client,
    tty: bool,  # noqa: FBT001
) -> None:
    """A build that is stopped says what it has done so far."""
    await start(talking, FAMILY, lines=3, tty=tty)

    answer = await terminate(talking, LONG)
    end = await exit_of(talking, "p")
    tale = await talking.closed("p")

    words = set(tale.data().replace(b"\r", b"").split(b"\n"))
    assert answer == {"running": True, "survivors": [], "treeExact": True}
    assert {b"first ends", b"second ends", b"third ends"} <= words
    assert end["exitCode"] == 6
    assert end["outcome"] == {
        "kind": "terminated",
        "exitCode": 6,
        "signal": None,
        "by": "client",
        "detail": None,
    }


@pytest.mark.slow
async def test_nothing_is_lost_of_what_is_written_in_answer(talking: Client) -> None:
    """More than a pipe holds, and more than is kept: the client is told everything."""
    source = "import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes(4 << 20))"
    await start(
        talking, f"trap 'python3 -c \"{source}\"; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    )

    await terminate(talking, LONG)
    tale = await talking.closed("p")

    said = random.Random(7).randbytes(4 << 20)  # noqa: S311  (a repeatable output, not a secret)
    assert sha256(tale.data("stdout")) == sha256(b"ready\n" + said)
    assert tale.exit_codes == [0]


async def test_the_deaf_are_killed_when_the_grace_is_over(talking: Client) -> None:
    """The answer comes when they are gone."""
    (pid,) = await start(talking, DEAF)

    answer = await terminate(talking, 50)
    ran_on = is_running(int(pid))
    end = await exit_of(talking, "p")

    assert answer == {"running": True, "survivors": [], "treeExact": True}
    assert not ran_on
    assert end["outcome"]["kind"] == "terminated"
    assert end["outcome"]["signal"] == "SIGKILL"


async def test_the_answer_comes_when_everybody_is_gone(talking: Client) -> None:
    """Not when the first is, and not when the grace is over."""
    script = "(trap 'sleep 0.2; exit 0' TERM; echo $$ ready; while :; do sleep 0.01; done) & wait"
    await start(talking, script)
    told = []
    talking.on_message = lambda message: told.append(message.get("method", "answer"))

    answer = await terminate(talking, LONG)
    listed = await talking.call("process/list")

    assert answer["survivors"] == []
    assert told.index("process/exited") < told.index("answer"), "the shell is gone long before its child"
    assert [entry["state"] for entry in listed["processes"]] == ["closed"]


async def test_a_second_terminate_without_grace_cuts_the_grace_short(talking: Client) -> None:
    """Patience may end before the time does."""
    (pid,) = await start(talking, DEAF)
    patient = talking.post("process/terminate", {"processId": "p", "graceMs": LONG})

    impatient = await terminate(talking)
    ran_on = is_running(int(pid))
    first = await talking.result(patient)
    end = await exit_of(talking, "p")

    assert impatient == first == {"running": True, "survivors": [], "treeExact": True}
    assert not ran_on
    assert end["outcome"]["kind"] == "terminated"


async def test_a_second_terminate_can_shorten_the_grace_and_not_prolong_it(talking: Client) -> None:
    """Whoever comes second must not undo the first one's deadline."""
    await start(talking, DEAF)
    first = talking.post("process/terminate", {"processId": "p", "graceMs": LONG})
    second = talking.post("process/terminate", {"processId": "p", "graceMs": 50})
    third = talking.post("process/terminate", {"processId": "p", "graceMs": LONG})

    answers = [await talking.result(answer) for answer in (first, second, third)]

    assert answers == [{"running": True, "survivors": [], "treeExact": True}] * 3


async def test_others_are_served_while_a_grace_runs(talking: Client) -> None:
    """To wait for an end is not to work."""
    await start(talking, DEAF)
    waiting = talking.post("process/terminate", {"processId": "p", "graceMs": LONG})

    await talking.start("other", "echo", "hi")
    other = await talking.closed("other")
    still_waiting = not waiting.done()
    await terminate(talking)
    await talking.result(waiting)

    assert other.data() == b"hi\n"
    assert still_waiting


async def test_a_stopped_tree_has_no_use_of_its_grace_but_ends(talking: Client) -> None:
    """SIGTERM waits for who is stopped; SIGKILL does not."""
    await start(talking, "echo ready; kill -STOP $$")

    answer = await terminate(talking, 100)
    end = await exit_of(talking, "p")

    assert answer == {"running": True, "survivors": [], "treeExact": True}
    assert end["outcome"]["kind"] == "terminated"


async def test_what_an_exited_process_left_behind_is_given_grace_too(talking: Client) -> None:
    """A daemon also has affairs."""
    tale = talking.tale("p")
    script = "(trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done) & read _"
    await talking.start("p", "sh", "-c", script, pipeStdin=True)
    await talking.until(lambda: tale.events)
    await talking.write("p", b"\n", "w")
    end = await exit_of(talking, "p")

    answer = await terminate(talking, LONG)
    await talking.closed("p")

    assert end["outcome"]["kind"] == "exit"
    assert answer == {"running": False, "survivors": [], "treeExact": True}
    assert tale.data("stdout") == b"ready\nbye\n"


async def test_a_client_that_leaves_in_the_middle_of_a_grace_leaves_the_deadline(
    served: tuple[Program, str],
) -> None:
    """What was ordered happens, whether or not anybody waits for the answer."""
    talking = await Client.open(served[1])
    (pid,) = await start(talking, DEAF)
    talking.post("process/terminate", {"processId": "p", "graceMs": 200})
    await talking.call("environment/status")
    await talking.abort()

    await eventually(lambda: not is_running(int(pid)))
    async with knowing(served[1], resume=talking.session) as back:
        page = await back.read("p", waitMs=10_000)

    assert page["exited"]
    assert page["outcome"]["kind"] == "terminated"
