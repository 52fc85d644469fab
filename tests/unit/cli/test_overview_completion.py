"""``holdfast completion``: scripts that the shells understand."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.cli.main import COMMANDS
from holdfast.cli.overview import commands_of, parser_of_all, script
from tests.fakes.terminal import Call, Person

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_it(shell: str) -> None:
    text = script(shell, parser_of_all())

    assert all(name in text for name in COMMANDS)
    for option in ("detach-keys", "token-file", "retain-detached-bytes", "since-seq"):
        assert option in text


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_is_here_can_read_it(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-n"], input=script(shell, parser_of_all()), text=True, capture_output=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def completed(*words: str, names: str = "") -> list[str]:
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    text = (
        f"{script('bash', parser_of_all())}\n"
        f"holdfast() {{ printf '%s\\n' {names}; }}\n"
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}\n"
        '_holdfast; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_offers_commands_options_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("holdfast", "resi") == ["resize"]
    assert completed("holdfast", "run", "--det") == ["--detach", "--detach-keys"]
    assert completed("holdfast", "completion", "z") == ["zsh"]
    assert completed("holdfast", "logs", "w", names="web worker db") == []
    monkeypatch.setenv("HOLDFAST_URL", "ws://x")
    assert completed("holdfast", "logs", "w", names="web worker db") == ["web", "worker"]


def test_it_is_printed(call: Call) -> None:
    said = call("completion", "bash")

    assert (said.code, said.out, said.err) == (0, script("bash", parser_of_all()), "")


def test_a_parser_without_commands_has_none() -> None:
    commands = commands_of(parser_of_all())

    assert commands_of(commands[0].parser) == []


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``holdfast`` in the path that names two processes, and nothing of the user's own shells."""
    (tmp_path / "holdfast").write_text("#!/bin/sh\nprintf 'web\\nworker\\n'\n")
    (tmp_path / "holdfast").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_URL", "ws://x")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.usefixtures("stub")
def test_fish_offers_commands_options_names_and_programs() -> None:
    lines = (
        "holdfast re",
        "holdfast run --det",
        "holdfast logs -f w",
        "holdfast ps -o ",
        "holdfast run -- en",
    )
    text = script("fish", parser_of_all()) + "".join(f"complete -C '{line}'; echo ==\n" for line in lines)
    done = subprocess.run(["fish", "--no-config"], input=text, capture_output=True, text=True, check=True)

    offered = [
        [each.split("\t")[0] for each in part.split("\n") if each] for part in done.stdout.split("==\n")
    ]
    assert done.stderr == ""
    assert offered[:4] == [["resize"], ["--detach", "--detach-keys"], ["web", "worker"], ["json", "table"]]
    assert "env" in offered[4]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.usefixtures("stub")
def test_zsh_offers_commands_options_names_and_programs(tmp_path: Path) -> None:
    (tmp_path / "_holdfast").write_text(script("zsh", parser_of_all()))
    path = os.environ["PATH"]
    env = {"HOLDFAST_URL": "ws://x", "PATH": path, "HOME": str(tmp_path)}
    person = Person("zsh", "-f", "-i", env=env)
    try:
        person.type(f"autoload -U compinit; compinit -u -D; . {tmp_path}/_holdfast; echo load''ed\r".encode())
        person.expect(b"loaded\r\n")
        for typed, completed in (
            (b"resi\t", b"resize "),
            (b"run --retai\t", b"run --retain "),
            (b"logs -f wor\t", b"logs -f worker "),
            (b"ps -o js\t", b"ps -o json "),
            (b"run -- mkfif\t", b"run -- mkfifo "),
        ):
            person.type(b"holdfast " + typed)
            # What the line has become is printed, not run.
            person.type(b"\x01echo '<' \x05 '>'\r")
            person.expect(b"< holdfast " + completed + b">\r\n")
    finally:
        person.close()
