"""``login``, ``logout`` and ``hosts``, against a server that asks for tokens."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.server import program_at
from tests.fakes.terminal import HOLDFAST, SILENT, Call, holdfast, person_at
from tests.fakes.tokens import signing_options, token

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that asks for signed tokens."""
    with program_at(*signing_options(tmp_path_factory.mktemp("auth"))) as (_, url):
        yield url


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("HOLDFAST_CONFIG", str(path))
    return path


def test_a_name_stands_for_a_server_and_its_token(
    asking: str, config: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", token("a"))
    said = call("login", "--name", "build-box", asking)
    monkeypatch.delenv("HOLDFAST_TOKEN")

    assert said.code == 0, said.err
    assert said.out == f"{asking} is build-box from now on; 'holdfast -H build-box ps' shows its processes\n"
    assert call("-H", "build-box", "run", "--", "echo", "hello").out == "hello\n"
    assert call("ps", "-H", asking).code == 0  # By its URL as well.
    monkeypatch.setenv("HOLDFAST_URL", "build-box")
    assert call("ps").code == 0
    assert call("hosts").out == f"NAME        TOKEN   URL\nbuild-box   yes     {asking}\n"


def test_a_token_that_the_server_refuses_is_not_kept(
    asking: str, config: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", token("a", exp=5))
    said = call("login", asking)

    assert said.code == 125
    assert "does not accept the token (expired websocket jwt)" in said.err
    assert not config.exists()


def test_whoever_sits_at_a_terminal_is_asked_and_not_shown_what_is_typed(asking: str, config: Path) -> None:
    secret = token("a")
    with person_at("login", asking, env={"HOLDFAST_CONFIG": str(config)}) as person:
        person.expect(f"token for {asking}: ".encode())
        person.type(f"{secret}\n".encode())
        person.expect(b"is 127.0.0.1 from now on")

        assert person.wait() == 0
        assert secret.encode() not in person.shown
    assert f'token = "{secret}"' in config.read_text()


def test_a_token_may_come_from_a_pipe_and_is_needed_only_where_it_is_asked_for(
    asking: str, url: str, config: Path
) -> None:
    own = {"HOLDFAST_CONFIG": str(config)}
    piped = holdfast("login", "--name", "one", asking, data=token("a").encode() + b"\n", env=own)
    without = holdfast("login", "--name", "two", url, "-o", "json", env=own)

    assert (piped.returncode, piped.stderr) == (0, b"")
    assert json.loads(without.stdout) == {"name": "two", "url": url, "token": False, "config": str(config)}
    listed = json.loads(holdfast("hosts", "-o", "json", env=own).stdout)
    assert [(one["name"], one["token"]) for one in listed] == [("one", True), ("two", False)]


def test_a_token_that_was_kept_for_a_name_goes_before_one_that_may_be_for_another_server(
    asking: str, config: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config.write_text(f'[hosts.box]\nurl = "{asking}"\ntoken-file = "box.token"\n')
    (tmp_path / "box.token").write_text(token("a"))
    monkeypatch.setenv("HOLDFAST_TOKEN", "of another server")

    assert call("ps", "-H", "box").code == 0
    assert "does not accept the token" in call("ps", "-H", asking).err
    (tmp_path / "wrong").write_text("wrong")
    assert "does not accept the token" in call("ps", "-H", "box", "--token-file", str(tmp_path / "wrong")).err


def test_a_name_is_not_given_to_two_servers_in_silence(url: str, config: Path, call: Call) -> None:
    config.write_text('[hosts.box]\nurl = "ws://other:1"\n')

    assert "take another --name, or 'holdfast logout box' first" in call("login", "--name", "box", url).err
    assert call("logout", "box").code == 0
    assert call("login", "--name", "box", url).code == 0
    assert "is no name" in call("login", "--name", "a b", url).err
    assert "no host is named 'nobody'" in call("logout", "nobody").err
    assert "no host is named 'nobody'" in call("-H", "nobody", "ps").err


def test_a_configuration_that_others_can_read_is_refused(config: Path, call: Call) -> None:
    config.write_text('[hosts.box]\nurl = "ws://h:1"\ntoken = "t"\n')
    config.chmod(0o644)

    for command in (("ps", "-H", "box"), ("hosts",), ("login", "ws://h:1"), ("logout", "box")):
        assert f"'chmod 600 {config}' keeps them out" in call(*command).err


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_file_with_a_token_is_readable_by_others_even_for_a_moment(asking: str, tmp_path: Path) -> None:
    """A mode that is corrected after the file was made comes too late: others have it open by then."""
    folder = tmp_path / "config"
    log = tmp_path / "log"
    secret = token("a")
    done = subprocess.run(
        ["strace", "-f", "-qq", "-e", "trace=openat,open,creat", "-o", str(log), *HOLDFAST, "login", asking],
        input=secret.encode(),
        env={**os.environ, **SILENT, "HOLDFAST_CONFIG": str(folder / "config.toml")},
        capture_output=True,
        preexec_fn=lambda: os.umask(0),
        check=False,
        timeout=60,
    )
    if b"ptrace" in done.stderr:
        pytest.skip("strace may not watch here")

    made = re.findall(rf'"{folder}/[^"]*", [A-Z_|]*O_CREAT[A-Z_|]*, (0\d+)', log.read_text())
    assert (done.returncode, made) == (0, ["0600"]), done.stderr
    assert secret in (folder / "config.toml").read_text()
