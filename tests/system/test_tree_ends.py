"""Whatever ends a process, a session, a connection or the server: nobody of the trees is left."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import pytest

from holdfast.config import SessionLimits
from tests.fakes.app_client import Place, app_client, exec_params, spawn_params
from tests.fakes.backends import LONG
from tests.fakes.client import Client
from tests.fakes.server import eventually, inside
from tests.fakes.trees import (
    FEWER_RUNS,
    RUNS,
    USERS,
    Brood,
    Host,
    brood,
    exit_of,
    greet,
    host_of,
    knowing,
)

pytestmark = [pytest.mark.slow, pytest.mark.stress]

again_and_again = pytest.mark.parametrize("run", range(RUNS))
again = pytest.mark.parametrize("run", range(FEWER_RUNS))

TIMEOUTS = (500, 2000, 8000)
"""Milliseconds; on a busy host the first may be over before everybody is there."""


@pytest.fixture(scope="module", params=USERS if LONG else USERS[-1:])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """One server for all tests of this module, with each user's rights."""
    with host_of(request.param, "--drain", "0.05") as host:
        yield host


def app_place(host: Host) -> Place:
    return Place("ws", host.url, (), host.program)


# Ends that the exec dialect has.


async def by_session_close(host: Host, family: Brood) -> None:
    async with knowing(host.url) as talking:
        await talking.start("p", *family.argv(host.python))
        await family.grown()

        answer = await talking.call("session/close")
        left = family.left()

    assert answer == {"survivors": []}
    assert left == {}


async def by_session_close_after_its_exit(host: Host, family: Brood) -> None:
    async with knowing(host.url) as talking:
        await talking.start("p", *family.argv(host.python), pipeStdin=True)
        await family.grown()
        await talking.write("p", b"own\n", "w")
        told = await exit_of(talking, "p")
        spared = len(family.left())

        answer = await talking.call("session/close")
        left = family.left()

    assert told["exitCode"] == 7
    assert spared >= 70
    assert answer == {"survivors": []}
    assert left == {}


# Ends that the app dialect has.


async def by_app_close(host: Host, family: Brood) -> None:
    async with app_client(app_place(host)) as talking:
        await talking.spawn("p", *family.argv(host.python), timeoutMs=None)
        await family.grown()


async def by_app_abort(host: Host, family: Brood) -> None:
    async with app_client(app_place(host)) as talking:
        talking.post("command/exec", exec_params(*family.argv(host.python), disableTimeout=True))
        await family.grown()
        await talking.abort()


async def by_app_close_after_its_exit(host: Host, family: Brood) -> None:
    async with app_client(app_place(host)) as talking:
        await talking.spawn("p", *family.argv(host.python), streamStdin=True, timeoutMs=None)
        await family.grown()
        await talking.write("p", b"own\n")
        told = await talking.exited("p")
        # Whoever stayed in its group ends with it, as with the reference.
        await eventually(lambda: "plain" not in family.left().values())
        spared = Counter(family.left().values())

    assert told["exitCode"] == 7
    assert spared["session"] > 0
    assert spared["daemon in session"] > 0


async def by_app_kill(host: Host, family: Brood) -> None:
    async with app_client(app_place(host)) as talking:
        await talking.spawn("p", *family.argv(host.python), timeoutMs=None)
        await family.grown()
        await talking.call("process/kill", {"processHandle": "p"})
        await talking.exited("p")
        await family.gone()


async def by_app_terminate(host: Host, family: Brood) -> None:
    async with app_client(app_place(host)) as talking:
        params = exec_params(
            *family.argv(host.python), processId="c", streamStdoutStderr=True, disableTimeout=True
        )
        answer = talking.post("command/exec", params)
        await family.grown()
        await talking.call("command/exec/terminate", {"processId": "c"})
        await talking.result(answer)
        await family.gone()


ENDS = (by_session_close, by_app_close, by_app_kill, by_app_terminate)
VARIANTS = (by_session_close_after_its_exit, by_app_abort, by_app_close_after_its_exit)


@again_and_again
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_nobody_escapes_an_end(
    host: Host, end: Callable[[Host, Brood], Awaitable[None]], run: int
) -> None:
    """A client that goes leaves nothing that eats memory until the host is restarted."""
    async with brood() as family:
        await end(host, family)
        await family.gone()

    assert len(family.reports) >= 70


