"""The command line at a server that it cannot use: each reason has a sentence of its own, told at once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.certificates import authority
from tests.fakes.server import program, program_at
from tests.fakes.terminal import holdfast
from tests.fakes.tokens import signing_options, token

pytestmark = pytest.mark.slow

AN_HOUR = "--reconnect=1h"
"""Whoever tries again for so long does not end within a test."""


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that asks for signed tokens."""
    with program_at(*signing_options(tmp_path_factory.mktemp("auth"))) as (_, url):
        yield url


def complaint(url: str, *options: str) -> str:
    """What ``ps`` says, which fails."""
    done = holdfast("ps", "-H", url, AN_HOUR, *options)
    assert (done.returncode, done.stdout) == (125, b"")
    return done.stderr.decode()


def with_token(url: str, text: str, folder: Path) -> str:
    (folder / "token").write_text(text)
    return complaint(url, "--token-file", str(folder / "token"))


def test_without_tls_where_it_is_spoken_the_right_url_is_named(tmp_path: Path) -> None:
    """A server of TLS ends such a connection without a word, as one that is restarted does."""
    made = authority(tmp_path)
    options = ("--tls-cert", made.certificate, "--tls-key", made.key)
    with program("--listen", "wss://127.0.0.1:0", *options) as started:
        url = started.read_url()
        plain = url.replace("wss:", "ws:")

        assert complaint(plain) == f"holdfast: cannot reach {plain}: the server there speaks TLS: use {url}\n"
        assert "its certificate cannot be trusted" in complaint(url)


def test_tls_where_none_is_spoken_names_the_right_url_too(asking: str) -> None:
    secure = asking.replace("ws:", "wss:")

    assert complaint(secure) == (
        f"holdfast: cannot reach {secure}: the server there does not speak TLS: use {asking}\n"
    )


def test_a_token_is_asked_for_and_a_wrong_one_is_called_so(asking: str, tmp_path: Path) -> None:
    login = f"'holdfast login {asking}'"

    assert complaint(asking) == (
        f"holdfast: {asking} asks for a token; {login} stores one, or --token-file names a file with it\n"
    )
    for text, reason in (
        ("wrong", "invalid websocket jwt"),
        (token("a", exp=5), "expired websocket jwt"),
    ):
        assert with_token(asking, text, tmp_path) == (
            f"holdfast: {asking} does not accept the token ({reason});"
            f" get another one, and {login} stores it\n"
        )


@pytest.mark.parametrize("quota", ["connections", "sessions"])
def test_a_quota_is_no_missing_server(quota: str, asking: str, tmp_path: Path) -> None:
    text = token("a", holdfast={quota: 0})

    assert with_token(asking, text, tmp_path) == (
        f"holdfast: {asking} has no room for another client:"
        f" limit reached: {quota} of one principal (0); end one, or try again later\n"
    )


def test_what_a_token_does_not_allow_is_named(asking: str, tmp_path: Path) -> None:
    assert with_token(asking, token("a", holdfast={"methods": []}), tmp_path) == (
        "holdfast: not allowed by the token: method 'process/list'; ask for a token that allows it\n"
    )


def test_another_server_and_none_are_told_apart(asking: str) -> None:
    assert complaint(f"{asking}/other") == (
        f"holdfast: cannot reach {asking}/other: HTTP 404 Not Found; check the URL\n"
    )
    assert complaint("ws://127.0.0.1:1") == (
        "holdfast: cannot reach ws://127.0.0.1:1: Connection refused;"
        " is a server there?  'holdfast serve' starts one\n"
    )


def test_a_name_that_nobody_knows_is_named() -> None:
    """In a network of its own, where nobody can be asked."""
    alone = ("unshare", "--user", "--map-root-user", "--net")
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")

    done = holdfast("ps", "-H", "ws://no.invalid:1", AN_HOUR, under=alone)

    assert done.returncode == 125
    assert done.stderr.startswith(b"holdfast: cannot reach ws://no.invalid:1: ")
    assert done.stderr.endswith(b"; check the URL\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use every socket")
def test_a_socket_of_somebody_else_is_forbidden(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with program("--listen", f"unix://{path}") as started:
        started.read_url()
        path.chmod(0)

        assert complaint(f"unix://{path}") == (
            f"holdfast: you may not use unix://{path}: Permission denied;"
            " ask its owner, or start your own server\n"
        )
