"""Commands of programs without an event loop: what is not in ``test_sync``."""

from __future__ import annotations

import pytest

from holdfast import CommandFailed, HeadTail, SpawnFailed, sync
from tests.fakes.process import nothing_left_open


def test_many_commands_run_side_by_side() -> None:
    with nothing_left_open(), sync.local() as host:
        done = host.map((["echo", str(n)] for n in range(20)), limit=4, text=True)

        assert [each.stdout for each in done] == [f"{n}\n" for n in range(20)]


def test_errors_are_raised_or_given() -> None:
    with nothing_left_open(), sync.local() as host:
        commands = [["true"], ["no-such-program"], ["false"]]
        given = list(host.map(commands, return_exceptions=True, check=True))

        assert [type(each).__name__ for each in given] == ["Completed", "SpawnFailed", "CommandExited"]
        with pytest.raises(SpawnFailed):
            list(host.map(commands))
        with pytest.raises(CommandFailed):
            list(host.map([["false"]], check=True))


def test_whoever_leaves_ends_what_runs() -> None:
    with nothing_left_open(), sync.local() as host:
        for done in host.map([["true"], ["sleep", "1000"], ["sleep", "1000"]]):
            assert done.ok
            break

        assert host.processes() == []


def test_an_iteration_may_outlive_its_host() -> None:
    with nothing_left_open():
        with sync.local() as host:
            results = host.map([["true"], ["sleep", "1000"]])
            assert next(results).ok
        results.close()  # type: ignore[attr-defined]  # It is a generator; nobody is promised that.


def test_both_ends_of_an_output_are_kept() -> None:
    with nothing_left_open(), sync.local() as host:
        done = host.run(["seq", "1", "100000"], capture=HeadTail(6, 7, marker="..."), text=True)

        assert (done.stdout, done.stderr) == ("1\n2\n3\n...100000\n"[:9] + "100000\n", "")
        assert done.omitted.total == 588_895 - 13
