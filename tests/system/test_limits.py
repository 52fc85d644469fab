"""Limits on what a tree may use, kept by the kernel where it can, and by looking where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.fakes.client import Client, Message, Refusal
from tests.fakes.server import eventually
from tests.fakes.trees import USERS, Host, exit_of, host_of, knowing

MIB = 1 << 20

NAMES = pytest.mark.parametrize("name", ["memoryBytes", "cpuSeconds", "processes", "openFiles"])

TOUCH = (
    "import signal; b = bytearray({size}); b[::4096] = b'x' * len(b[::4096]); "
    "print(len(b), flush=True); signal.pause()"
)
"""A program that takes memory, and then waits."""

BURN = "while :; do :; done"

ONE_USER = pytest.mark.parametrize("host", USERS[-1:], indirect=True)
"""For what takes long and is the same with anybody's rights."""


@pytest.fixture(scope="module", params=USERS)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """A server that may make control groups, here, and one that may not."""
    with host_of(request.param) as host:
        yield host


@pytest.fixture
async def talking(host: Host) -> AsyncIterator[Client]:
    async with knowing(host.url) as client:
        yield client


def keeper(host: Host, controller: str) -> set[str]:
    """Who may keep the limits of a controller on this host."""
    if host.user.name == "nobody":
        return {"sampled"}
    if os.getuid() == 0 and os.access(f"/sys/fs/cgroup/{controller}", os.W_OK):
        return {"cgroup"}
    return {"cgroup", "sampled"}  # Whatever this host allows.


def groups(host: Host) -> set[str]:
    """The control groups that a server has made and not removed."""
    found = set()
    prefix = f"holdfast-{os.stat('/proc/self/ns/pid').st_ino}-{host.program.pid}-"
    for controller in ("memory", "pids"):
        for folder, names, _ in os.walk(f"/sys/fs/cgroup/{controller}"):
            mine = (name for name in names if name.startswith(prefix))
            found |= {os.path.join(folder, name) for name in mine}
    return found


async def told(talking: Client, *argv: str, **options: Any) -> tuple[Message, Message]:
    """Run a program to its end; gives the answer to its start, and what is told of its end."""
    answer = await talking.start("p", *argv, **options)
    return answer, await exit_of(talking, "p")


# Memory.


@pytest.mark.slow
async def test_a_tree_that_takes_too_much_memory_is_ended_for_it(host: Host, talking: Client) -> None:
    """Not whoever else happens to run on the host."""
    answer, end = await told(
        talking, host.python, "-c", TOUCH.format(size=512 * MIB), limits={"memoryBytes": 96 * MIB}
    )

    assert answer["limits"]["memoryBytes"] in keeper(host, "memory")
    assert end["exitCode"] == 137
    assert (end["outcome"]["kind"], end["outcome"]["by"]) == ("oom", "limit")
    assert end["outcome"]["signal"] == "SIGKILL"
    assert str(96 * MIB) in end["outcome"]["detail"]


@pytest.mark.slow
async def test_the_memory_of_everybody_in_the_tree_counts(host: Host, talking: Client) -> None:
    """Each is within the limit; together they are over it."""
    one = '("$0" -c "$1" || kill -USR1 $$) & '
    script = f"trap 'exit 9' USR1; {one * 4} wait"

    answer, end = await told(
        talking,
        "sh",
        "-c",
        script,
        host.python,
        TOUCH.format(size=48 * MIB),
        limits={"memoryBytes": 96 * MIB},
    )

    assert answer["limits"]["memoryBytes"] in keeper(host, "memory")
    assert end["outcome"]["kind"] == "oom"
    if answer["limits"]["memoryBytes"] == "cgroup":  # The kernel kills one of them, and the command fails.
        assert end["exitCode"] in (9, 137)


