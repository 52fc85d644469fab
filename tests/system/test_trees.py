"""The end of a process is the end of everything it has started, however that tries to get away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.fakes.client import Client
from tests.fakes.server import eventually
from tests.fakes.trees import FEWER_RUNS, RUNS, USERS, Brood, Host, brood, exit_of, host_of, knowing

pytestmark = [pytest.mark.slow, pytest.mark.stress]

again_and_again = pytest.mark.parametrize("run", range(RUNS))
again = pytest.mark.parametrize("run", range(FEWER_RUNS))

HOPPERS = ("hop", "unreported")
"""Who is elsewhere by now: those who hop, and those whom a storm bears."""


@pytest.fixture(scope="module", params=USERS)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """One server for all tests of this module, with each user's rights."""
    with host_of(request.param) as host:
        yield host


async def grow(talking: Client, host: Host, family: Brood, name: str = "p") -> None:
    """Start a program that starts everybody else, and wait until they are all there."""
    await talking.start(name, *family.argv(host.python), pipeStdin=True)
    await family.grown()


def ways(family: Brood) -> Counter[str]:
    """How many there are of each kind that stays where it is."""
    return Counter(way for way in family.left().values() if way not in HOPPERS)


@again_and_again
async def test_nobody_escapes_a_terminate(host: Host, run: int) -> None:
    """Whoever is told that a process is gone gives away its directory, its port, its licence."""
    async with knowing(host.url) as talking, brood() as family:
        await grow(talking, host, family)
        before = family.left()

        answer = await talking.call("process/terminate", {"processId": "p"})
        left = family.left()
        told = await exit_of(talking, "p")
        await family.gone()

    assert len(before) >= 70, "or there was nobody to end"
    assert answer == {"running": True, "survivors": [], "treeExact": True}
    assert left == {}, "the answer came before the end"
    assert told["outcome"]["kind"] == "terminated"


@again
async def test_nobody_escapes_a_terminate_with_grace(host: Host, run: int) -> None:
    """To be asked first is a courtesy, not a way out."""
    async with knowing(host.url) as talking, brood() as family:
        await grow(talking, host, family)

        answer = await talking.call("process/terminate", {"processId": "p", "graceMs": 50})
        left = family.left()
        await family.gone()

    assert answer == {"running": True, "survivors": [], "treeExact": True}
    assert left == {}


@again
async def test_nobody_escapes_the_signal_that_kills_a_tree(host: Host, run: int) -> None:
    """The other way to say it."""
    async with knowing(host.url) as talking, brood() as family:
        await grow(talking, host, family)

        await talking.call("process/signal", {"processId": "p", "signal": "kill", "tree": True})
        await family.gone()
        told = await exit_of(talking, "p")

    assert told["outcome"]["signal"] == "SIGKILL"


@again_and_again
async def test_a_tree_whose_shim_is_killed_is_lost_and_gone(host: Host, run: int) -> None:
    """A program may kill whoever watches over it; nobody can tell then how it ended, only that it has."""
    async with knowing(host.url) as talking, brood() as family:
        await grow(talking, host, family)

        await talking.write("p", b"shim\n", "w")
        told = await exit_of(talking, "p")
        await talking.closed("p")
        await family.gone()
        answer = await talking.call("process/terminate", {"processId": "p"})
        with_grace = await talking.call("process/terminate", {"processId": "p", "graceMs": 0})

    assert told["outcome"]["kind"] == "lost"
    assert told["exitCode"] == -1
    assert answer == with_grace == {"running": False, "survivors": [], "treeExact": False}


async def test_a_killed_shim_leaves_the_trees_of_others_alone(host: Host) -> None:
    """What is swept up after a shim must not be somebody else's."""
    async with knowing(host.url) as talking, brood() as lost, brood() as other:
        await grow(talking, host, other, "other")
        before = ways(other)
        await grow(talking, host, lost, "lost")

        await talking.write("lost", b"shim\n", "w")
        await talking.closed("lost")
        await lost.gone()
        after = ways(other)
        await talking.call("process/terminate", {"processId": "other"})

    assert after == before
    assert before.total() >= 70


async def test_a_tree_ends_alone(host: Host) -> None:
    """Those who have left their parents, groups and sessions are still nobody else's."""
    async with knowing(host.url) as talking, brood() as first, brood() as second:
        await grow(talking, host, first, "first")
        await grow(talking, host, second, "second")
        before = ways(second)

        answer = await talking.call("process/terminate", {"processId": "first"})
        left, after = first.left(), ways(second)
        last = await talking.call("process/terminate", {"processId": "second"})

    assert answer == last == {"running": True, "survivors": [], "treeExact": True}
    assert left == {}
    assert after == before
    assert before.total() >= 70


async def test_what_a_process_leaves_behind_is_spared_unless_its_end_is_asked_for(host: Host) -> None:
    """A daemon is often the purpose of the command that started it; its client can still end it."""
    async with knowing(host.url) as talking, brood() as family:
        await grow(talking, host, family)
        await talking.write("p", b"own\n", "w")
        told = await exit_of(talking, "p")
        (first,) = (sighting for sighting, way in family.reports.items() if way == "first")
        before = ways(family)

        spared = await talking.call("process/terminate", {"processId": "p"})
        after = ways(family)
        ended = await talking.call("process/terminate", {"processId": "p", "graceMs": 0})
        left = family.left()
        await family.gone()

    assert first not in left
    assert told["exitCode"] == 7
    assert told["outcome"]["kind"] == "exit"
    assert spared == {"running": False, "survivors": [], "treeExact": True}
    assert after == before
    assert before.total() >= 70
    assert ended == {"running": False, "survivors": [], "treeExact": True}
    assert left == {}


async def test_a_start_that_is_given_up_leaves_nobody(host: Host) -> None:
    """The answer to a terminate that came first must be as true as any other."""
    async with knowing(host.url) as talking, brood() as family:
        params = {
            "processId": "p",
            "argv": family.argv(host.python),
            "cwd": "file:///",
            "env": {},
            "tty": False,
        }
        start, terminate = talking.post_together(
            ("process/start", params), ("process/terminate", {"processId": "p"})
        )
        answer = await talking.result(terminate)
        await start

        assert answer["survivors"] == []
        await eventually(lambda: not family.left())
        again = await talking.call("process/terminate", {"processId": "p"})

    assert again == {"running": False, "survivors": [], "treeExact": True}
