"""Control groups: real ones where they can be made, plain files where only the reading of them matters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.host import limits as module
from holdfast.host.environ import Environment
from holdfast.host.limits import Group, Groups, find_groups
from holdfast.host.spawn import Spawner
from holdfast.model import Limits, ProcessTerms, Spec
from holdfast.reports import EnforcedLimits, News
from tests.fakes.fork_server import has_ended, until
from tests.fakes.process import (
    Ran,
    command,
    descriptors,
    python,
    read_until,
    run,
    started,
    wait_exit,
    wait_news,
)

MIB = 1 << 20
BOTH = Limits(memory=64 * MIB, processes=5)
NAMESPACE = os.stat("/proc/self/ns/pid").st_ino


# Real groups.


@pytest.fixture
def groups() -> Iterator[Groups]:
    """Where groups can be made; none of them is left."""
    found = find_groups()
    if found.controllers != {"memory", "pids"}:
        pytest.skip(f"groups can be made here for {sorted(found.controllers) or 'nothing'} only")
    before = made(found)
    yield found
    found.close()
    assert made(found) == before


def made(groups: Groups) -> set[str]:
    """The groups that this process has made and that exist."""
    mine = f"holdfast-{NAMESPACE}-{os.getpid()}-"
    return {
        os.path.join(root, name)
        for root in groups._roots.values()
        for name in os.listdir(root)
        if name.startswith(mine)
    }


def setting(group: Group, *names: str) -> int:
    """What the first of these files says that the group has."""
    for path in group.paths:
        for name in names:
            with suppress(FileNotFoundError):
                return int(Path(path, name).read_text())
    raise AssertionError(f"none of {names}")


def test_a_group_has_the_limits_asked_for_and_can_be_removed(groups: Groups) -> None:
    group = groups.make(BOTH)

    assert group is not None
    assert made(groups) == set(group.paths)
    assert group.directories() == [os.fsencode(path) for path in group.paths]
    assert setting(group, "memory.max", "memory.limit_in_bytes") == 64 * MIB
    assert setting(group, "pids.max") == 5
    assert not group.ran_out_of_memory()
    group.remove()
    assert made(groups) == set()
    group.remove()


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        (Limits(), 0),
        (Limits(cpu=1, files=9), 0),
        (Limits(memory=64 * MIB), 1),
        (Limits(processes=5), 1),
    ],
)
def test_a_group_is_made_only_for_what_it_keeps(groups: Groups, limits: Limits, count: int) -> None:
    """A group costs the kernel memory and us a moment; most commands have no limits."""
    group = groups.make(limits)

    assert len(made(groups)) == count
    assert (group is None) == (count == 0)


def test_every_tree_has_its_own_group(groups: Groups) -> None:
    first, second = groups.make(BOTH), groups.make(BOTH)

    assert first is not None
    assert second is not None
    assert set(first.paths).isdisjoint(second.paths)


def test_makers_do_not_share_a_group(groups: Groups) -> None:
    """Two servers in one process would set each other's limits."""
    other = find_groups()
    first, second = groups.make(BOTH), other.make(BOTH)
    other.close()

    assert first is not None
    assert second is not None
    assert set(first.paths).isdisjoint(second.paths)


def test_a_limit_that_the_kernel_refuses_makes_no_group(groups: Groups) -> None:
    """Then it is kept by looking; and nothing is left of the try."""
    assert groups.make(Limits(memory=64 * MIB, processes=-7)) is None
    assert made(groups) == set()


def test_to_look_for_groups_leaves_none(groups: Groups) -> None:
    find_groups()

    assert made(groups) == set()


def test_what_an_ended_server_left_is_removed_by_the_next(groups: Groups) -> None:
    """One that was killed cannot do it itself."""
    left = [os.path.join(root, f"holdfast-{NAMESPACE}-4194305-0") for root in groups._roots.values()]
    for path in left:
        os.mkdir(path)

    find_groups()

    assert [path for path in left if os.path.exists(path)] == []


