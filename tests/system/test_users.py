"""Starts as another user: tokens, servers of other users, the next server, the command line, the log."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import PIPE
from holdfast.errors import Forbidden, UserFault, UserRefused
from tests.fakes.client import Client, Message, Refusal, client, start_params
from tests.fakes.mortal import kill_server, mortal_at
from tests.fakes.server import PATIENCE, program_at
from tests.fakes.terminal import holdfast as run_holdfast
from tests.fakes.tokens import signing_options, token
from tests.fakes.trees import host_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user"),
]

NOBODY = pwd.getpwnam("nobody")
SOMEBODY = "4242:4243"


async def whoami(talking: Client, name: str, user: str) -> str:
    """Who a command is that was started as a user."""
    await talking.start(name, "id", "-u", user=user)
    return (await talking.closed(name)).data().decode().strip()


async def refusal(talking: Client, user: str, **options: Any) -> Message:
    with pytest.raises(Refusal) as caught:
        await talking.call("process/start", start_params("refused", "id", user=user, **options))
    error: Message = caught.value.error
    return error


# Tokens.


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with program_at(*signing_options(tmp_path_factory.mktemp("auth"))) as (_, url):
        yield url


@pytest.mark.parametrize("user", ["nobody", str(NOBODY.pw_uid), SOMEBODY, "no-such-user", "0:7"])
async def test_a_token_allows_no_other_user_unless_it_says_so(url: str, user: str) -> None:
    """Whoever may not be a user does not learn whether there is one."""
    async with client(url, token=token("plain", holdfast={})) as talking:
        error = await refusal(talking, user)

    assert error == {
        "code": -32600,
        "message": f"not allowed by the token: user {user!r}",
        "data": {"kind": "forbidden", "forbidden": "user", "subject": user},
    }


async def test_the_servers_own_user_is_everybodys(url: str) -> None:
    async with client(url, token=token("plain")) as talking:
        assert [await whoami(talking, user, user) for user in ("root", "0", "0:0")] == ["0"] * 3


async def test_a_token_lists_users_as_requests_spell_them(url: str) -> None:
    async with client(url, token=token("some", holdfast={"users": ["nobody", "42*:4243"]})) as talking:
        assert await whoami(talking, "a", "nobody") == str(NOBODY.pw_uid)
        assert await whoami(talking, "b", SOMEBODY) == "4242"
        for user in (str(NOBODY.pw_uid), f"{NOBODY.pw_uid}:0", "4242:0", "daemon"):
            assert (await refusal(talking, user))["data"]["forbidden"] == "user", user


async def test_a_restart_asks_the_token_again(url: str) -> None:
    """Two tokens of one principal may allow different things."""
    listed, plain = token("both", holdfast={"users": ["nobody"]}), token("both")
    async with holdfast.connect(url, token=listed) as host:
        await host.start(["sleep", "1000"], cwd="/", user="nobody", name="kept", keep=True)
    async with holdfast.connect(url, token=plain) as host:
        with pytest.raises(Forbidden) as caught:
            await host.restart("kept", grace=0)

    assert (caught.value.what, caught.value.subject) == ("user", "nobody")


async def test_variables_that_a_token_does_not_allow_are_not_given(url: str) -> None:
    allowed = {"users": ["nobody"], "env": ["PATH", "HOME"]}
    async with client(url, token=token("few", holdfast=allowed)) as talking:
        await talking.start("p", "env", user="nobody")
        lines = (await talking.closed("p")).data().decode().splitlines()

    assert {line.partition("=")[0] for line in lines} == {"PATH", "HOME"}


def test_a_token_is_made_with_users(tmp_path: Path) -> None:
    signing_options(tmp_path)
    options = ("--secret-file", str(tmp_path / "secret"), "--subject", "ci", "--expires", "1h")

    made = run_holdfast("token", *options, "--user", "nobody", "--user", "ci-*", "-o", "json")

    assert b'"users": ["nobody", "ci-*"]' in made.stdout


# Other servers.


async def test_a_server_that_is_not_root_starts_its_own_user_only() -> None:
    with host_of("nobody") as server:
        async with client(server.url) as talking:
            error = await refusal(talking, "root")
            assert await whoami(talking, "same", "nobody") == str(NOBODY.pw_uid)

    assert error["code"] == -32602
    assert error["data"] == {
        "kind": "userRefused",
        "user": "root",
        "fault": "notRoot",
        "reason": "the server is not root, and starts processes as its own user only",
    }


async def test_a_user_has_all_its_groups(tmp_path: Path) -> None:
    """The groups are those of the host's database when the command is started, and none of the server's."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"]).returncode:
        pytest.skip("no mounts of one's own can be made here")
    home = tmp_path / "home"
    home.mkdir()
    passwd, group = Path("/etc/passwd").read_text(), Path("/etc/group").read_text()
    (tmp_path / "passwd").write_text(f"{passwd}builder:x:4242:4243::{home}:/bin/sh\n")
    (tmp_path / "group").write_text(f"{group}cc:x:4244:builder\nnet:x:4245:builder,other\nno:x:4246:other\n")
    mounts = "; ".join(f"mount --bind {tmp_path}/{name} /etc/{name}" for name in ("passwd", "group"))
    script = f'{mounts}; exec "$@"'
    serve = (sys.executable, "-m", "holdfast", "serve", "--listen", "stdio")
    far = ("unshare", "-m", "sh", "-ec", script, "sh", *serve)

    async with holdfast.connect("stdio:" + subprocess.list2cmdline(far).replace('"$@"', "'$@'")) as host:
        done = await host.run(
            ["sh", "-c", "id -G; echo $HOME"], cwd="/", user="builder", capture_output=True, text=True
        )

    assert done.stdout.split() == ["4243", "4244", "4245", str(home)]


