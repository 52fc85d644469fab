"""Everything of a connection ends with it, and nothing of anybody else's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.app_client import (
    TRANSPORTS,
    AppClient,
    Place,
    StdioLink,
    app_client,
    exec_params,
    serving,
    spawn_params,
    stranger,
)
from tests.fakes.gate import Gate, end, gone
from tests.fakes.server import Program, commands, eventually, held_program, is_running, starts_under_way

FAMILY = "trap '' HUP TERM INT; (trap '' HUP TERM INT; sleep 1000) & echo $$ $!; {report}; wait"
"""A process and a child of it that no gentle signal ends; it prints both pids."""

HOW = ("close", "abort")


@pytest.fixture(scope="module", params=TRANSPORTS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server per transport, with a hard cap that no test reaches."""
    options = ("--drain", "60", "--command-quiet", "0")
    with serving(request.param, tmp_path_factory.mktemp("ends"), *options) as place:
        yield place


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving("ws", tmp_path_factory.mktemp("ends")) as place:
        yield place


@pytest.fixture
async def talking(place: Place) -> AppClient:
    """A client that the test ends itself."""
    client = AppClient(await place.link())
    await client.initialize()
    return client


async def leave(client: AppClient, how: str) -> None:
    await (client.close() if how == "close" else client.abort())


def server_of(place: Place, client: AppClient) -> int:
    """The pid of the server that this client talks to."""
    if isinstance(client.link, StdioLink):
        return client.link.process.pid
    assert place.program is not None
    return place.program.pid


async def family(client: AppClient, gate: Gate, name: str, *, kind: str) -> list[int]:
    """Start one that does not end by itself; gives the pids of it and of its child."""
    script = FAMILY.format(report=gate.report)
    if kind == "command":
        options = exec_params(
            "sh", "-c", script, processId=name, streamStdoutStderr=True, disableTimeout=True
        )
        client.post("command/exec", options)
        tale = client.command(name)
    else:
        streamed = {"streamStdoutStderr": True, "tty": kind == "terminal", "timeoutMs": None}
        await client.spawn(name, "sh", "-c", script, **streamed)
        tale = client.tale(name)
    await gate.reached()
    await client.until(lambda: b"\n" in tale.data())
    return [int(pid) for pid in tale.data().split()]


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
async def test_processes_of_every_kind_end_with_their_connection(
    talking: AppClient, gate: Gate, how: str
) -> None:
    """Nobody can reach them any more, so nobody may have to look for them."""
    pids = [
        pid
        for kind in ("pipe", "terminal", "command")
        for pid in await family(talking, gate, kind, kind=kind)
    ]
    running = [is_running(pid) for pid in pids]
    await leave(talking, how)
    for pid in pids:
        await gone(pid)

    assert running == [True] * 6


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
async def test_a_process_that_is_still_starting_ends_with_its_connection(
    place: Place, talking: AppClient, tmp_path: Path, how: str
) -> None:
    """A start that nobody waits for any more leaves nothing behind when it comes through at last."""
    server = server_of(place, talking)
    with held_program("/bin/sleep", tmp_path / "held") as held:
        talking.post_together(
            ("process/spawn", spawn_params("h", held.path, "1000")),
            ("command/exec", exec_params(held.path, "1000")),
        )
        await eventually(lambda: len(starts_under_way(server)) == 2)
        stuck = starts_under_way(server)
        await leave(talking, how)
        held.release()
        for child in stuck:
            await gone(child.pid)

        assert not held.runs()


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
async def test_what_a_process_left_behind_ends_with_the_connection_during_the_drain(
    talking: AppClient, gate: Gate, how: str
) -> None:
    """The process itself is gone already; those who hold its output follow."""
    script = f"(trap '' HUP; {gate.shell}) & echo $!; exit 3"
    await talking.spawn("h", "sh", "-c", script, streamStdoutStderr=True)
    talking.post("command/exec", exec_params("sh", "-c", script, processId="c", streamStdoutStderr=True))
    await gate.reached(2)
    for method, name in (
        ("process/writeStdin", {"processHandle": "h"}),
        ("command/exec/write", {"processId": "c"}),
    ):
        # Neither takes input; once it has exited the refusal says so.
        while "no longer" not in (await talking.refusal(method, {**name, "closeStdin": True}))[1]:
            pass
    await talking.said("h", b"\n")
    await talking.until(lambda: talking.command("c").data())
    pids = [int(talking.tale("h").data()), int(talking.command("c").data())]
    running = [is_running(pid) for pid in pids]
    await leave(talking, how)
    for pid in pids:
        await gone(pid)

    assert running == [True, True]
    assert talking.tale("h").exits == []


