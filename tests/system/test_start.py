"""Starts and what they give: failures told apart, environments, refused fields, writes, files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Refusal, client, write_params
from tests.fakes.server import Program, commands, eventually, program_at

INHERIT_ALL = {
    "inherit": "all",
    "ignoreDefaultExcludes": True,
    "exclude": [],
    "set": {},
    "includeOnly": [],
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """A server with a variable that is not UTF-8 in its environment, as old locales leave behind."""
    with program_at(env={b"HF_BAD": b"x\xe9", b"HF_\xff": b"x", b"HF_GOOD": b"fine"}) as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


# Failures.


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_a_missing_program_and_a_missing_directory_are_told_apart_and_named(
    url: str, *, tty: bool
) -> None:
    """The texts clients know are the same for both; the data says which one to repair."""
    async with client(url) as talking:
        with pytest.raises(Refusal) as no_program:
            await talking.start("p", "/nothing/here", tty=tty)
        with pytest.raises(Refusal) as no_directory:
            await talking.start("p", "/bin/true", cwd="file:///no/such/place", tty=tty)
        with pytest.raises(Refusal) as both:
            await talking.start("p", "/nothing/here", cwd="file:///no/such/place", tty=tty)

    assert no_program.value.code == no_directory.value.code == both.value.code == -32603
    assert (no_program.value.data["fault"], no_program.value.data["subject"]) == ("program", "/nothing/here")
    assert (no_directory.value.data["fault"], no_directory.value.data["subject"]) == (
        "directory",
        "/no/such/place",
    )
    assert no_directory.value.text == "No such file or directory (os error 2)"
    assert both.value.data["fault"] == "directory"


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_a_file_as_directory_is_named_too(url: str, tmp_path: Path, *, tty: bool) -> None:
    """The other way a directory can be wrong."""
    path = tmp_path / "file"
    path.touch()
    async with client(url) as talking:
        with pytest.raises(Refusal) as refusal:
            await talking.start("p", "/bin/true", cwd=path.as_uri(), tty=tty)

    assert refusal.value.text == "Not a directory (os error 20)"
    assert refusal.value.data["fault"] == "directory"
    assert refusal.value.data["subject"] == str(path)


async def test_a_failed_start_leaves_the_name_free_and_no_process(served: tuple[Program, str]) -> None:
    """A client repairs its request and sends it again under the same name."""
    server, url = served
    before = commands(server.pid)
    async with client(url) as talking:
        for _ in range(20):
            with pytest.raises(Refusal):
                await talking.start("p", "/nothing/here")
        await talking.start("p", "echo", "hi")
        tale = await talking.closed("p")

    assert tale.data() == b"hi\n"
    # Its shim is told after its client that nobody needs its number any more.
    await eventually(lambda: commands(server.pid) <= before)


# The environment.


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_a_variable_that_is_not_utf_8_harms_nobody_and_reaches_the_child(
    url: str, *, tty: bool
) -> None:
    """One such variable must not cost a client its answer, nor the child its bytes."""
    async with client(url) as talking:
        await talking.start("p", "env", "-0", env={}, envPolicy=INHERIT_ALL, tty=tty)
        tale = await talking.closed("p")

    variables = tale.data().split(b"\0")
    assert b"HF_BAD=x\xe9" in variables
    assert b"HF_\xff=x" in variables
    assert b"HF_GOOD=fine" in variables


async def test_without_a_policy_the_child_gets_exactly_what_the_request_says(url: str) -> None:
    """Nothing of the server's own environment leaks."""
    async with client(url) as talking:
        await talking.start("p", "/usr/bin/env", env={"A": "1", "B": "ü"})
        tale = await talking.closed("p")

    assert sorted(tale.data().split(b"\n")) == [b"", b"A=1", "B=ü".encode()]


# Fields of a later day.

LATER: dict[str, Any] = {
    "networkProxy": {
        "proxy": {
            "enabled": True,
            "enableSocks5": False,
            "enableSocks5Udp": False,
            "allowUpstreamProxy": False,
            "dangerouslyAllowAllUnixSockets": False,
            "mode": "limited",
            "allowLocalBinding": False,
        }
    },
    "enforceManagedNetwork": True,
}