@again
@pytest.mark.parametrize("end", VARIANTS, ids=lambda end: end.__name__)
async def test_nobody_escapes_the_variant_of_an_end(
    host: Host, end: Callable[[Host, Brood], Awaitable[None]], run: int
) -> None:
    """The same without a goodbye, and for what ended processes have left behind."""
    async with brood() as family:
        await end(host, family)
        await family.gone()

    assert len(family.reports) >= 70


# Ends by time.


async def timed_process(host: Host, family: Brood, milliseconds: int) -> str:
    async with knowing(host.url) as talking:
        await talking.start("p", *family.argv(host.python), timeoutMs=milliseconds)
        told = await exit_of(talking, "p")
        await talking.closed("p")
        await family.gone()
        return f"{told['outcome']['kind']} {told['exitCode']}"


async def timed_app_process(host: Host, family: Brood, milliseconds: int) -> str:
    async with app_client(app_place(host)) as talking:
        await talking.call(
            "process/spawn", spawn_params("p", *family.argv(host.python), timeoutMs=milliseconds)
        )
        told = await talking.exited("p")
        await family.gone()
        return str(told["exitCode"])


async def timed_app_command(host: Host, family: Brood, milliseconds: int) -> str:
    async with app_client(app_place(host)) as talking:
        told = await talking.execute(*family.argv(host.python), timeoutMs=milliseconds)
        await family.gone()
        return str(told["exitCode"])


@again_and_again
@pytest.mark.parametrize(
    ("timed", "expected"),
    [(timed_process, "timeout 137"), (timed_app_process, "124")],
    ids=["exec", "app"],
)
async def test_nobody_escapes_a_timeout(
    host: Host, timed: Callable[[Host, Brood, int], Awaitable[str]], expected: str, run: int
) -> None:
    """Time is what runs out most often, and nobody is there to look."""
    await see_timeout(host, timed, expected)


@again
async def test_nobody_escapes_the_timeout_of_a_command(host: Host, run: int) -> None:
    """The same for the other family of the app dialect."""
    await see_timeout(host, timed_app_command, "124")


async def see_timeout(host: Host, timed: Callable[[Host, Brood, int], Awaitable[str]], expected: str) -> None:
    for milliseconds in TIMEOUTS:
        async with brood() as family:
            found = await timed(host, family, milliseconds)

        assert found == expected
        if family.complete.is_set():
            return
    pytest.fail("nobody was ever complete")


# Ends of sessions and servers.


async def expire(family: Brood, *, own_exit: bool) -> int:
    """Leave a session to its end; gives how many there were before."""
    async with inside(sessions=SessionLimits(detached_seconds=0.05)) as server:
        talking = await Client.connect(server.url)
        await greet(talking)
        await talking.start("p", *family.argv("python3"), pipeStdin=True)
        await family.grown()
        if own_exit:
            await talking.write("p", b"own\n", "w")
            await exit_of(talking, "p")
        before = family.left()

        await talking.abort()
        await family.gone()
    return len(before)


@again_and_again
async def test_nobody_escapes_the_expiry_of_a_session(run: int) -> None:
    """A client that never comes back cannot ask for anything."""
    async with brood() as family:
        assert await expire(family, own_exit=False) >= 70


@again
async def test_nobody_left_behind_escapes_the_expiry_of_a_session(run: int) -> None:
    """What an ended process left behind lives as long as the session, not longer."""
    async with brood() as family:
        assert await expire(family, own_exit=True) >= 70


async def stop_server(name: str, family: Brood, number: signal.Signals, *, own_exit: bool) -> int:
    """End a server that has such a tree; gives how many there were before."""
    with host_of(name) as host:
        talking = await Client.connect(host.url)
        await greet(talking)
        await talking.start("p", *family.argv(host.python), pipeStdin=True)
        await family.grown()
        if own_exit:
            await talking.write("p", b"own\n", "w")
            await exit_of(talking, "p")
        before = family.left()

        host.program.send_signal(number)
        code = host.program.wait()
        await talking.abort()
        await family.gone()
    assert code == (0 if number == signal.SIGTERM else -number)
    return len(before)


@again_and_again
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("name", USERS)
async def test_nobody_escapes_the_end_of_the_server(name: str, number: signal.Signals, run: int) -> None:
    """Told or killed: nothing that it started may outlive it, out of everybody's reach."""
    async with brood() as family:
        assert await stop_server(name, family, number, own_exit=False) >= 70


@again
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("name", USERS)
async def test_nobody_left_behind_escapes_the_end_of_the_server(
    name: str, number: signal.Signals, run: int
) -> None:
    """The same for those whose process has ended before."""
    async with brood() as family:
        assert await stop_server(name, family, number, own_exit=True) >= 70