def test_what_another_server_has_just_made_is_left_alone(groups: Groups) -> None:
    """Its command has not entered yet, and would not start."""
    group = groups.make(BOTH)
    assert group is not None

    find_groups()

    assert made(groups) == set(group.paths)


def test_the_groups_of_another_container_are_left_alone(groups: Groups) -> None:
    """Whether its server lives cannot be seen from here: pids mean something else there."""
    theirs = [os.path.join(root, "holdfast-1-4194305-0") for root in set(groups._roots.values())]
    for path in theirs:
        os.mkdir(path)
    try:
        find_groups()

        assert [path for path in theirs if not os.path.exists(path)] == []
    finally:
        for path in theirs:
            os.rmdir(path)


# Real trees in them.


def limited(spec: Spec, limits: Limits) -> Spec:
    return Spec(spec.argv, spec.cwd, spec.env, stdin=spec.stdin, terms=ProcessTerms(limits=limits))


@pytest.fixture
def spawner(groups: Groups) -> Spawner:
    return Spawner(Environment({}), groups=groups)


def test_a_child_is_in_its_group_from_its_first_moment(groups: Groups, spawner: Spawner) -> None:
    spec = limited(command("sleep", "1000"), BOTH)
    with started(spec, spawner) as child:
        (memory, pids) = sorted(made(groups))
        inside = [Path(path, "cgroup.procs").read_text().split() for path in (memory, pids)]

        assert inside == [[str(child.pid)]] * 2
        assert child.limits == EnforcedLimits(BOTH, frozenset({"memory", "pids"}))


def test_a_child_without_limits_is_in_no_group_of_ours(groups: Groups, spawner: Spawner) -> None:
    with started(command("sleep", "1000"), spawner) as child:
        assert made(groups) == set()
        assert child.limits == EnforcedLimits(Limits(), frozenset())


TAKE = "x = b'x' * (200 << 20)"
FORK_TAKE = f"""if True:
    import os
    if not os.fork():
        os.setsid()
        {TAKE}
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
    os.read(0, 1)
"""
SHARE = """if True:
    import os, signal
    for _ in range(3):
        if not os.fork():
            x = b'x' * (30 << 20)
            signal.pause()
    os.wait()
"""


def test_a_command_that_takes_too_much_memory_is_killed_and_that_is_known(spawner: Spawner) -> None:
    with started(limited(python(TAKE), BOTH), spawner) as child:
        assert wait_exit(child) == 137
        assert child.ran_out_of_memory()


def test_that_somebody_below_was_killed_for_memory_is_known(spawner: Spawner) -> None:
    """The command itself may go on, and may not say what became of its child."""
    with started(limited(python(FORK_TAKE, stdin=True), BOTH), spawner) as child:
        assert read_until(child.outputs[0][1], b"\n") == b"-9\n"
        assert child.ran_out_of_memory()


def test_memory_is_counted_for_the_whole_tree(spawner: Spawner) -> None:
    """Each of them alone would be within the limit."""
    with started(limited(python(SHARE), BOTH), spawner) as child:
        wait_exit(child)

        assert child.ran_out_of_memory()


def test_a_death_by_signal_is_not_taken_for_want_of_memory(spawner: Spawner) -> None:
    with started(limited(python("import os; os.kill(os.getpid(), 9)"), BOTH), spawner) as child:
        assert wait_exit(child) == 137
        assert not child.ran_out_of_memory()


MULTIPLY = """if True:
    import os, signal
    count = 1
    try:
        while count < 50:
            if not os.fork():
                signal.pause()
            count += 1
    except BlockingIOError:
        pass
    print(count, flush=True)
    os.killpg(0, signal.SIGKILL)
"""


def test_there_are_never_more_processes_than_allowed() -> None:
    """The first included; in any session."""
    groups = find_groups()
    if "pids" not in groups.controllers:
        pytest.skip("no groups can be made here for processes")
    spec = limited(python(MULTIPLY), Limits(processes=5))

    assert run(spec, Spawner(Environment({}), groups=groups)) == Ran(137, b"5\n")


