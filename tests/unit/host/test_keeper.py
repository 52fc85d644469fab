"""The keeper: whom it starts again, how it ends, and when it gives up."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import HostUnfit
from holdfast.host import keeper
from holdfast.host.keeper import KeeperOrder
from holdfast.reports import News
from tests.fakes.backends import LONG
from tests.fakes.fork_server import GUARD, has_ended, until
from tests.fakes.keeper import (
    FakeKeeper,
    FakeServer,
    Pipes,
    asked,
    comm,
    handed,
    next_server,
    until_news,
)
from tests.fakes.process import is_alive

# A hang is cut off; nothing here is measured.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * GUARD)]

Begin = Callable[..., FakeKeeper]


# The spare.


def test_a_spare_that_was_killed_is_replaced_and_the_server_goes_on(begin: Begin) -> None:
    kept = begin()
    spare = kept.spare()
    server = kept.server()
    server.rise()

    os.kill(spare, signal.SIGKILL)
    another = kept.spare()

    assert another != spare
    assert is_alive(server.pid)
    server.die()
    assert next_server(kept).handover.generation == 2  # type: ignore[union-attr]


def test_spare_and_server_may_die_at_once(begin: Begin) -> None:
    kept = begin()
    spare = kept.spare()
    server = kept.server()
    server.rise()
    pipes = Pipes(kept, server.shim(), "read _", key=1)
    pid = until_news(pipes.shim, News.STARTED).value
    pipes.close()

    os.kill(spare, signal.SIGKILL)
    server.die()
    kept.spare()

    (shim,) = handed(next_server(kept))
    state, files = asked(shim)
    assert state.pid == pid
    for fd in files.values():
        os.close(fd)


def test_a_spare_that_does_not_fork_is_replaced(begin: Begin) -> None:
    kept = begin(how="idle", patience=0.5)
    first = kept.spare()

    second = kept.spare()

    has_ended(first)
    assert second != first
    next_server(kept)


# Its end.


def test_the_keeper_is_the_process_that_was_started(kept: FakeKeeper, server: FakeServer) -> None:
    assert comm(kept.pid) == "holdfast-keeper"
    assert server.pid not in {kept.pid, *kept.children("")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_the_servers_code_is_the_keepers(
    kept: FakeKeeper, server: FakeServer, number: int
) -> None:
    pipes = Pipes(kept, server.shim(), "setsid sleep 1000 & read _", key=1)
    until_news(pipes.shim, News.STARTED)
    os.kill(kept.pid, number)

    assert server.order() is KeeperOrder.TERMINATE
    server.end(3)

    assert kept.ended() == (3, "")
    assert kept.members() == set()
    pipes.close()


@pytest.mark.parametrize("disposition", ["default", "ignore"])
def test_a_hangup_is_passed_on(begin: Begin, disposition: str) -> None:
    """Logs are opened anew then, also those of a server that was started by ``nohup``."""
    kept = begin(prefix=("env", f"--{disposition}-signal=HUP"))
    kept.spare()
    server = kept.server()
    server.rise()
    os.kill(kept.pid, signal.SIGHUP)

    assert server.order() is KeeperOrder.HANGUP
    assert kept.process.poll() is None
    ignored = int(Path(f"/proc/{server.pid}/status").read_text().split("SigIgn:")[1].split()[0], 16)
    assert bool(ignored & 1 << signal.SIGHUP - 1) is (disposition == "ignore")


def test_a_server_that_stops_leaves_no_command_behind(kept: FakeKeeper, server: FakeServer) -> None:
    """Also those that it did not end itself."""
    pipes = Pipes(kept, server.shim(), "setsid sleep 1000 & read _", key=1)
    until_news(pipes.shim, News.STARTED)
    pipes.close()
    server._shims.clear()
    shim = pipes.shim

    server.end(0)

    assert kept.ended() == (0, "")
    assert kept.members() == set()
    shim.close()


def test_without_a_server_a_signal_ends_everything(begin: Begin) -> None:
    kept = begin(cold="mute")
    spare = kept.spare()
    server = kept.server()
    server.rise()
    pipes = Pipes(kept, server.shim(), "read _", key=1)
    until_news(pipes.shim, News.STARTED)
    pipes.close()
    os.kill(spare, signal.SIGKILL)
    server.die()
    kept.spare()

    os.kill(kept.pid, signal.SIGTERM)

    assert kept.ended() == (0, "")
    assert kept.members() == set()


def test_a_signal_that_comes_before_the_server_is_ready_is_remembered(kept: FakeKeeper) -> None:
    server = kept.server()
    os.kill(kept.pid, signal.SIGTERM)

    server.rise()

    assert server.order() is KeeperOrder.TERMINATE
    server.end(0)
    assert kept.ended() == (0, "")


def test_a_server_that_dies_while_it_stops_is_not_started_again(kept: FakeKeeper, server: FakeServer) -> None:
    os.kill(kept.pid, signal.SIGTERM)
    server.order()

    server.die()

    assert kept.ended() == (0, "")
    assert kept.members() == set()


def test_when_keeper_and_server_are_dead_nobody_is_left(kept: FakeKeeper, server: FakeServer) -> None:
    """Not even those who have left their session."""
    for key in range(5):
        pipes = Pipes(kept, server.shim(), "setsid sleep 1000 & sleep 1000 & read _", key=key)
        until_news(pipes.shim, News.STARTED)
        pipes.close()

    os.kill(kept.pid, signal.SIGKILL)

    assert server.order() is KeeperOrder.LOST
    server.die()
    until(lambda: kept.members() == set())


def test_servers_that_die_again_and_again_are_given_up(begin: Begin) -> None:
    """Whoever watches over the keeper has to know."""
    kept = begin(how="crash")
    kept.spare()

    code, said = kept.ended()

    assert (code, said) == (70, "holdfast: the server dies whenever it is started: everything is ended\n")
    assert kept.members() == set()


def test_servers_that_die_after_they_have_served_are_started_again(kept: FakeKeeper) -> None:
    """However often."""
    for _ in range(7):
        next_server(kept).die()

    assert next_server(kept).handover.generation == 8  # type: ignore[union-attr]


@pytest.mark.skipif(not LONG, reason="it takes half a minute; HOLDFAST_LONG=1 does it")
def test_a_keeper_without_a_server_for_too_long_gives_up(begin: Begin) -> None:
    kept = begin(cold="mute")
    spare = kept.spare()
    server = kept.server()
    server.rise()
    os.kill(spare, signal.SIGKILL)
    server.die()
    kept.spare()

    assert kept.ended() == (
        70,
        "holdfast: there has been no server for too long: everything is ended\n",
    )
    assert kept.members() == set()


# Its arguments, and our side.


@pytest.mark.parametrize(
    "words", [[], ["3"] * 8 + ["--"], ["99", "1", "99", "99", "99", "-", "-", "1", "--", "x"]]
)
def test_it_refuses_what_makes_no_sense(compiled: str, words: list[str]) -> None:
    ran = subprocess.run([compiled, "keep", *words], check=False, capture_output=True)

    assert ran.returncode == 2
    assert ran.stderr


def test_without_the_program_there_is_no_keeper(tmp_path: Path) -> None:
    """The process stays what it is."""
    with pytest.raises(HostUnfit, match="cannot be run: No such file"):
        keeper.begin(0, (0, 0), None, [], program=str(tmp_path / "fork_server"))


def test_a_label_has_a_bound(kept: FakeKeeper, server: FakeServer) -> None:
    with pytest.raises(ValueError, match="256 bytes"):
        server.fork_server.listen("x" * 256, 0)


def test_shims_of_the_last_server_are_used_again(kept: FakeKeeper, server: FakeServer) -> None:
    """They are there already."""
    pid = asked(server.shim())[0].shim
    server.die()
    following = next_server(kept)
    (shim,) = handed(following)

    following.fork_server.regain(shim, busy=False)

    assert asked(following.fork_server.shim())[0].shim == pid
    following.fork_server.take_back(shim, usable=False)
    has_ended(pid)
    following._shims.clear()
    following.fork_server.close()
