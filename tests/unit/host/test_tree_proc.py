"""Whether /proc tells of our own processes."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import Fault, HostUnfit, SpawnFailed
from holdfast.host import tree
from holdfast.host.environ import Environment
from holdfast.host.spawn import Spawner
from tests.fakes.process import command, nothing_left_open


def test_our_own_is_fit() -> None:
    tree.check_proc()


def mounted(place: Path, number: int, status: str) -> str:
    """What another mount could look like."""
    (place / str(number)).mkdir()
    (place / str(number) / "status").write_text(status, encoding="ascii")
    (place / "self").symlink_to(str(number))
    return str(place)


def test_one_that_is_empty_is_not(tmp_path: Path) -> None:
    """Nobody would be found in it, and a tree be taken for ended."""
    with pytest.raises(HostUnfit, match=r"cannot be read: No such file or directory; .* mount -t proc"):
        tree.check_proc(str(tmp_path))


@pytest.mark.parametrize(
    ("ahead", "status"),
    [(1, "Name:\tx\nNSpid:\t{0}\n"), (0, "Name:\tx\nNSpid:\t{0}\t{0}\n")],
    ids=["another number", "the same number by chance"],
)
def test_one_of_another_namespace_is_not(tmp_path: Path, ahead: int, status: str) -> None:
    """The numbers in it are those of others."""
    number = os.getpid() + ahead
    place = mounted(tmp_path, number, status.format(number))

    with pytest.raises(HostUnfit, match=r"is that of another PID namespace; .* mount -t proc"):
        tree.check_proc(place)


def test_a_host_that_is_short_of_descriptors_is_not_unfit() -> None:
    """It can be seen later."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, most[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            tree.check_proc()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def test_a_kernel_that_does_not_tell_of_namespaces_is_taken_at_its_number(tmp_path: Path) -> None:
    tree.check_proc(mounted(tmp_path, os.getpid(), "Name:\tx\n"))


def test_a_start_says_that_the_host_is_unfit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fork server may have to be replaced after somebody has covered /proc."""
    look = tree.check_proc
    monkeypatch.setattr(tree, "check_proc", lambda: look(str(tmp_path)))
    with nothing_left_open():
        spawner = Spawner(Environment({}))

        with pytest.raises(SpawnFailed) as caught:
            spawner.start(command("true"))

        spawner.close()
    assert caught.value.fault is Fault.SYSTEM
    assert caught.value.reason.startswith(f"{tmp_path} cannot be read")


def test_a_server_refuses_to_start() -> None:
    """It would say of trees that they have ended, and kill nobody."""
    unshare = [shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("no PID namespace can be made here")

    serve = [sys.executable, "-m", "holdfast", "serve", "--listen", "stdio://"]
    done = subprocess.run([*unshare, *serve], capture_output=True, text=True, check=False, input="")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "Error: this host cannot run processes: /proc is that of another PID namespace; "
    )