def test_a_group_is_removed_with_its_tree(groups: Groups, spawner: Spawner) -> None:
    """A busy server would else gather thousands."""
    child = spawner.start(limited(command("true"), BOTH))
    assert len(made(groups)) == 2
    assert wait_news(child).news is News.STARTED
    assert wait_exit(child) == 0
    child.release()
    assert wait_news(child).news is News.EMPTY

    child.close()

    assert made(groups) == set()
    spawner.close()
    for fd in descriptors(child):
        os.close(fd)


def test_a_group_whose_tree_ends_late_is_removed_when_all_are(groups: Groups, spawner: Spawner) -> None:
    """To close a child does not wait for its end."""
    child = spawner.start(limited(command("sleep", "1000"), BOTH))
    pid = wait_news(child).value

    child.close()
    has_ended(pid)
    until(lambda: all(not Path(path, "cgroup.procs").read_text() for path in made(groups)))
    spawner.close()

    assert made(groups) == set()
    for fd in descriptors(child):
        os.close(fd)


# Without groups.


def test_where_no_group_can_be_made_there_is_none() -> None:
    """The command runs all the same; its limits are kept by looking."""
    nowhere = Groups({"memory": "/proc/self", "pids": "/proc/self"})

    assert nowhere.make(BOTH) is None
    assert nowhere.controllers == {"memory", "pids"}
    assert Groups({}).make(BOTH) is None


def test_a_folder_that_is_no_group_is_not_taken_for_one(tmp_path: Path) -> None:
    """Without the file that takes the limit nobody would keep it."""
    assert Groups({"memory": str(tmp_path), "pids": str(tmp_path)}).make(BOTH) is None
    assert os.listdir(tmp_path) == []


def test_to_close_where_the_root_has_gone_is_no_error(tmp_path: Path) -> None:
    """Whoever runs the host may have moved us, and removed where we were."""
    Groups({"memory": str(tmp_path / "gone")}).close()


# The files of the second version, which this host's kernel may not have.


@pytest.mark.parametrize(
    ("name", "text", "killed"),
    [
        ("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\noom_group_kill 0\n", False),
        ("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 0\n", True),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 0\n", False),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", True),
        ("memory.oom_control", "oom_kill_disable 1\nunder_oom 1\n", False),  # An old kernel.
        ("pids.events", "max 1\n", False),
    ],
)
def test_who_was_killed_for_memory_is_read_in_both_versions(
    tmp_path: Path, name: str, text: str, *, killed: bool
) -> None:
    """Only a kill counts; to have been short of memory is no cause of death."""
    (tmp_path / name).write_text(text)

    assert Group(["/nowhere", str(tmp_path)]).ran_out_of_memory() == killed


@pytest.mark.parametrize(
    ("files", "settings"),
    [
        (
            ["memory.max", "memory.swap.max"],
            {"memory.max": "1000", "memory.swap.max": "0"},
        ),
        (
            ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
            {"memory.limit_in_bytes": "1000", "memory.memsw.limit_in_bytes": "1000"},
        ),
        (["memory.max"], {"memory.max": "1000"}),
        (["memory.limit_in_bytes"], {"memory.limit_in_bytes": "1000"}),
    ],
    ids=["second", "first", "second without swap", "first without swap"],
)
def test_swapped_memory_is_within_the_limit_too_where_it_is_counted(
    tmp_path: Path, files: list[str], settings: dict[str, str]
) -> None:
    """The second version counts swap alone, the first together with memory."""
    for name in files:
        (tmp_path / name).touch()
    limits = Limits(memory=1000)

    # A folder does not get these files by being made; so the part that writes them is asked alone.
    for names, value in ((module._MEMORY, 1000), (module._SWAP, 0)):
        module._set(str(tmp_path), names, value, limits)

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == settings
