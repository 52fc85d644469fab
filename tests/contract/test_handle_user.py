"""Commands of another user: whose they are, what they have, and how they are kept in hand."""

from __future__ import annotations

import asyncio
import os
import pwd
import secrets
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import PIPE, Completed, Handle, Host, Kind, Limits, Sandbox
from holdfast.errors import Fault, SpawnFailed, UserFault, UserRefused
from tests.fakes.server import eventually, is_running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user"),
]

NOBODY = pwd.getpwnam("nobody")
SOMEBODY = "4242:4243"

LOOK = """
status() { sed -n "s/^$1:[[:space:]]*//p" /proc/$$/status; }
for name in Uid Gid Groups CapInh CapPrm CapEff CapAmb NoNewPrivs CapBnd; do echo $name $(status $name); done
echo files; ls -m /proc/$$/fd
"""


async def sh(host: Host, script: str, user: str | int = "nobody", **options: Any) -> Completed[str]:
    given = {"cwd": "/", **options}
    done: Completed[str] = await host.run(
        ["sh", "-c", script], user=user, capture_output=True, text=True, **given
    )
    return done


def owner(pid: int) -> int:
    return os.stat(f"/proc/{pid}").st_uid


def bounding() -> str:
    """The capabilities that programs with the bit for set-uid may get; those of a login."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("CapBnd:"))


@pytest.mark.parametrize("user", ["nobody", NOBODY.pw_uid, SOMEBODY])
async def test_it_has_the_rights_of_that_user_and_nothing_of_the_servers(host: Host, user: str | int) -> None:
    """Neither a capability nor a group, and no descriptor but its own three."""
    uid, gid = (NOBODY.pw_uid, NOBODY.pw_gid) if user != SOMEBODY else (4242, 4243)

    done = await sh(host, LOOK, user)

    assert done.stderr == ""
    *lines, _, files = done.stdout.splitlines()
    found = {name: rest for name, *rest in map(str.split, lines)}
    groups = [gid] if user == SOMEBODY else sorted(os.getgrouplist("nobody", gid))
    assert found == {
        "Uid": [str(uid)] * 4,
        "Gid": [str(gid)] * 4,
        "Groups": [str(group) for group in groups],
        **{name: ["0" * 16] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")},
        "NoNewPrivs": ["0"],
        "CapBnd": [bounding()],
    }
    assert files == "0, 1, 2"


async def test_it_has_a_session_of_keys_of_its_own(host: Host) -> None:
    """Or it could use the keys of the session that the server was started in."""
    if not os.path.exists("/proc/keys"):
        pytest.skip("this kernel keeps no keys")

    first, second = [(await sh(host, "grep ' _ses' /proc/keys")).stdout for _ in range(2)]

    assert first.split()[0] != second.split()[0]


async def test_home_and_the_names_are_those_of_the_user_unless_the_request_has_others(host: Host) -> None:
    script = "echo $HOME $USER $LOGNAME $SHELL"
    shell = NOBODY.pw_shell or "/bin/sh"

    inherited, none = await sh(host, script), await sh(host, script, env={"PATH": os.defpath})
    own = await sh(host, script, extra_env={"HOME": "/h", "USER": "u"})
    without = await sh(host, script, extra_env={"HOME": None})
    number = await sh(host, script, SOMEBODY)

    assert inherited.stdout == none.stdout == f"{NOBODY.pw_dir} nobody nobody {shell}\n"
    assert own.stdout == f"/h u nobody {shell}\n"
    assert without.stdout == f"nobody nobody {shell}\n"
    assert number.stdout == "/ 4242 4242 /bin/sh\n"


async def test_its_pipes_and_its_terminal_are_its_own(host: Host) -> None:
    """They are opened by name, too: without that, nobody but root could."""
    script = "read line </dev/stdin; echo $line >/dev/stdout; echo err >/dev/stderr"

    pipes = await sh(host, script, input="in\n")
    terminal = await sh(host, 'stat -c %u "$(tty)"; : >"$(tty)" && echo fine', SOMEBODY, terminal=True)
    null = await sh(host, "stat -Lc %u /dev/stdin")

    assert (pipes.stdout, pipes.stderr) == ("in\n", "err\n")
    assert terminal.stdout.split() == ["4242", "fine"]
    assert null.stdout == "0\n"


# What is refused.


async def line_of(handle: Handle) -> bytes:
    assert handle.stdout is not None
    return await handle.stdout.readline()


async def fault(host: Host, user: str | int, **options: Any) -> UserFault:
    with pytest.raises(UserRefused) as caught:
        await sh(host, "true", user, **options)
    assert caught.value.user == str(user)
    return caught.value.fault


async def test_who_is_not_there_is_refused(host: Host) -> None:
    assert await fault(host, "no-such-user") is UserFault.UNKNOWN
    assert await fault(host, 4242) is UserFault.UNKNOWN
    assert await fault(host, "") is UserFault.MALFORMED
    assert await fault(host, -1) is UserFault.UNKNOWN
    assert await fault(host, 2**32 - 1) is UserFault.MALFORMED


async def test_no_other_user_is_put_into_a_sandbox(host: Host) -> None:
    assert await fault(host, "nobody", sandbox=Sandbox.read_only()) is UserFault.SANDBOX
    assert (await sh(host, "true", sandbox=Sandbox.full_access())).returncode == 0


async def test_the_servers_own_user_is_nothing_special(host: Host) -> None:
    done = await sh(host, "id -u; echo $HOME", os.geteuid())

    assert done.stdout.split() == [str(os.geteuid()), pwd.getpwuid(os.geteuid()).pw_dir]


async def test_a_directory_is_entered_by_the_rights_of_that_user(host: Host, tmp_path: Path) -> None:
    """The error names the directory, and the user: the server itself could enter it."""
    tmp_path.chmod(0o700)

    with pytest.raises(SpawnFailed) as caught:
        await sh(host, "true", cwd=tmp_path)

    facts = caught.value
    assert (facts.fault, facts.subject) == (Fault.DIRECTORY, str(tmp_path))
    assert str(facts) == (f"cannot start: directory {str(tmp_path)!r}: Permission denied for user 'nobody'")


async def test_a_program_is_run_by_the_rights_of_that_user(host: Host, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    tool = tmp_path / "holdfast-tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    path = {"PATH": f"{tmp_path}:{os.defpath}"}
    for name in (str(tool), tool.name):
        with pytest.raises(SpawnFailed, match="Permission denied for user 'nobody'") as caught:
            await host.run([name], cwd="/", user="nobody", env=path)
        assert (caught.value.fault, caught.value.subject) == (Fault.PROGRAM, name)
        assert (await host.run([name], cwd="/", env=path)).returncode == 0


# How it is kept in hand.

TREE = "trap '' TERM; setsid sleep 1000 & (sleep 1000 &) ; sleep 1000 & echo ready; wait"


async def test_signals_reach_it_and_it_cannot_reach_who_ends_it(host: Host) -> None:
    """Its shim belongs to root: it can be neither stopped nor traced by what it watches over."""
    traps = "trap 'echo got; exit 3' USR1; kill -STOP $PPID && echo stopped; echo ready"
    script = f"{traps}; while :; do sleep 0.01; done"
    handle = await host.start(["sh", "-c", script], cwd="/", user="nobody", stderr=holdfast.DEVNULL)
    said = await line_of(handle)

    await handle.send_signal(signal.SIGUSR1)

    assert (said, await line_of(handle)) == (b"ready\n", b"got\n")
    assert (await handle.wait()).exit_code == 3


async def test_the_whole_tree_is_ended(host: Host) -> None:
    uid = 10_000_000 + secrets.randbelow(1_000_000)  # Of nobody else, whatever else is tested now.
    handle = await host.start(["sh", "-c", TREE], cwd="/", user=f"{uid}:{uid}")
    assert await line_of(handle) == b"ready\n"
    family = [int(name) for name in os.listdir("/proc") if name.isdigit() and _is(int(name), uid)]

    ended = await handle.end(0.05)

    assert len(family) >= 4
    assert (list(ended.survivors), ended.exact) == ([], True)
    await eventually(lambda: not any(is_running(pid) for pid in family))


def _is(pid: int, uid: int) -> bool:
    try:
        return owner(pid) == uid
    except FileNotFoundError:
        return False


async def test_limits_are_kept_and_usage_is_told(host: Host) -> None:
    files = await sh(host, "ulimit -n; ulimit -Hn", limits=Limits(files=33))
    # What has no end of a line is kept.  Should nobody end it, it ends with an error of its own.
    memory = await sh(host, "ulimit -v 1000000; exec tail /dev/zero", limits=Limits(memory=64 << 20))
    busy = await sh(host, "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done")

    assert files.stdout.split() == ["33", "33"]
    assert memory.outcome.kind is Kind.OOM
    assert busy.usage is not None
    assert busy.usage.user_us + busy.usage.system_us >= 20_000


async def test_it_is_started_again_as_the_same_user(host: Host) -> None:
    name = f"job-{uuid.uuid4()}"
    first = await host.start(
        ["sh", "-c", "id -u; exec sleep 1000"], cwd="/", user=SOMEBODY, name=name, keep=True
    )
    assert await line_of(first) == b"4242\n"

    second = await host.restart(name, grace=0)

    assert await line_of(second) == b"4242\n"
    await second.kill()
    await second.wait()


async def test_many_at_once_do_not_get_into_each_others_users(host: Host) -> None:
    """Shims take one command after the other, each with the rights that were asked for."""

    async def one(number: int) -> bool:
        uid = 5000 + number if number % 3 else os.geteuid()
        user = f"{uid}:{uid}" if number % 3 else None
        done = await host.run(["id", "-u"], cwd="/", user=user, capture_output=True, text=True)
        return done.stdout == f"{uid}\n"

    assert all(await asyncio.gather(*(one(number) for number in range(24))))


async def test_much_input_and_output_go_through(host: Host) -> None:
    handle = await host.start(["cat"], cwd="/", user="nobody", stdin=PIPE)

    said, _ = await handle.communicate(b"x" * 500_000)

    assert (len(said or b""), handle.returncode) == (500_000, 0)
