"""What the host says of its users, and who may become one of them."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import UserRefused
from holdfast.faults import UserFault
from holdfast.host import users
from holdfast.users import Credentials

NOBODY = pwd.getpwnam("nobody")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")

LOOK = """
import json, os, sys
from holdfast.errors import UserRefused
from holdfast.host import users
if sys.argv[2:]:
    os.setresuid(*[int(sys.argv[2])] * 3)
try:
    found = users.find(sys.argv[1])
    told = [found.uid, found.gid, found.groups, dict(found.variables), found.own]
except UserRefused as error:
    told = [error.fault.value, error.reason]
print(json.dumps(told))
"""


def looked_up(name: str, *more: str, under: tuple[str, ...] = ()) -> list[object]:
    """What another program finds, which runs under a further command or as somebody else."""
    done = subprocess.run(
        [*under, sys.executable, "-c", LOOK, name, *more], capture_output=True, text=True, check=True
    )
    told: list[object] = json.loads(done.stdout)
    return told


def refused(name: str) -> UserFault:
    with pytest.raises(UserRefused) as caught:
        users.find(name)
    assert caught.value.user == name
    return caught.value.fault


@as_root
@pytest.mark.parametrize("name", ["nobody", str(NOBODY.pw_uid)])
def test_a_user_has_what_the_database_says(name: str) -> None:
    found = users.find(name)

    assert (found.uid, found.gid, found.own) == (NOBODY.pw_uid, NOBODY.pw_gid, False)
    assert set(found.groups) == set(os.getgrouplist("nobody", NOBODY.pw_gid))
    assert dict(found.variables) == {
        "HOME": NOBODY.pw_dir,
        "USER": "nobody",
        "LOGNAME": "nobody",
        "SHELL": NOBODY.pw_shell or "/bin/sh",
    }


@as_root
def test_whoever_names_a_group_has_no_other() -> None:
    found = users.find(f"{NOBODY.pw_uid}:4321")

    assert (found.uid, found.gid, found.groups) == (NOBODY.pw_uid, 4321, (4321,))
    assert dict(found.variables)["HOME"] == NOBODY.pw_dir


@as_root
def test_numbers_need_no_entry_if_there_are_both() -> None:
    """The group of a user without an entry is not guessed: the group of the same number may be any."""
    assert users.find("424242:7") == Credentials(
        424242,
        7,
        (7,),
        (("HOME", "/"), ("USER", "424242"), ("LOGNAME", "424242"), ("SHELL", "/bin/sh")),
    )
    with pytest.raises(UserRefused, match="'424242:GID'") as caught:
        users.find("424242")
    assert caught.value.fault is UserFault.UNKNOWN


def test_who_is_not_there_is_refused() -> None:
    assert refused("no-such-user") is UserFault.UNKNOWN
    assert refused("no-such-\u00fcser") is UserFault.UNKNOWN
    assert refused("1:x") is UserFault.MALFORMED


def test_the_own_user_keeps_what_the_server_has() -> None:
    uid, gid = os.geteuid(), os.getegid()
    me = pwd.getpwuid(uid)

    found = [users.find(name) for name in (me.pw_name, str(uid), f"{uid}:{gid}")]

    assert all(each == found[0] for each in found)
    assert (found[0].own, found[0].groups) == (True, ())
    assert dict(found[0].variables)["HOME"] == me.pw_dir
    assert set(users.own_names()) == {me.pw_name, str(uid), f"{uid}:{gid}"}


@as_root
def test_the_own_user_with_another_group_is_another_one() -> None:
    found = users.find("0:7")

    assert (found.own, found.uid, found.groups) == (False, 0, (7,))


@as_root
def test_who_is_not_root_becomes_nobody_else_but_may_be_itself() -> None:
    other, same = looked_up("root", str(NOBODY.pw_uid)), looked_up("nobody", str(NOBODY.pw_uid))
    group = looked_up(f"{NOBODY.pw_uid}:27", str(NOBODY.pw_uid))

    assert other == group == ["notRoot", "the server is not root, and starts processes as its own user only"]
    assert (same[0], same[-1]) == (NOBODY.pw_uid, True)


@as_root
@pytest.mark.skipif(shutil.which("capsh") is None, reason="no program here takes capabilities away")
def test_who_could_not_end_its_processes_becomes_nobody_else() -> None:
    """Root in a container may lack any capability."""
    under = ("capsh", "--drop=cap_kill", "--", "-c", 'exec "$@"', "sh")

    assert looked_up("nobody", under=under) == ["notRoot", "the server is root without CAP_KILL"]


def private(tmp_path: Path, passwd: str, group: str) -> tuple[str, ...]:
    """A command that runs another with users and groups of its own."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"]).returncode:
        pytest.skip("no mounts of one's own can be made here")
    for name, text in (("passwd", passwd), ("group", group)):
        (tmp_path / name).write_text(Path("/etc", name).read_text() + text)
    mounts = "; ".join(f"mount --bind {tmp_path}/{name} /etc/{name}" for name in ("passwd", "group"))
    return "unshare", "-m", "sh", "-ec", f'{mounts}; exec "$@"', "sh"


@as_root
def test_all_groups_of_a_user_are_found(tmp_path: Path) -> None:
    """Also if they are more than are asked for at first."""
    groups = "".join(f"g{gid}:x:{gid}:other,builder\n" for gid in range(5000, 5200))
    under = private(tmp_path, "builder:x:4242:4243::/home/builder:\n", groups)

    uid, gid, found, variables, _ = looked_up("builder", under=under)

    assert (uid, gid) == (4242, 4243)
    assert isinstance(found, list)
    assert set(found) == {4243, *range(5000, 5200)}
    assert variables == {
        "HOME": "/home/builder",
        "USER": "builder",
        "LOGNAME": "builder",
        "SHELL": "/bin/sh",
    }