@pytest.mark.slow
async def test_a_tree_within_its_memory_is_left_alone(host: Host, talking: Client) -> None:
    """And it may use what it was given."""
    await talking.start(
        "p", host.python, "-c", TOUCH.format(size=64 * MIB), limits={"memoryBytes": 160 * MIB}
    )
    tale = talking.tale("p")
    await talking.until(lambda: tale.events)
    running = await talking.terminate("p")
    end = await exit_of(talking, "p")

    assert tale.data() == b"%d\n" % (64 * MIB)
    assert running
    assert end["outcome"]["kind"] == "terminated"


@pytest.mark.slow
async def test_control_groups_are_removed_with_their_tree(host: Host, talking: Client) -> None:
    """The kernel's tables are not endless either."""
    before = groups(host)
    for number in range(5):
        limits = {"memoryBytes": 64 * MIB, "processes": 50}
        answer = await talking.start(f"p{number}", "sh", "-c", "sleep 1000 & wait", limits=limits)
        if answer["limits"]["memoryBytes"] == "cgroup":
            assert groups(host) - before
        await talking.terminate(f"p{number}")
        await talking.closed(f"p{number}")

    await eventually(lambda: groups(host) <= before)
    listed = await talking.call("process/list")
    assert [entry["state"] for entry in listed["processes"]] == ["closed"] * 5


SWEEP = "from holdfast.host.limits import find_groups\nwhile True: find_groups()"
"""What a server does when it starts, again and again."""


@pytest.mark.slow
async def test_the_start_of_another_server_disturbs_no_group(host: Host, talking: Client) -> None:
    """Several servers share a host; what looks left behind may be in use in a moment."""
    other = subprocess.Popen([sys.executable, "-c", SWEEP])
    try:
        ends = []
        for number in range(25):
            await talking.start(f"p{number}", "sh", "-c", "exit 5", limits={"memoryBytes": 64 * MIB})
            ends.append(await exit_of(talking, f"p{number}"))
    finally:
        other.kill()
        other.wait()

    assert [end["exitCode"] for end in ends] == [5] * 25


# Processor time.


@pytest.mark.slow
@ONE_USER
async def test_a_program_that_burns_too_much_is_over_its_limit(talking: Client) -> None:
    """An endless loop ends by itself."""
    answer, end = await told(talking, "sh", "-c", BURN, limits={"cpuSeconds": 1})

    assert answer["limits"] == {"cpuSeconds": "rlimit"}
    assert (end["outcome"]["kind"], end["outcome"]["by"]) == ("cpuLimit", "limit")
    assert end["outcome"]["detail"] == "more than 1 second of processor time"
    assert end["outcome"]["signal"] in ("SIGXCPU", "SIGKILL")
    # The kernel counts in ticks here, and exactly there.
    assert 400 <= end["usage"]["userMs"] + end["usage"]["systemMs"] <= 3500


@pytest.mark.slow
@ONE_USER
async def test_a_tree_that_burns_too_much_together_is_over_its_limit(talking: Client) -> None:
    """The kernel looks at each alone; a limit on the tree is on the sum."""
    script = f"({BURN}) & " * 4 + "wait"

    _, end = await told(talking, "sh", "-c", script, limits={"cpuSeconds": 1})
    answer = await talking.call("process/terminate", {"processId": "p", "graceMs": 0})

    assert (end["outcome"]["kind"], end["outcome"]["by"]) == ("cpuLimit", "limit")
    assert end["outcome"]["signal"] == "SIGKILL"
    assert answer == {"running": False, "survivors": [], "treeExact": True}


@pytest.mark.slow
@ONE_USER
async def test_the_time_of_those_who_have_ended_counts(talking: Client) -> None:
    """Many short programs, one after the other, burn as much as a long one."""
    script = "while :; do sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'; done"

    _, end = await told(talking, "sh", "-c", script, limits={"cpuSeconds": 1})

    assert (end["outcome"]["kind"], end["outcome"]["signal"]) == ("cpuLimit", "SIGKILL")


# Processes.

