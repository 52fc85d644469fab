"""The audit log on real files: what is in a line, and what happens when there is no room for one."""

from __future__ import annotations

import errno
import json
import logging
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import AuditFailed
from holdfast.model import EnvironmentPolicy, Exit, Inherit, Kind, Outcome, Size, Spec, Usage
from holdfast.observe.audit import AuditLog, Redaction
from holdfast.principal import Principal
from holdfast.sandbox import Sandbox

ALICE = Principal("alice", "issuer")
PEER = "127.0.0.1:9"
SPEC = Spec(argv=["make", "all"], cwd="/srv", env={"B": "secret", "A": "secret", "GONE": None}, name="p")
END = Exit(137, Outcome(Kind.SIGNAL, None, 9, "client"), Usage(1500, 2500, 4096))


class Scene:
    """A log, and what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failures = 0
        self.log = AuditLog(str(path), Redaction(), failed=self._fail, clock=lambda: 1.5)

    def _fail(self) -> None:
        self.failures += 1

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every one of them is a whole object."""
        text = self.path.read_bytes()
        assert not text or text.endswith(b"\n")
        return [json.loads(line) for line in text.splitlines()]

    @property
    def events(self) -> list[str]:
        return [line["event"] for line in self.lines]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "audit.log")
    yield made
    made.log.close()


# What is written.


def test_a_process_from_its_start_to_its_end(scene: Scene) -> None:
    entry = scene.log.start(ALICE, PEER, SPEC)
    entry.running(77)
    entry.ended(END)

    start, running, end = scene.lines
    ref, time = start["ref"], "1970-01-01T00:00:01.500000+00:00"
    assert start == {
        "time": time,
        "event": "start",
        "ref": ref,
        "principal": "alice",
        "issuer": "issuer",
        "peer": PEER,
        "name": "p",
        "argv": ["make", "all"],
        "cwd": "/srv",
        "env": ["A", "B"],
        "inherit": None,
        "user": None,
        "tty": False,
        "sandboxed": False,
    }
    assert running == {"time": time, "event": "running", "ref": ref, "pid": 77}
    assert end == {
        "time": time,
        "event": "end",
        "ref": ref,
        "pid": 77,
        "exitCode": 137,
        "outcome": "signal",
        "signal": 9,
        "by": "client",
        "userMs": 1,
        "systemMs": 2,
        "maxRssBytes": 4096,
    }


def test_a_process_in_a_terminal_and_a_sandbox_with_a_policy_for_its_variables(scene: Scene) -> None:
    policy = EnvironmentPolicy(Inherit.CORE, False, (), (("SET", "secret"),), ())
    spec = Spec(
        argv=["x"],
        cwd="/",
        env={"A": "secret"},
        env_policy=policy,
        terminal=Size(),
        sandbox=Sandbox(None, True, "/"),
    )

    scene.log.start(ALICE, PEER, spec)

    (line,) = scene.lines
    assert (line["env"], line["inherit"], line["tty"], line["sandboxed"]) == (
        ["A", "SET"],
        "core",
        True,
        True,
    )
    assert "secret" not in json.dumps(line)


def test_an_end_of_which_less_is_known(scene: Scene) -> None:
    scene.log.start(ALICE, PEER, SPEC).ended(Exit(-1, Outcome(Kind.LOST)))

    assert {key: scene.lines[1][key] for key in ("exitCode", "outcome", "signal", "by")} == {
        "exitCode": -1,
        "outcome": "lost",
        "signal": None,
        "by": None,
    }
    assert "userMs" not in scene.lines[1]


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_end_has_its_word(scene: Scene, kind: Kind) -> None:
    scene.log.start(ALICE, PEER, SPEC).ended(Exit(1, Outcome(kind)))

    assert scene.lines[1]["outcome"] == kind.value


def test_a_start_that_failed(scene: Scene) -> None:
    scene.log.start(ALICE, PEER, SPEC).failed("no such file: token=x")

    assert scene.events == ["start", "failed"]
    assert scene.lines[1]["reason"] == "no such file: token=[redacted]"
    assert scene.lines[1]["ref"] == scene.lines[0]["ref"]


def test_who_comes_goes_and_is_refused(scene: Scene) -> None:
    scene.log.refused(PEER, "expired")
    scene.log.connected(ALICE, PEER)
    scene.log.forbidden(Principal("bob"), PEER, "method", "fs/writeFile")
    scene.log.gone(ALICE, PEER)

    facts = [{k: v for k, v in line.items() if k != "time"} for line in scene.lines]
    alice = {"principal": "alice", "issuer": "issuer", "peer": PEER}
    assert facts == [
        {"event": "refused", "peer": PEER, "reason": "expired"},
        {"event": "connected", **alice},
        {"event": "forbidden", "principal": "bob", "peer": PEER, "method": "fs/writeFile"},
        {"event": "disconnected", **alice},
    ]


def test_every_process_has_a_name_of_its_own_also_over_runs_of_the_server(scene: Scene) -> None:
    for _ in range(3):
        scene.log.start(ALICE, PEER, SPEC)
    again = Scene(scene.path)
    again.log.start(ALICE, PEER, SPEC)
    again.log.close()

    assert len({line["ref"] for line in scene.lines}) == 4


def test_clients_do_not_decide_how_long_a_line_gets(scene: Scene) -> None:
    long = "x" * 1_000_000
    env = {f"V{number:07}": "secret" for number in range(10_000)}
    spec = Spec(argv=[long] * 1000, cwd=f"/{long}", env=env, name=long)

    entry = scene.log.start(ALICE, PEER, spec)
    entry.failed(long)
    scene.log.forbidden(ALICE, PEER, "path", long)

    assert max(map(len, scene.path.read_bytes().splitlines())) < 100_000
    assert scene.lines[0]["argv"][-1] == "... 936 more"
    assert scene.lines[0]["env"][-1] == "... 9744 more"