@pytest.mark.slow
async def test_the_end_of_input_ends_the_program_with_code_zero(tmp_path: Path, gate: Gate) -> None:
    """On its standard streams a server has one client, and nothing to do without it."""
    with serving("stdio", tmp_path) as place:
        client = AppClient(await place.link())
        await client.initialize()
        pids = await family(client, gate, "h", kind="pipe")
        assert isinstance(client.link, StdioLink)
        server = client.link.process
        everybody = commands(server.pid)
        await client.close()
        for pid in pids:
            await gone(pid)

    assert server.returncode == 0
    assert {sighting.pid for sighting in everybody} >= set(pids)
    assert client.tale("h").exits == []


# Others.


async def test_handles_of_one_connection_are_unknown_to_another(ws: Place) -> None:
    """Names are private: the same one may be used by both, and neither can touch the other's."""
    async with app_client(ws) as one, app_client(ws) as other:
        await one.spawn("h", "cat", streamStdin=True)
        running = one.post("command/exec", exec_params("cat", processId="c", streamStdin=True))
        refusals = [
            await other.refusal("process/kill", {"processHandle": "h"}),
            await other.refusal("process/writeStdin", {"processHandle": "h", "closeStdin": True}),
            await other.refusal("command/exec/terminate", {"processId": "c"}),
        ]
        await other.spawn("h", "echo", "other")
        told_other = await other.exited("h")
        await one.write("h", b"one", close=True)
        told_one = await one.exited("h")
        await one.call("command/exec/write", {"processId": "c", "closeStdin": True})
        result = await one.result(running)

    unknown = 'no active process for process handle "h"'
    assert refusals == [
        (-32600, unknown),
        (-32600, unknown),
        (-32600, 'no active command/exec for process id "c"'),
    ]
    assert (told_one["stdout"], told_other["stdout"]) == ("one", "other\n")
    assert result == {"exitCode": 0, "stdout": "", "stderr": ""}
    assert len(one.tale("h").exits) == len(other.tale("h").exits) == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
async def test_the_end_of_one_connection_leaves_the_processes_of_another_alone(
    ws: Place, gate: Gate, how: str
) -> None:
    """Also when their names are the same, and when it ends in the middle of a burst."""
    async with app_client(ws) as staying:
        await staying.spawn("h", "cat", streamStdin=True, timeoutMs=None)
        leaving = AppClient(await ws.link())
        await leaving.initialize()
        pids = await family(leaving, gate, "h", kind="pipe")
        leaving.post_together(
            *(("process/spawn", spawn_params(f"p{number}", "sleep", "1000")) for number in range(50))
        )
        await leave(leaving, how)
        for pid in pids:
            await gone(pid)
        assert isinstance(ws.program, Program)
        server = ws.program.pid
        await eventually(lambda: len(commands(server)) == 1)
        await staying.write("h", b"still here", close=True)
        told = await staying.exited("h")

    assert (told["exitCode"], told["stdout"]) == (0, "still here")


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
async def test_a_stop_in_the_middle_of_a_burst_whose_client_has_left_leaves_no_process(
    tmp_path: Path, how: str
) -> None:
    """Starts that nobody waits for any more must not come through behind the server's back."""
    # The server has it in its arguments as well, and so has a child that has not become its program yet.
    mark = shutil.copy("/bin/sleep", tmp_path / "marked")
    with serving("ws", tmp_path, "--hint", str(mark)) as place:
        leaving = AppClient(await place.link())
        await leaving.initialize()
        leaving.post_together(
            *(("process/spawn", spawn_params(f"p{number}", str(mark), "1000")) for number in range(200))
        )
        await leave(leaving, how)
    try:
        await eventually(lambda: not marked(str(mark)))
    finally:
        for pid in marked(str(mark)):
            end(pid)


def marked(mark: str) -> list[int]:
    """The processes that have the mark among their arguments."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if mark.encode() in read_or_nothing(path)
    ]


def read_or_nothing(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_a_connection_that_never_says_a_word_may_leave(ws: Place) -> None:
    """There is no conversation yet that could end."""
    async with stranger(ws):
        pass
    async with app_client(ws) as talking:
        answered = await talking.execute("true")

    assert answered["exitCode"] == 0
