"""Shell snapshots: a profile is read once per session, and no command can tell but by its speed."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client, Refusal, client, page_bytes
from tests.fakes.server import eventually, program_at
from tests.fakes.tokens import signing_options, token

pytestmark = pytest.mark.slow

BASH = "/bin/bash"
SNAPSHOT = {"scopeId": "s", "shell": {"name": "bash", "path": BASH}}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with program_at() as (_, url):
        yield url


class Home:
    """A home directory whose profile counts how often it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("")

    def write(self, profile: str) -> None:
        count = shlex.quote(str(self.path / "count"))
        (self.path / ".bash_profile").write_text(f"echo x >> {count}; {profile}\nexport FOUND=it\n")

    @property
    def reads(self) -> int:
        count = self.path / "count"
        return len(count.read_text().splitlines()) if count.exists() else 0

    def params(self, **more: Any) -> dict[str, Any]:
        env = {"HOME": str(self.path), "PATH": "/usr/bin:/bin", **more.pop("env", {})}
        return {"env": env, "shellSnapshot": SNAPSHOT, **more}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
async def talking(url: str) -> AsyncIterator[Client]:
    async with client(url) as talking:
        yield talking


async def said(talking: Client, name: str, command: str, **options: Any) -> str:
    """What a command of a login shell says."""
    await talking.start(name, BASH, "-lc", command, **options)
    return (await talking.closed(name)).data().decode()


async def test_the_profile_is_read_once(talking: Client, home: Home) -> None:
    words = [await said(talking, f"p{number}", "echo $FOUND $0", **home.params()) for number in range(3)]

    assert words == [f"it {BASH}\n"] * 3
    assert home.reads == 1


async def test_many_commands_at_once_wait_for_one_shell(talking: Client, home: Home) -> None:
    names = [f"p{number}" for number in range(8)]
    words = await asyncio.gather(*(said(talking, name, "echo $FOUND", **home.params()) for name in names))

    assert words == ["it\n"] * 8
    assert home.reads == 1


@pytest.mark.parametrize(
    ("argv", "reads"),
    [
        ((BASH, "-c", "true"), 0),
        ((BASH, "-lc"), 0),
        (("bash", "-lc", "true"), 1),
        ((BASH, "-l", "-c", "true"), 1),
    ],
    ids=["no login", "no command", "another name", "other options"],
)
async def test_another_command_runs_as_it_is(
    talking: Client, home: Home, argv: tuple[str, ...], reads: int
) -> None:
    for name in ("p", "q"):
        await talking.start(name, *argv, **home.params())
        await talking.closed(name)

    assert home.reads == 2 * reads


@pytest.mark.parametrize(
    "change",
    [
        {"cwd": "file:///usr"},
        {"shellSnapshot": {**SNAPSHOT, "scopeId": "t"}},
        {
            "envPolicy": {
                "inherit": "core",
                "ignoreDefaultExcludes": True,
                "exclude": [],
                "set": {},
                "includeOnly": [],
            }
        },
    ],
    ids=lambda change: next(iter(change)),
)
async def test_under_other_conditions_it_is_read_again(
    talking: Client, home: Home, change: dict[str, Any]
) -> None:
    await said(talking, "p", "true", **home.params())
    assert await said(talking, "q", "echo $FOUND", **home.params(**change)) == "it\n"

    assert home.reads == 2


async def test_another_session_reads_it_again(url: str, talking: Client, home: Home) -> None:
    await said(talking, "p", "true", **home.params())
    async with client(url) as other:
        await said(other, "p", "true", **home.params())

    assert home.reads == 2


async def test_one_command_learns_nothing_of_another(talking: Client, home: Home) -> None:
    """The reference hands the variables of the first request to all later ones."""
    await said(talking, "p", "true", **home.params(env={"HF_PASS": "hush"}))

    assert await said(talking, "q", "echo ${HF_PASS-unset}", **home.params()) == "unset\n"
    assert home.reads == 1


async def test_a_terminal_has_it_too(talking: Client, home: Home) -> None:
    words = await said(talking, "p", "echo $FOUND; test -t 0 && echo tty", **home.params(tty=True))

    assert words == "it\r\ntty\r\n"


def cast_has_ended(cast: Path) -> bool:
    return '"x"' in cast.read_text()