@given(
    argv=st.lists(st.text(st.characters(codec=None, exclude_categories=()))),
    text=st.text(st.characters(codec=None, exclude_categories=())),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_client_says_is_a_line_of_json(scene: Scene, argv: list[str], text: str) -> None:
    """Bytes that are no text come as surrogates, and are told as the character that stands for such."""
    scene.log.start(Principal(text), PEER, Spec(argv=argv, cwd=text, env={text: "v"}, name=text))

    assert scene.events[-1] == "start"


def test_bytes_that_are_no_text_are_told_as_the_character_for_such(scene: Scene) -> None:
    scene.log.start(ALICE, PEER, Spec(argv=[os.fsdecode(b"a\xffb")], cwd="/", env={}, name="p"))

    assert scene.lines[0]["argv"] == ["a\N{REPLACEMENT CHARACTER}b"]


# The file.


def test_the_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        scene = Scene(tmp_path / "log")
    finally:
        os.umask(before)
    scene.log.close()

    assert stat.S_IMODE(scene.path.stat().st_mode) == 0o600


def test_what_is_in_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"event":"before"}\n')
    path.chmod(0o640)

    scene = Scene(path)
    scene.log.connected(ALICE, PEER)
    scene.log.close()

    assert scene.events == ["before", "connected"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("path", ["missing/log", "", "fifo"])
def test_a_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path, path: str) -> None:
    """Also a pipe that nobody reads: nobody may hold us up."""
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(OSError, match=r"directory|device"):
        AuditLog(str(tmp_path / path), Redaction())


def test_a_file_that_was_moved_away_is_made_anew_when_asked(scene: Scene) -> None:
    scene.log.connected(ALICE, PEER)
    old = scene.path.rename(scene.path.with_suffix(".1"))
    scene.log.gone(ALICE, PEER)

    scene.log.reopen()
    scene.log.refused(PEER, "missing")

    assert [json.loads(line)["event"] for line in old.read_text().splitlines()] == [
        "connected",
        "disconnected",
    ]
    assert scene.events == ["refused"]


def test_a_file_that_cannot_be_opened_again_leaves_the_old_one(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    old = scene.path.rename(scene.path.with_suffix(".1"))
    scene.path.mkdir()

    scene.log.reopen()
    scene.log.connected(ALICE, PEER)

    assert json.loads(old.read_text())["event"] == "connected"
    assert "cannot be opened again: Is a directory" in caplog.text


# No room.


@contextmanager
def full(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes.  The signal that comes with it is ignored by the interpreter."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("half", [0, 1, 40])
def test_without_room_nothing_starts_and_ends_are_written_later(scene: Scene, half: int) -> None:
    """Also if there is room for a part of the line: that is cut off again."""
    entry = scene.log.start(ALICE, PEER, SPEC)
    size = scene.path.stat().st_size

    with full(size + half):
        with pytest.raises(AuditFailed, match=os.strerror(errno.EFBIG)):
            scene.log.start(ALICE, PEER, SPEC)
        entry.ended(END)
        scene.log.gone(ALICE, PEER)
        within = scene.events

    assert (within, scene.failures) == (["start"], 3)
    scene.log.connected(ALICE, PEER)
    assert scene.events == ["start", "end", "disconnected", "connected"]


def test_it_is_complained_of_once_until_it_works_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with full(scene.path.stat().st_size):
            for _ in range(3):
                scene.log.connected(ALICE, PEER)
        scene.log.gone(ALICE, PEER)

    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert scene.failures == 6


def test_what_cannot_be_kept_is_counted_and_the_count_is_written(scene: Scene) -> None:
    with full(0):
        for _ in range(1030):
            scene.log.connected(ALICE, PEER)
    scene.log.gone(ALICE, PEER)

    assert scene.events == ["connected"] * 1024 + ["lost", "disconnected"]
    assert scene.lines[-2]["lines"] == 6


def test_what_waits_is_written_at_the_end(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "log")
    with full(0):
        scene.log.connected(ALICE, PEER)

    scene.log.close()

    assert scene.events == ["connected", "stopped"]


def test_what_could_never_be_written_is_at_least_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path / "log")
    with full(0):
        scene.log.connected(ALICE, PEER)
        scene.log.close()

    assert "never written: 2" in caplog.text


# A pipe, which cannot be cut.


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[AuditLog, Callable[[], bytes]]]:
    """A log that is a pipe, and what reads it."""
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    log = AuditLog(str(tmp_path / "fifo"), Redaction())
    yield log, lambda: os.read(reader, 1 << 20)
    log.close()
    os.close(reader)


def test_half_a_line_in_a_pipe_is_completed_before_the_next(
    pipe: tuple[AuditLog, Callable[[], bytes]],
) -> None:
    """Its process is not started, and that is said behind it."""
    log, read = pipe
    spec = Spec(argv=["x" * 1000] * 60, cwd="/", env={}, name="p")
    log.start(ALICE, PEER, spec)

    with pytest.raises(AuditFailed, match="only a part"):
        log.start(ALICE, PEER, spec)
    with pytest.raises(AuditFailed):
        log.start(ALICE, PEER, SPEC)
    log.connected(ALICE, PEER)
    text = read()
    log.gone(ALICE, PEER)
    text += read()

    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["event"] for line in lines] == ["start", "start", "failed", "connected", "disconnected"]
    assert lines[1]["ref"] == lines[2]["ref"]
