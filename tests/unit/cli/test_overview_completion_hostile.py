"""Names of processes that other clients have chosen, in the hands of shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from holdfast.cli.overview import parser_of_all, script
from tests.fakes.server import program_at
from tests.fakes.terminal import Call, Person

MARK = "was-run"
NAMES = {
    "a": "a$(touch${IFS}was-run)",
    "b": "b`touch was-run`",
    "c": "c;touch was-run;",
    "d": "d'e",
    "f": 'f"g',
    "h": "h i  j",
    "k": "k:l=m@n",
    "o": "o!!p",
    "q": "q\\nr",
    "s": "s*[a-z]?",
    "t": "t|u&v>w<x",
    "y": "y#z~{1,2}",
    "z": "z\u00e9\u4e16",
}
"""By the letter that is enough to complete them."""
OPTIONS = ("-H=ws://elsewhere", "--url=ws://elsewhere")
"""Names that a command would take for something else."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a ``holdfast`` in the path that tells those names, and nothing of the user's own."""
    (tmp_path / "names").write_text("\n".join((*NAMES.values(), *OPTIONS)) + "\n")
    (tmp_path / "holdfast").write_text(f"#!/bin/sh\nexec cat '{tmp_path}/names'\n")
    (tmp_path / "holdfast").chmod(0o755)
    for shell in ("bash", "zsh", "fish"):
        (tmp_path / f"script.{shell}").write_text(script(shell, parser_of_all()))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_URL", "ws://x")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# bash.


def offered(word: str) -> list[str]:
    """What bash puts in the place of a word that is being typed."""
    text = (
        '. ./script.bash\nCOMP_WORDS=(holdfast attach "$1") COMP_CWORD=2\n'
        '_holdfast\n[[ ${#COMPREPLY[@]} == 0 ]] || printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", text, "bash", word], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("typed", ["", "$", "a", "'", '"', "'a", '"a', "a\\$", "nothing"])
def test_bash_runs_nothing_that_is_in_a_name(here: Path, typed: str) -> None:
    """A name was expanded as a word of the shell: pressing TAB ran what another client had put into it."""
    offered(typed)

    assert not (here / MARK).exists()


def test_bash_offers_each_name_as_a_word_that_means_it(here: Path) -> None:
    words = offered("")
    text = 'eval "set -- $1"; [[ $# == 1 ]] && printf %s "$1"'

    meant = [
        subprocess.run(["bash", "-c", text, "bash", word], capture_output=True, text=True, check=True).stdout
        for word in words
    ]

    assert meant == list(NAMES.values())
    assert not (here / MARK).exists()


@pytest.mark.usefixtures("here")
def test_bash_knows_a_name_by_what_was_typed_however_it_is_quoted() -> None:
    assert offered("h\\ i") == ["h\\ i\\ \\ j"]
    assert offered("k\\:l") == ["k\\:l\\=m\\@n"]
    assert offered("'h i") == ["h i  j"]
    assert offered('"h i') == ["h i  j"]
    assert offered("'d") == []  # There is no way to write it there.
    assert offered('"a') == []  # Between these it would be run.


@pytest.fixture
def bash(here: Path) -> Iterator[Person]:
    """Somebody at a terminal with bash."""
    env = {"PATH": os.environ["PATH"], "HOLDFAST_URL": "ws://x"}
    person = Person("bash", "--norc", "--noprofile", "-i", cols=400, env=env)
    try:
        person.type(b". ./script.bash; PS1='$ '; echo load''ed\r")
        person.expect(b"loaded\r\n")
        yield person
    finally:
        person.close()


@pytest.mark.slow
def test_at_a_terminal_bash_completes_names_and_runs_none(bash: Person, here: Path) -> None:
    """What the line has become is printed, argument by argument: what a command would get."""
    for letter, name in NAMES.items():
        bash.type(b"holdfast attach " + letter.encode() + b"\t")
        bash.type(b"\x01printf '%s|' \x05; echo\r")
        bash.expect(b"holdfast|attach|" + name.encode() + b"|")

    assert not (here / MARK).exists()


@pytest.mark.slow
@pytest.mark.parametrize("quote", ["'", '"'])
def test_at_a_terminal_bash_completes_between_quotes_only_what_means_itself(
    bash: Person, here: Path, quote: str
) -> None:
    bash.type(f"holdfast attach {quote}h\t".encode())
    bash.type(b"\x01printf '%s|' \x05; echo\r")
    bash.expect(b"holdfast|attach|h i  j|")
    bash.type(f"holdfast attach {quote}\t\ta\t\x15echo do''ne\r".encode())
    bash.expect(b"done\r\n")

    assert not (here / MARK).exists()


# zsh.


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_at_a_terminal_zsh_completes_names_and_runs_none(here: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOLDFAST_URL": "ws://x"}
    person = Person("zsh", "-f", "-i", cols=400, env=env)
    try:
        person.type(b"autoload -U compinit; compinit -u -D; . ./script.zsh; echo load''ed\r")
        person.expect(b"loaded\r\n")
        for quote, (letter, name) in product(("", "'", '"'), NAMES.items()):
            person.type(f"holdfast attach {quote}{letter}\t".encode())
            person.type(b"\x01printf '%s|' \x05; echo\r")
            person.expect(b"holdfast|attach|" + name.encode() + b"|")
        # All of them are listed, but none that is an option.
        person.type(b"holdfast attach \t\t")
        person.expect(b"h\\ i\\ \\ j")
        person.type(b"\x15echo do''ne\r")
        listed = person.expect(b"done\r\n")
    finally:
        person.close()

    assert b"elsewhere" not in listed
    assert not (here / MARK).exists()


# fish.


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_names_as_they_are_and_runs_none(here: Path) -> None:
    lines = [". ./script.fish", *(f"complete -C 'holdfast attach {letter}'" for letter in ("", *NAMES))]
    done = subprocess.run(
        ["fish", "--no-config"], input="\n".join(lines), capture_output=True, text=True, check=True
    )

    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == sorted([*NAMES.values()] * 2)
    assert not (here / MARK).exists()


# The real thing.


@pytest.mark.slow
def test_a_name_on_a_server_is_not_run_by_whoever_looks_for_names(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"$(touch${{IFS}}{tmp_path}/{MARK})"
    with program_at() as (_, url):
        monkeypatch.setenv("HOLDFAST_URL", url)
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        assert call("run", "-d", "--name", name, "--", "sleep", "1000").code == 0
        (tmp_path / "script.bash").write_text(script("bash", parser_of_all()))
        monkeypatch.chdir(tmp_path)

        assert len(offered("")) == 1

    assert not (tmp_path / MARK).exists()