@pytest.mark.parametrize("field", LATER)
async def test_a_field_this_server_does_not_support_is_refused_and_nothing_starts(
    url: str, tmp_path: Path, field: str
) -> None:
    """A protection that was asked for and silently left out would be worse than none."""
    proof = tmp_path / "started"
    async with client(url) as talking:
        with pytest.raises(Refusal) as refusal:
            await talking.start("p", "touch", str(proof), **{field: LATER[field]})
        with pytest.raises(Refusal, match="unknown process id p"):
            await talking.read("p")
        await talking.start("p", "true", **{field: False if field == "enforceManagedNetwork" else None})
        await talking.closed("p")

    assert refusal.value.code == -32602
    assert f"`{field}`" in refusal.value.text
    assert "not supported" in refusal.value.text
    assert not proof.exists()


# Writing to those who do not read any more.


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_a_write_after_the_exit_is_answered_stdin_closed(url: str, *, tty: bool) -> None:
    """``accepted`` would claim that somebody has the bytes."""
    async with client(url) as talking:
        await talking.start("p", "true", pipeStdin=True, tty=tty)
        await talking.closed("p")

        statuses = [await talking.write("p", b"x", f"w{number}") for number in range(3)]

    assert statuses == ["stdinClosed"] * 3


async def test_a_write_after_the_child_closed_its_stdin_is_answered_stdin_closed(url: str) -> None:
    """A child may live on without listening."""
    async with client(url) as talking:
        await talking.start("p", "sh", "-c", "exec <&-; echo closed; exec sleep 1000", pipeStdin=True)
        await talking.until(lambda: talking.tale("p").data() == b"closed\n")

        status = await talking.write("p", b"x", "w")
        again = await talking.write("p", b"x", "w")
        await talking.terminate("p")

    assert (status, again) == ("stdinClosed", "stdinClosed")


async def test_an_accepted_write_stays_accepted_after_the_exit(url: str) -> None:
    """A client that repeats a write after a reconnect asks whether it was taken, and it was."""
    async with client(url) as talking:
        await talking.start("p", "head", "-c", "1", pipeStdin=True)
        first = await talking.write("p", b"x", "w")
        tale = await talking.closed("p")

        again = await talking.write("p", b"x", "w")
        new = await talking.write("p", b"x", "w2")

    assert (first, again, new) == ("accepted", "accepted", "stdinClosed")
    assert tale.data() == b"x"


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_an_accepted_write_stays_accepted_while_its_process_is_being_terminated(
    url: str, *, tty: bool
) -> None:
    """The repeat asks about the past; only a new write has come too late."""
    async with client(url) as talking:
        await talking.start("p", "cat", pipeStdin=True, tty=tty)
        first, terminate, again, new = talking.post_together(
            ("process/write", write_params("p", b"x", "w")),
            ("process/terminate", {"processId": "p"}),
            ("process/write", write_params("p", b"x", "w")),
            ("process/write", write_params("p", b"x", "w2")),
        )
        answers = [await talking.result(answer) for answer in (first, terminate, again)]
        with pytest.raises(Refusal) as late:
            await talking.result(new)

    assert answers == [
        {"status": "accepted"},
        {"running": True, "survivors": [], "treeExact": True},
        {"status": "accepted"},
    ]
    assert (late.value.code, late.value.text) == (-32603, "failed to write to process stdin")


async def test_a_process_without_stdin_says_so(url: str) -> None:
    """It was asked for without one."""
    async with client(url) as talking:
        await talking.start("p", "sleep", "1000")
        status = await talking.write("p", b"x", "w")
        await talking.terminate("p")

    assert status == "stdinClosed"


# What a child is given.


async def test_a_child_has_only_its_own_three_files(url: str) -> None:
    """A leaked descriptor keeps pipes of other processes open."""
    async with client(url) as talking:
        await talking.start("other", "sleep", "1000", pipeStdin=True)
        await talking.start("p", "ls", "/proc/self/fd")
        tale = await talking.closed("p")
        await talking.terminate("other")

    assert tale.data().split() == [b"0", b"1", b"2", b"3"], "the fourth is the directory that ls reads"


async def test_the_limit_of_open_files_is_the_one_the_server_was_started_with(url: str) -> None:
    """The server raises its own; programs that use select() must not get the raised one."""
    async with client(url) as talking:
        await talking.start("p", "sh", "-c", "ulimit -Sn")
        tale = await talking.closed("p")

    assert int(tale.data()) == os.sysconf("SC_OPEN_MAX")


async def test_terminate_kills_the_whole_group(served: tuple[Program, str]) -> None:
    """A shell's children must not outlive it."""
    server, url = served
    before = commands(server.pid)
    async with client(url) as talking:
        await talking.start("p", "sh", "-c", "sleep 1000 & sleep 1000 & echo $$; wait")
        await talking.until(lambda: talking.tale("p").data())
        assert await talking.terminate("p")
        await talking.closed("p")

    await eventually(lambda: commands(server.pid) <= before)
