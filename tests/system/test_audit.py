"""The audit log of a real server: who started what, how it ended, and what a full disk does to it."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import stat
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.fakes.client import Client, Refusal
from tests.fakes.frames import Wire
from tests.fakes.limits import app_client, session
from tests.fakes.server import Program, eventually, hangup, program_at, run_to_end
from tests.fakes.tokens import bearer, signing_options, token

Line = dict[str, Any]


class Log:
    """The lines of a server; each of them is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def lines(self) -> list[Line]:
        text = self.path.read_bytes()
        assert not text or text.endswith(b"\n")
        return [json.loads(line) for line in text.splitlines()]

    def of(self, name: str) -> list[Line]:
        """What is said of the process of that name, from its start to its end."""
        refs = {line["ref"] for line in self.lines if line.get("name") == name}
        return [line for line in self.lines if line.get("ref") in refs]

    async def ended(self, name: str) -> Line:
        """Wait for its end, and see that nothing is missing."""
        await eventually(lambda: self.of(name) and self.of(name)[-1]["event"] == "end")
        start, running, end = self.of(name)
        assert (start["event"], running["event"], end["event"]) == ("start", "running", "end")
        assert running["pid"] == end["pid"]
        return end


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str, Log]]:
    path = tmp_path_factory.mktemp("audit") / "audit.log"
    limits = ("--limit=session.detached_seconds=100ms", "--command-sandbox=danger-full-access")
    with program_at("--audit-log", str(path), *limits) as (program, url):
        yield program, url, Log(path)


@pytest.fixture
def log(served: tuple[Program, str, Log]) -> Log:
    return served[2]


@pytest.fixture
def url(served: tuple[Program, str, Log]) -> str:
    return served[1]


@pytest.fixture
async def talking(url: str) -> AsyncIterator[Client]:
    async with session(url) as talking:
        yield talking


# Who started what.


async def test_a_process_of_each_dialect(url: str, log: Log, talking: Client) -> None:
    peer = ":".join(map(str, talking.wire.socket.getsockname()))
    await talking.start("exec", "sh", "-c", "exit 3", env={"PATH": os.environ["PATH"], "SECRET": "s3cret"})
    async with app_client(url) as app:
        await app.spawn("spawned", "true")
        await app.exited("spawned")
        await app.call("command/exec", {"command": ["true"], "processId": "command"})

    end = await log.ended("exec")
    start = log.of("exec")[0]
    assert {key: start[key] for key in ("principal", "peer", "argv", "cwd", "tty", "sandboxed")} == {
        "principal": "",
        "peer": peer,
        "argv": ["sh", "-c", "exit 3"],
        "cwd": "/",
        "tty": False,
        "sandboxed": False,
    }
    assert start["env"] == ["PATH", "SECRET"]
    assert "s3cret" not in log.path.read_text()
    assert (end["exitCode"], end["outcome"], end["signal"]) == (3, "exit", None)
    assert end["maxRssBytes"] > 0
    for name in ("spawned", "command"):
        assert (await log.ended(name))["outcome"] == "exit"


TABLE: dict[str, tuple[str, dict[str, Any], str, int | None]] = {
    "timeout": ("sleep 1000", {"timeoutMs": 50}, "timeout", 9),
    "idle": ("sleep 1000", {"idleTimeoutMs": 50}, "idleTimeout", 9),
    "loud": ("yes", {"outputBytesLimit": 1000}, "outputLimit", 9),
    "crash": ("kill -SEGV $$", {}, "signal", 11),
    "good": ("exit 0", {}, "exit", None),
}


@pytest.mark.parametrize("case", TABLE)
async def test_how_a_process_ended(log: Log, talking: Client, case: str) -> None:
    script, options, outcome, number = TABLE[case]

    await talking.start(case, "sh", "-c", script, **options)

    end = await log.ended(case)
    assert (end["outcome"], end["signal"]) == (outcome, number)


