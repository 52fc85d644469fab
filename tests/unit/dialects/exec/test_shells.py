"""What a login shell writes down, read and restored by real shells; what is forgotten, and when."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.dialects.exec.shells import (
    MOST,
    ShellKind,
    ShellSnapshots,
    ShellState,
    is_written,
    read_state,
    restoring,
    writing,
)
from holdfast.dialects.scope import Room

MARKER = "5f1c"
PATH = "/usr/bin:/bin"
PROFILES = {ShellKind.BASH: ".bash_profile", ShellKind.ZSH: ".zprofile", ShellKind.SH: ".profile"}


@pytest.fixture(params=ShellKind, ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest) -> ShellKind:
    found: ShellKind = request.param
    if shutil.which(found.value) is None:
        pytest.skip(f"{found.value} is not installed")
    return found


class Login:
    """A user with a profile, and what the shell of that user says."""

    def __init__(self, home: Path, kind: ShellKind, profile: str) -> None:
        self.kind = kind
        self.shell = shutil.which(kind.value) or kind.value
        self.env = {"HOME": str(home), "PATH": PATH}
        (home / PROFILES[kind]).write_text(profile)

    def run(self, argv: list[str], env: Mapping[str, str | None]) -> subprocess.CompletedProcess[bytes]:
        variables = {name: text for name, text in env.items() if text is not None}
        data = {name.encode(): text.encode("utf-8", "surrogateescape") for name, text in variables.items()}
        return subprocess.run(argv, env=data, capture_output=True, check=False, timeout=60)

    def state(self, **more: str) -> ShellState | None:
        env = {**self.env, **more}
        output = self.run(writing(self.shell, self.kind, MARKER), env).stdout
        assert is_written(output, MARKER)
        return read_state(self.kind, output, MARKER, env)

    def restored(self, state: ShellState | None, command: str, *rest: str, **more: str) -> str:
        """What a command says whose shell has read no profile."""
        assert state is not None
        found = restoring(self.kind, state, [self.shell, "-lc", command, *rest], {**self.env, **more})
        assert found is not None
        done = self.run(*found)
        return (done.stdout + done.stderr).decode()

    def plain(self, command: str, *rest: str, **more: str) -> str:
        """What it says when its shell reads the profile."""
        done = self.run([self.shell, "-lc", command, *rest], {**self.env, **more})
        return (done.stdout + done.stderr).decode()


LOOK = "echo $A; umask; set -o | grep -E 'noglob|errexit'; alias; echo $0 $1 $#"


def test_a_command_finds_what_the_profile_has_set_up(kind: ShellKind, tmp_path: Path) -> None:
    """As if its shell had read it."""
    text = "export A='it'\\''s'; umask 027; set -f; alias ll='ls -l' la='ls -A'; B=own\n"
    login = Login(tmp_path, kind, text)

    said = login.restored(login.state(), LOOK, "zero", "one")

    assert said == login.plain(LOOK, "zero", "one")
    assert said.startswith("it's\n")
    assert "27\n" in said
    assert "ls -A" in said
    assert said.endswith("zero one 1\n")


@pytest.mark.parametrize("kind", [ShellKind.BASH, ShellKind.ZSH], ids=lambda kind: kind.value)
def test_functions_come_along(kind: ShellKind, tmp_path: Path) -> None:
    if shutil.which(kind.value) is None:
        pytest.skip(f"{kind.value} is not installed")
    login = Login(
        tmp_path, kind, "greet() { local who=$1\n  cat <<END\nhello $who\nEND\n}; alias greet2=greet\n"
    )

    assert login.restored(login.state(), "greet you") == "hello you\n"


def test_options_that_a_function_is_written_with_are_set_before_it(tmp_path: Path) -> None:
    login = Login(
        tmp_path,
        ShellKind.BASH,
        "shopt -s extglob expand_aliases\nf() { case $1 in @(a|b)) echo one;; *) echo none;; esac; }\n"
        "g() { echo $1; }; export -f g; alias f2='f b'\n",
    )
    command = "f a; bash -c 'g two'\nf2"

    assert login.restored(login.state(), command) == login.plain(command) == "one\ntwo\none\n"


def test_what_the_profile_says_and_breaks_does_not_matter(kind: ShellKind, tmp_path: Path) -> None:
    """It prints, it fails, it wants every failure to end the shell, and it shows what is done."""
    login = Login(
        tmp_path, kind, "echo motd; printf '\\0'; ls /nothing; export A=1; PATH=/nowhere; set -ex\n"
    )

    said = login.restored(login.state(), "echo $A")

    assert said.startswith(("1\n+", "+ echo 1\n1\n"))
    assert said.count("+") == 1


def test_values_of_any_bytes_come_along(tmp_path: Path) -> None:
    login = Login(tmp_path, ShellKind.BASH, "export A=$'\\xff\\xe9\\n\\'\"$x`y`\\\\'\n")

    said = login.restored(login.state(), "printf %s \"$A\" | od -An -tx1 | tr -d ' \\n'")

    assert bytes.fromhex(said) == b"\xff\xe9\n'\"$x`y`\\"


def test_a_request_keeps_its_variables_and_gives_them_to_nobody(kind: ShellKind, tmp_path: Path) -> None:
    login = Login(tmp_path, kind, "export A=profile B=$GIVEN-longer\n")
    state = login.state(GIVEN="secret", A="request")
    assert state is not None

    assert "secret" not in (state.variables.get("GIVEN") or "")
    assert login.restored(state, "echo $A,$GIVEN.") == "profile,.\n"
    assert login.restored(state, "echo $A,$GIVEN.", A="mine", GIVEN="too") == "mine,too.\n"


def test_the_text_leaves_no_trace_in_what_the_command_starts(kind: ShellKind, tmp_path: Path) -> None:
    login = Login(tmp_path, kind, "export A=1\n")

    assert "HOLDFAST" not in login.restored(login.state(), "env")


def test_a_long_text_comes_in_parts(tmp_path: Path) -> None:
    functions = "\n".join(f"f{number}() {{ echo {'ä' * 100} {number}; }}" for number in range(1500))
    login = Login(tmp_path, ShellKind.BASH, functions)

    assert login.restored(login.state(), "f1499; f0") == f"{'ä' * 100} 1499\n{'ä' * 100} 0\n"


@pytest.mark.parametrize("profile", ["exit 3\n", "exec >/dev/null\n", "kill -9 $$\n"])
def test_a_shell_that_does_not_come_to_an_end_has_no_state(profile: str, tmp_path: Path) -> None:
    login = Login(tmp_path, ShellKind.BASH, profile)
    output = login.run(writing(login.shell, login.kind, MARKER), login.env).stdout

    assert not is_written(output, MARKER)
    assert read_state(login.kind, output, MARKER, {}) is None


def test_a_text_that_is_too_long_is_not_handed_over() -> None:
    state = ShellState({"A": "x" * MOST}, "")

    assert restoring(ShellKind.SH, state, ["sh", "-lc", "true"], {}) is None


@given(st.binary(max_size=200), st.sampled_from(ShellKind))
def test_output_of_any_kind_is_read_or_refused(noise: bytes, kind: ShellKind) -> None:
    whole = noise + MARKER.encode() + b"\0set\0umask 022\0\0\0\0A=1\0B=2\0\0" + MARKER.encode() + noise

    assert read_state(kind, noise, MARKER, {}) is None or MARKER.encode() in noise
    if MARKER.encode() not in noise:
        state = read_state(kind, whole, MARKER, {"B": "2"})
        assert state is not None
        assert state.variables == {"A": "1"}


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text("ab '\"\\\n$-=", max_size=8)))
def test_aliases_become_commands(aliases: dict[str, str]) -> None:
    """Some shells list them without the command, and with other marks of quotation."""
    listed = "".join(f"{name}={shlex.quote(text)}\n" for name, text in aliases.items())
    parts = [b"", b"umask 022", b"", b"", listed.encode(), b"A=1\0"]
    state = read_state(
        ShellKind.SH, MARKER.encode() + b"\0" + b"\0".join(parts) + b"\0" + MARKER.encode(), MARKER, {}
    )

    assert state is not None
    words = shlex.split(state.rest)
    assert [word for word in words if "=" in word] == [f"{name}={text}" for name, text in aliases.items()]


# What is kept.


def test_the_one_that_was_used_longest_ago_is_forgotten() -> None:
    room = Room(10_000, "bytes", name="x")
    kept = ShellSnapshots(room, 2)
    kept.keep(b"a", ShellState({"A": "1"}, "x" * 100))
    kept.keep(b"b", None)
    kept.find(b"a")
    kept.keep(b"c", None)

    assert [key in kept for key in (b"a", b"b", b"c")] == [True, False, True]
    assert kept.find(b"c") is None
    assert room.taken == 2 * 256 + 102
    kept.end()
    assert room.taken == 0


def test_without_room_and_after_the_end_nothing_is_kept() -> None:
    room = Room(300, "bytes", name="x")
    kept = ShellSnapshots(room, 2)
    kept.keep(b"a", ShellState({}, "x" * 100))
    assert b"a" not in kept

    kept.end()
    kept.keep(b"b", None)

    assert (b"b" in kept, room.taken) == (False, 0)