FORKS = """
import os, signal, sys
count = 1
try:
    while count < 60:
        if os.fork() == 0:
            signal.pause()
        count += 1
except BlockingIOError:
    print("refused after", count, flush=True)
signal.pause()
"""


@pytest.mark.slow
async def test_a_tree_has_no_more_processes_than_it_may(host: Host, talking: Client) -> None:
    """The kernel refuses one too many; where it cannot, the tree is ended."""
    answer = await talking.start("p", host.python, "-c", FORKS, limits={"processes": 8})
    tale = talking.tale("p")
    kept = answer["limits"]["processes"]
    if kept == "cgroup":
        await talking.until(lambda: tale.events)
        await talking.terminate("p")
    end = await exit_of(talking, "p")

    assert kept in keeper(host, "pids")
    if kept == "cgroup":
        assert tale.data() == b"refused after 8\n"
        assert end["outcome"]["kind"] == "terminated"
        assert end["outcome"]["by"] == "client"
    else:
        assert (end["outcome"]["kind"], end["outcome"]["by"]) == ("terminated", "limit")
        assert end["outcome"]["detail"].endswith("processes, more than 8")


async def test_a_tree_with_all_the_processes_that_it_may_have_is_left_alone(talking: Client) -> None:
    """The limit itself is not over the limit."""
    _, end = await told(
        talking, "sh", "-c", "sleep 0.2 & sleep 0.2 & sleep 0.2 & wait; exit 3", limits={"processes": 4}
    )

    assert end["outcome"]["kind"] == "exit"
    assert end["exitCode"] == 3


# Files.


async def test_a_process_has_no_more_open_files_than_it_may(host: Host, talking: Client) -> None:
    """A leak of descriptors is found early."""
    script = (
        "import os\n"
        "try:\n"
        "    while True: last = os.open('/dev/null', os.O_RDONLY)\n"
        "except OSError as error: print(last, error.errno)\n"
    )
    answer, end = await told(talking, host.python, "-c", script, limits={"openFiles": 40})
    tale = await talking.closed("p")

    assert answer["limits"] == {"openFiles": "rlimit"}
    assert tale.data() == b"39 24\n"
    assert end["outcome"]["kind"] == "exit"


# What is said of them.


async def test_the_answer_tells_of_every_limit_who_keeps_it(host: Host, talking: Client) -> None:
    """A client that must have a hard limit can see whether it has one."""
    limits = {"memoryBytes": 1 << 40, "cpuSeconds": 1000, "processes": 1000, "openFiles": 100}

    answer = await talking.start("p", "true", limits=limits)
    without = await talking.start("q", "true")
    empty = await talking.start("r", "true", limits={})

    assert answer["limits"].keys() == limits.keys()
    assert answer["limits"]["memoryBytes"] in keeper(host, "memory")
    assert answer["limits"]["processes"] in keeper(host, "pids")
    assert answer["limits"]["cpuSeconds"] == answer["limits"]["openFiles"] == "rlimit"
    pids = without.pop("pid"), empty.pop("pid")
    assert without == {"processId": "q", "sandboxType": "none"}
    assert empty == {"processId": "r", "sandboxType": "none"}
    assert all(pids)


@NAMES
async def test_a_limit_of_nothing_is_refused(talking: Client, name: str) -> None:
    """It is most likely a mistake, and nothing could run."""
    with pytest.raises(Refusal) as caught:
        await talking.start("p", "true", limits={name: 0})

    assert caught.value.code == -32602
    assert f"limits.{name} must be at least 1" in caught.value.text


@NAMES
async def test_the_largest_number_is_no_limit_and_no_error(talking: Client, name: str) -> None:
    """Some clients say so when they mean that there is none."""
    script = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; exit 6"

    _, end = await told(talking, "sh", "-c", script, limits={name: 2**64 - 1})

    assert end["outcome"]["kind"] == "exit"
    assert end["exitCode"] == 6