async def test_a_process_that_is_ended_by_a_signal_and_by_its_client(log: Log, talking: Client) -> None:
    await talking.start("signalled", "sleep", "1000")
    await talking.start("terminated", "sleep", "1000")

    await talking.call("process/signal", {"processId": "signalled", "signal": "terminate"})
    await talking.terminate("terminated")

    signalled, terminated = await log.ended("signalled"), await log.ended("terminated")
    assert (signalled["exitCode"], signalled["signal"]) == (143, 15)
    assert (terminated["outcome"], terminated["signal"]) == ("terminated", 9)


async def test_a_start_that_fails(log: Log, talking: Client) -> None:
    with pytest.raises(Refusal):
        await talking.start("missing", "/no/such/program")

    start, failed = log.of("missing")
    assert (start["event"], failed["event"]) == ("start", "failed")
    assert "/no/such/program" in failed["reason"]


async def test_what_ends_with_its_session_and_what_outlives_it(url: str, log: Log, talking: Client) -> None:
    """By a close, by expiry, and not at all."""
    closed, expired, kept = (uuid4().hex for _ in range(3))
    for name in (closed, expired):
        other = await Client.open(url)
        await other.start(name, "sleep", "1000")
        if name == closed:
            await other.start(kept, "sleep", "1000", keep=True)
            await other.call("session/close")
        await other.close()

    for name in (closed, expired):
        assert (await log.ended(name))["signal"] == 9
    assert [line["event"] for line in log.of(kept)] == ["start", "running"]
    await talking.terminate(kept)
    await log.ended(kept)


async def test_clients_come_and_go(url: str, log: Log) -> None:
    async with session(url) as other:
        peer = ":".join(map(str, other.wire.socket.getsockname()))

    def events() -> list[str]:
        return [line["event"] for line in log.lines if line.get("peer") == peer]

    await eventually(lambda: events() == ["connected", "disconnected"])


async def test_secrets_in_arguments_are_left_out(log: Log, talking: Client) -> None:
    await talking.start("secrets", "true", "--password", "s3cr3t", "TOKEN=s3cr3t", "-H", "X-Key: s3cr3t")

    await log.ended("secrets")
    assert log.of("secrets")[0]["argv"][1:] == [
        "--password", "[redacted]", "TOKEN=[redacted]", "-H", "X-Key: [redacted]",
    ]  # fmt: skip
    assert "s3cr3t" not in log.path.read_text()


async def test_a_moved_log_goes_on_in_a_new_file_and_nothing_is_lost(
    served: tuple[Program, str, Log], talking: Client
) -> None:
    """While processes start and end all the time."""
    program, _, log = served
    old = Log(log.path.with_suffix(".old"))
    before = Counter(line["event"] for line in log.lines)

    async def work(worker: int) -> None:
        for turn in range(10):
            name = f"{worker}-{turn}"
            await talking.start(name, "true")
            await talking.closed(name)

    working = [asyncio.ensure_future(work(worker)) for worker in range(3)]
    await talking.until(lambda: len(talking.tales) >= 6)
    log.path.rename(old.path)
    program.send_signal(signal.SIGHUP)
    await asyncio.gather(*working)

    assert log.path.exists()
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    after = Counter(line["event"] for line in (*old.lines, *log.lines))
    assert {event: after[event] - before[event] for event in ("start", "running", "end")} == {
        "start": 30,
        "running": 30,
        "end": 30,
    }


@pytest.mark.parametrize("durability", ["on", "off"])
async def test_a_server_that_was_started_by_nohup_opens_its_log_anew(tmp_path: Path, durability: str) -> None:
    """Then the signal is ignored for everybody who has no use for it."""
    log = Log(tmp_path / "audit.log")
    with (
        hangup(signal.SIG_IGN),
        program_at("--audit-log", str(log.path), "--durability", durability) as (program, url),
    ):
        log.path.rename(log.path.with_suffix(".old"))
        program.send_signal(signal.SIGHUP)
        await eventually(log.path.exists)
        async with session(url) as talking:
            await talking.start("after", "true")
            await talking.closed("after")
        await log.ended("after")


# Tokens.