# The next server.


@pytest.mark.parametrize("terminal", [False, True])
async def test_it_outlives_its_server(*, terminal: bool) -> None:
    with mortal_at() as (program, url):
        async with holdfast.connect(url) as host:
            script = "id -u; read line; echo $line; exec sleep 1000"
            handle = await host.start(
                ["sh", "-c", script],
                cwd="/",
                user=SOMEBODY,
                stdin=PIPE,
                terminal=terminal,
                keep=True,
                name="p",
            )
            assert handle.stdin is not None
            assert handle.stdout is not None
            assert (await handle.stdout.readline()).strip() == b"4242"

            kill_server(program)
            handle.stdin.write(b"hello\n")
            await handle.stdin.drain()
            said = await handle.stdout.readline()
            if terminal:  # It shows what is typed, too.
                said = await handle.stdout.readline()
            again = await host.restart("p", grace=0)
            assert again.stdout is not None

            assert said.strip() == b"hello"
            assert (await again.stdout.readline()).strip() == b"4242"
            ended = await again.end(0.0)
            assert (list(ended.survivors), ended.exact) == ([], True)


# The command line.


@pytest.mark.parametrize("verb", ["run", "exec"])
def test_the_command_line_has_it_near_and_far(verb: str) -> None:
    with program_at() as (_, url):
        for where in ((), ("-H", url)):
            options = (*where, "-w", "/", "--user", "nobody")
            done = run_holdfast(verb, *options, "--", "sh", "-c", "id -u; echo $HOME")
            none = run_holdfast(verb, *where, "--user", "no-such-user", "--", "id")

            assert (done.returncode, done.stdout.split()) == (
                0,
                [str(NOBODY.pw_uid).encode(), NOBODY.pw_dir.encode()],
            )
            assert (none.returncode, none.stdout) == (125, b"")
            assert b"no such user" in none.stderr


async def test_the_audit_log_says_as_whom(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    with program_at("--audit-log", str(log)) as (_, url):
        async with client(url) as talking, asyncio.timeout(PATIENCE):
            await whoami(talking, "p", "nobody")

    assert '"user":"nobody"' in log.read_text()


async def test_near_and_far_say_the_same_of_who_is_refused() -> None:
    with program_at() as (_, url):
        async with holdfast.local() as near, holdfast.connect(url) as far:
            told = []
            for host in (near, far):
                with pytest.raises(UserRefused) as caught:
                    await host.run(["id"], user="no-such-user")
                told.append((caught.value.user, caught.value.fault, caught.value.reason))

    assert told[0] == told[1]
    assert told[0][1] is UserFault.UNKNOWN