async def test_a_recorded_terminal_has_it_and_only_the_command_is_recorded(
    talking: Client, home: Home
) -> None:
    for name in "pq":
        cast = home.path / f"{name}.cast"
        params = home.params(tty=True, record={"path": cast.as_uri()})
        assert await said(talking, name, "echo $FOUND", **params) == "it\r\n"
        await eventually(partial(cast_has_ended, cast))

    assert home.reads == 1


@pytest.mark.parametrize("profile", ["exit 3", "exec >/dev/null"])
async def test_if_the_profile_does_not_come_to_an_end_the_command_decides(
    talking: Client, home: Home, profile: str
) -> None:
    """It runs as it would have without a snapshot, and the shell is not asked in vain again."""
    home.write(profile)
    for name in ("p", "q"):
        await talking.start(name, BASH, "-lc", "exit 4", **home.params())
    codes = [(await talking.closed(name)).exit_codes for name in ("p", "q")]

    assert codes == [[3 if profile == "exit 3" else 4]] * 2
    assert home.reads == 3


async def test_a_start_that_waits_for_a_profile_can_be_given_up(talking: Client, home: Home) -> None:
    home.write(f"echo $$ > {home.path}/pid; sleep 1000")
    started = talking.post("process/start", start(home, "p"))
    waits = talking.post("process/start", start(home, "q"))
    await eventually(lambda: (home.path / "pid").exists() and (home.path / "pid").read_text().endswith("\n"))
    pid = int((home.path / "pid").read_text())
    home.write("")

    await talking.terminate("p")

    with pytest.raises(Refusal):
        await talking.result(started)
    await talking.result(waits)
    assert (await talking.closed("q")).exit_codes == [0]
    await eventually(lambda: not Path(f"/proc/{pid}").exists())


def start(home: Home, name: str) -> dict[str, Any]:
    params = {"processId": name, "argv": [BASH, "-lc", "true"], "cwd": "file:///tmp", "tty": False}
    return {**params, **home.params()}


async def test_what_a_profile_starts_lives_as_long_as_the_session(url: str, home: Home) -> None:
    """An agent for keys, for example, which the commands find by a variable."""
    home.write("sleep 1000 </dev/null >/dev/null 2>&1 & export AGENT=$!; disown")
    async with client(url) as talking:
        agents = {
            await said(talking, name, "kill -0 $AGENT && echo $AGENT", **home.params()) for name in "pq"
        }
        (agent,) = (int(words) for words in agents)
        assert os.path.exists(f"/proc/{agent}")

        await talking.call("session/close")

        await eventually(lambda: not os.path.exists(f"/proc/{agent}"))


async def test_a_shared_process_has_it_and_a_restart_too(talking: Client, home: Home) -> None:
    await talking.start("kept", BASH, "-lc", "echo $FOUND; sleep 1000", keep=True, **home.params())
    await talking.call("process/restart", {"processId": "kept", "newProcessId": "again"})
    page = await talking.read("again", waitMs=10_000)
    await talking.terminate("again")

    assert page_bytes(page) == b"it\n"
    assert home.reads == 1


async def test_a_token_that_restricts_variables_reads_its_profile_each_time(
    tmp_path: Path, home: Home
) -> None:
    """What a token forbids as a variable of a request may come from a profile, and must not come from us."""
    bearer = token("a", holdfast={"env": ["HOME", "PATH"]})
    with program_at(*signing_options(tmp_path)) as (_, url):
        async with client(url, token=bearer) as talking:
            words = [await said(talking, name, "echo $FOUND", **home.params()) for name in "pq"]

    assert words == ["it\n"] * 2
    assert home.reads == 2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({**SNAPSHOT, "scopeId": ""}, "shell snapshot scope must be non-empty and at most 256 bytes"),
        ({**SNAPSHOT, "scopeId": "é" * 129}, "shell snapshot scope must be non-empty and at most 256 bytes"),
        (
            {"scopeId": "s", "shell": {"name": "fish", "path": BASH}},
            "shell snapshots are unsupported for shell `fish`",
        ),
    ],
)
async def test_what_cannot_be_is_refused_as_the_reference_does(
    talking: Client, home: Home, asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        await talking.start("p", BASH, "-lc", "true", **home.params(shellSnapshot=asked))

    assert (refusal.value.code, refusal.value.text) == (-32602, words)


async def test_no_shell_is_left(talking: Client, home: Home) -> None:
    """Neither a process nor an entry: the client knows of its own commands only."""

    async def names() -> set[str]:
        return {each["processId"] for each in (await talking.call("process/list"))["processes"]}

    before = await names()
    await said(talking, "p", "true", **home.params())

    assert await names() - before == {"p"}
