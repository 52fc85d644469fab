"""Commands that are run to their end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from holdfast import (
    PIPE,
    STDOUT,
    CommandExited,
    CommandFailed,
    CommandTimedOut,
    Completed,
    HeadTail,
    Host,
    Kind,
    Limits,
    Omitted,
    Outcome,
    SpawnFailed,
    TimedOut,
)
from holdfast.model import EnvironmentPolicy, Inherit
from tests.fakes.gate import Gate, gone
from tests.fakes.process import PATIENCE

SUCCESS = Outcome(Kind.EXIT, 0)


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


async def test_a_command_is_run_to_its_end(host: Host) -> None:
    completed = await host.run(sh("echo out; echo err >&2; exit 3"), capture_output=True)

    argv = sh("echo out; echo err >&2; exit 3")
    assert completed == Completed(
        argv, 3, b"out\n", b"err\n", Outcome(Kind.EXIT, 3), completed.usage, identifier=completed.identifier
    )
    assert completed.usage is not None
    with pytest.raises(CommandFailed):
        completed.check_returncode()


async def test_input_and_output_are_text_if_that_is_wanted(host: Host) -> None:
    plain = await host.run(["cat"], input="ä\r\n", capture_output=True, text=True)
    coded = await host.run(["cat"], input="ä", capture_output=True, encoding="latin-1")
    wrong = await host.run(["cat"], input=b"\xff", capture_output=True, text=True, errors="replace")

    assert (plain.stdout, coded.stdout, wrong.stdout) == ("ä\n", "ä", "\ufffd")


async def test_a_failure_is_raised_if_that_is_wanted(host: Host) -> None:
    with pytest.raises(CommandFailed, match="exit status 7") as failed:
        await host.run(sh("echo why >&2; exit 7"), capture_output=True, check=True)

    assert isinstance(failed.value, subprocess.CalledProcessError)
    assert (failed.value.returncode, failed.value.stderr, failed.value.outcome.exit_code) == (7, b"why\n", 7)


async def test_a_timeout_is_a_result_with_what_was_said_up_to_then(host: Host) -> None:
    late = await host.run(sh("echo part; echo err >&2; sleep 1000"), capture_output=True, timeout=0.3)
    idle = await host.run(sh("echo part; sleep 1000"), capture_output=True, text=True, idle_timeout=0.3)

    assert (late.outcome.kind, late.ok, late.timeout) == (Kind.TIMEOUT, False, 0.3)
    assert (late.returncode, late.stdout, late.stderr) == (-9, b"part\n", b"err\n")
    assert late.usage is not None
    assert (idle.outcome.kind, idle.stdout, idle.timeout) == (Kind.IDLE_TIMEOUT, "part\n", 0.3)


async def test_a_timeout_is_raised_with_its_result_if_that_is_wanted(host: Host) -> None:
    """Under the names of ``subprocess`` too, and also if the command made use of its grace to exit with 0."""
    polite = sh("trap 'exit 0' TERM; echo part; while :; do sleep 0.02; done")

    with pytest.raises(subprocess.TimeoutExpired) as late:
        await host.run(polite, capture_output=True, timeout=0.3, grace=PATIENCE, check=True)
    with pytest.raises(TimedOut) as idle:
        await host.run(sh("sleep 1000"), capture_output=True, idle_timeout=0.1, timeout=60, check=True)

    assert isinstance(late.value, CommandTimedOut)
    assert (late.value.returncode, late.value.stdout, late.value.idle) == (0, b"part\n", False)
    assert late.value.completed.outcome.kind is Kind.TIMEOUT
    assert isinstance(idle.value, CommandTimedOut)
    assert (idle.value.timeout, idle.value.idle) == (0.1, True)


async def test_whoever_is_ended_by_a_limit_has_failed(host: Host) -> None:
    with pytest.raises(CommandExited) as failed:
        await host.run(["yes"], capture_output=True, output_limit=10_000, check=True)

    assert isinstance(failed.value, subprocess.CalledProcessError)
    assert failed.value.outcome.kind is Kind.OUTPUT_LIMIT
    assert isinstance(failed.value.stdout, bytes)
    assert len(failed.value.stdout) > 10_000


async def test_a_run_does_not_wait_for_what_was_left_in_the_background(host: Host, gate: Gate) -> None:
    async with asyncio.timeout(PATIENCE):
        completed = await host.run(sh(f"({gate.shell}) & echo said"), capture_output=True, drain=0.05)

    assert (completed.returncode, completed.stdout) == (0, b"said\n")


async def test_output_that_is_not_captured_is_passed_on(
    host: Host, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with os.fdopen(os.dup(1), "w") as out, os.fdopen(os.dup(2), "w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)

        completed = await host.run(sh("echo out; echo err >&2"))
        partly = await host.run(sh("echo kept; echo shown >&2"), stdout=PIPE)

    assert (completed.stdout, completed.stderr) == (None, None)
    assert (partly.stdout, partly.stderr) == (b"kept\n", None)
    assert capfdbinary.readouterr() == (b"out\n", b"err\nshown\n")


async def test_output_may_be_cut_at_its_limit_while_the_command_goes_on(host: Host) -> None:
    script = sh("seq 1 100000; echo more >&2; exit 3")

    whole = await host.run(script, capture_output=True, output_limit=10, truncate_output=True)
    both = await host.run(script, capture=HeadTail(2, 2), output_limit=10, truncate_output=True)

    assert (whole.returncode, whole.outcome.kind) == (3, Kind.EXIT)
    assert len(bytes(whole.stdout + whole.stderr)) == 10
    assert whole.omitted == Omitted(dropped=588_895 + 5 - 10)
    assert both.omitted.total == 588_895 + 5 - 2 - 2
    with pytest.raises(ValueError, match="needs output_limit"):
        await host.run(script, truncate_output=True)


async def test_both_ends_of_an_output_are_kept_and_the_rest_is_counted(host: Host) -> None:
    completed = await host.run(
        sh("seq 1 100000; echo few >&2"), capture=HeadTail(4, 7, marker="|"), text=True
    )

    assert (completed.stdout, completed.stderr) == ("1\n2\n|100000\n", "few\n")
    assert completed.omitted == Omitted(stdout=588_895 - 11, stdout_at=4)


async def test_many_commands_run_side_by_side_and_answer_in_order(host: Host) -> None:
    scripts = [sh(f"echo {n}; exit {n}") for n in range(5)]
    failed = [sh("exit 1"), ["no-such-program"]]

    done = [each async for each in host.map(scripts, limit=3, text=True)]
    given = [each async for each in host.map(failed, return_exceptions=True, timeout=60)]

    assert [(each.stdout, each.returncode) for each in done] == [(f"{n}\n", n) for n in range(5)]
    assert isinstance(given[0], Completed)
    assert isinstance(given[1], SpawnFailed)


async def test_whoever_leaves_a_map_ends_what_runs(host: Host, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    commands = [["true"], sh(f"echo $$ >{started}; exec sleep 1000")]

    async with aclosing(host.map(commands)) as results:
        async for _ in results:
            pid = int(await asyncio.to_thread(started.read_text))
            break

    await gone(pid)  # A start that was cancelled is undone a moment later.


async def test_outputs_are_joined(host: Host) -> None:
    completed = await host.run(sh("echo out; echo err >&2"), stdout=PIPE, stderr=STDOUT)

    assert isinstance(completed.stdout, bytes)
    assert (sorted(completed.stdout.split()), completed.stderr) == ([b"err", b"out"], None)


async def test_a_command_runs_where_and_with_what_it_is_told_to(host: Host, tmp_path: Path) -> None:
    where = await host.run(["pwd"], cwd=tmp_path, capture_output=True, text=True)
    only = await host.run(["/usr/bin/env"], env={"A": "1"}, capture_output=True, text=True)
    policy = EnvironmentPolicy(
        Inherit.NONE, ignore_default_excludes=False, exclude=(), set=(("B", "2"),), include_only=()
    )
    laid = await host.run(["/usr/bin/env"], env={"A": "1"}, env_policy=policy, capture_output=True, text=True)
    inherited = await host.run(sh("echo $PATH"), capture_output=True, text=True)

    assert where.stdout == f"{tmp_path}\n"
    assert only.stdout == "A=1\n"
    assert sorted(laid.stdout.split()) == ["A=1", "B=2"]
    assert inherited.stdout.strip() != ""


async def test_variables_are_laid_over_those_of_the_host(host: Host) -> None:
    shown = await host.run(
        sh('echo "$A,${HOME-none},$PATH"'), extra_env={"A": "1", "HOME": None}, capture_output=True, text=True
    )
    path = await host.run(sh('echo "$PATH"'), capture_output=True, text=True)

    assert shown.stdout == f"1,none,{path.stdout}"


async def test_a_text_is_run_by_the_shell_of_the_host(host: Host) -> None:
    completed = await host.run("echo one | tr a-z A-Z; exit 3", shell=True, capture_output=True)

    assert completed.args == [host.info.shell, "-c", "echo one | tr a-z A-Z; exit 3"]
    assert (completed.stdout, completed.returncode) == (b"ONE\n", 3)
    with pytest.raises(TypeError, match="shell=True"):
        await host.run("echo one")


async def test_a_shell_runs_a_command_line(host: Host) -> None:
    handle = await host.create_subprocess_shell("echo one | tr a-z A-Z")
    other = await host.create_subprocess_exec("echo", "x y", stdin=None)

    assert await handle.communicate() == (b"ONE\n", b"")
    assert await other.communicate() == (b"x y\n", b"")


async def test_a_command_that_uses_too_much_is_ended(host: Host) -> None:
    talkative = await host.run(["yes"], capture_output=True, output_limit=10_000)
    busy = await host.run(sh("while :; do :; done"), limits=Limits(cpu=1), capture_output=True)

    assert talkative.outcome.kind is Kind.OUTPUT_LIMIT
    assert busy.outcome.kind is Kind.CPU_LIMIT
