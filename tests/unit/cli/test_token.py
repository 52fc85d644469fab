"""Making tokens: what is in one, and what is refused."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from holdfast.server.auth import SignedAuth
from tests.fakes.tokens import SECRET


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    return str(path)


def made(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What is printed, which is nothing but the token."""
    code = main.main(["token", *options])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert SECRET.decode() not in out
    return out.removesuffix("\n")


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


def test_a_token_says_whom_it_is_for_and_until_when(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = int(time.time())
    token = made(capsys, "--secret-file", secret, "--subject", "alice")
    found = claims(token)

    assert set(found) == {"sub", "iat", "exp"}
    assert (found["sub"], found["exp"] - found["iat"]) == ("alice", 3600)
    assert before <= found["iat"] <= time.time()
    assert SignedAuth(SECRET).admit(f"Bearer {token}").name == "alice"


def test_a_part_of_a_second_is_one_to_a_token(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = claims(made(capsys, "--secret-file", secret, "--subject", "a", "--expires", "1500ms"))

    assert found["exp"] - found["iat"] == 2


def test_everything_that_can_be_restricted_is_in_it(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    token = made(
        capsys,
        *("--secret-file", secret, "--subject", "ci", "--expires", "8h", "--issuer", "i", "--audience", "a"),
        *("--method", "process/*", "--method", "metrics", "--root", "/work", "--env", "CI_*"),
        *("--processes", "0", "--retained-bytes", "64m", "--connections", "3", "--sessions", "4"),
        *("--user", "build"),
    )
    found = claims(token)

    assert (found["iss"], found["aud"], found["exp"] - found["iat"]) == ("i", "a", 8 * 3600)
    assert found["holdfast"] == {
        "methods": ["process/*", "metrics"],
        "roots": ["/work"],
        "env": ["CI_*"],
        "processes": 0,
        "retainedBytes": 64 << 20,
        "connections": 3,
        "sessions": 4,
        "users": ["build"],
    }
    grant = SignedAuth(SECRET, issuer="i", audience="a").admit(f"Bearer {token}").grant
    assert (grant.methods, grant.roots, grant.processes) == (("process/*", "metrics"), ("/work",), 0)


def test_for_programs_it_comes_with_what_it_says(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = made(capsys, "--secret-file", secret, "--subject", "alice", "-o", "json")
    found = json.loads(text)

    assert found["claims"] == claims(found["token"])


BAD = {
    "no subject": (["--secret-file", "SECRET"], "--subject"),
    "no secret": (["--subject", "a"], "--secret-file"),
    "no such secret": (["--secret-file", "/no/such", "--subject", "a"], "/no/such"),
    "a directory": (["--secret-file", "/", "--subject", "a"], "directory"),
    "no time": (["--secret-file", "SECRET", "--subject", "a", "--expires", "0"], "no time at all"),
    "not a time": (["--secret-file", "SECRET", "--subject", "a", "--expires", "soon"], "is not a time"),
    "a relative root": (
        ["--secret-file", "SECRET", "--subject", "a", "--root", "x"],
        "'x' is not an absolute",
    ),
    "dots": (["--secret-file", "SECRET", "--subject", "a", "--root", "/a/../b"], "is not an absolute path"),
    "less than nothing": (["--secret-file", "SECRET", "--subject", "a", "--processes", "-1"], "-1"),
    "no number": (
        ["--secret-file", "SECRET", "--subject", "a", "--sessions", "many"],
        "many is not a number",
    ),
    "no size": (
        ["--secret-file", "SECRET", "--subject", "a", "--retained-bytes", "0"],
        "not a number of bytes",
    ),
    "more": (["--secret-file", "SECRET", "--subject", "a", "more"], "more"),
    "no text": (["--secret-file", "SECRET", "--subject", "a\udcff"], "is not text"),
    "no text in a list": (["--secret-file", "SECRET", "--subject", "a", "--env", "\udcff"], "is not text"),
    "an empty subject": (["--secret-file", "SECRET", "--subject", ""], "subject"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_told_in_one_clear_line(
    case: str, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options, words = BAD[case]

    code = exit_code([secret if option == "SECRET" else option for option in options])

    out, err = capsys.readouterr()
    # A call that cannot be understood has another code, and a second line that says where the help is.
    usage = err.endswith("\nSee 'holdfast token --help'.\n")
    assert (code, out) == (2 if usage else 125, "")
    assert words in err.splitlines()[0]
    assert len(err.splitlines()) == 1 + usage
    assert SECRET.decode() not in err


def exit_code(options: list[str]) -> int:
    try:
        return main.main(["token", *options])
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("size", [0, 31])
def test_a_secret_that_is_too_short_is_refused(
    size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever can guess it can make tokens."""
    path = tmp_path / "short"
    path.write_bytes(b"x" * size)

    assert exit_code(["--secret-file", str(path), "--subject", "a"]) == 125
    assert str(path) in capsys.readouterr().err