async def test_what_is_refused_and_what_is_forbidden(tmp_path: Path) -> None:
    log = Log(tmp_path / "audit.log")
    options = ("--audit-log", str(log.path), *signing_options(tmp_path))
    with program_at(*options) as (_, url):
        stranger = await Wire.dial(url)
        stranger.writer.write(
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
        )
        assert b" 401 " in await stranger.reader.readline()
        await stranger.close()
        alice = token(
            "alice", iss="us", holdfast={"methods": ["process/*"], "env": ["PATH"], "roots": ["/usr"]}
        )
        talking = Client(await Wire.open(url, headers=[bearer(alice)]))
        await talking.initialize()
        for method, params in (
            ("fs/readFile", {"path": "file:///etc/passwd"}),
            ("environment/info", None),
        ):
            with pytest.raises(Refusal):
                await talking.call(method, params)
        with pytest.raises(Refusal):
            await talking.start("p", "true", env={"PATH": "/bin", "LD_PRELOAD": "x"})
        with pytest.raises(Refusal):
            await talking.start("p", "true", cwd="file:///etc")
        await talking.start("p", "true", cwd="file:///usr")
        await log.ended("p")
        await talking.close()

    lines = log.lines
    assert [line["reason"] for line in lines if line["event"] == "refused"] == ["missing"]
    forbidden = [line for line in lines if line["event"] == "forbidden"]
    assert [(line.get("method"), line.get("variable"), line.get("directory")) for line in forbidden] == [
        ("fs/readFile", None, None),
        ("environment/info", None, None),
        (None, "LD_PRELOAD", None),
        (None, None, "/etc"),
    ]
    assert {(line["principal"], line["issuer"]) for line in lines if "principal" in line} == {("alice", "us")}


# The end of the server.


async def test_what_ends_with_the_server(tmp_path: Path) -> None:
    """Also what was kept: nobody can ask for it any more."""
    log = Log(tmp_path / "audit.log")
    log.path.write_text('{"event":"before"}\n')
    with program_at("--audit-log", str(log.path)) as (program, url):
        talking = await Client.open(url)
        await talking.start("own", "sleep", "1000")
        await talking.start("kept", "sleep", "1000", keep=True)
        program.send_signal(signal.SIGTERM)
        assert program.wait() == 0
        await talking.close()

    assert log.lines[0] == {"event": "before"}
    for name in ("own", "kept"):
        assert (await log.ended(name))["signal"] == 9


@pytest.mark.parametrize("path", ["missing/audit.log", "."])
def test_a_log_that_cannot_be_opened_keeps_the_server_from_starting(tmp_path: Path, path: str) -> None:
    place = tmp_path / path

    done = run_to_end("--audit-log", str(place))

    reason = os.strerror(21 if path == "." else 2)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"Error: cannot open the audit log {place}: {reason}\n"


# A full disk.


async def test_nothing_starts_on_a_full_disk_and_ends_are_written_later(tmp_path: Path) -> None:
    """The limit on the size of files stands in for it: it, too, lets half a line through.

    What runs goes on; when there is room again, what has happened meanwhile is written.
    """
    log = Log(tmp_path / "audit.log")
    # That limit would be one of the arena, too.
    with program_at("--audit-log", str(log.path), "--metrics", "--durability", "off") as (program, url):
        async with session(url) as talking:
            await talking.start("before", "sleep", "1000")
            _, hard = resource.prlimit(program.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (log.path.stat().st_size + 30, hard))

            with pytest.raises(Refusal) as caught:
                await talking.start("during", "true")
            await talking.terminate("before")
            await talking.closed("before")
            within = [line["event"] for line in log.of("before")]
            during = log.of("during")

            resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (hard, hard))
            await talking.start("during", "true")
            await log.ended("before")
            await log.ended("during")

    assert "audit log" in caught.value.text
    assert os.strerror(27) in caught.value.text
    assert (within, during) == (["start", "running"], [])
    assert program.errors.decode().count("the audit log cannot be written") == 1


def test_python_ignores_the_signal_of_that_limit() -> None:
    """Without that, a full disk would end the server."""
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN, sys.version
