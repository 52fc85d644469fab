"""Who may connect, as options: what fits together, and every word of what does not."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import ssl
from pathlib import Path

import pytest

from holdfast.cli.main import main
from holdfast.cli.serve_access import BadAccess, make_auth, make_tls, read_secret, signing_secret
from holdfast.cli.serve_options import add_access
from holdfast.principal import Principal
from holdfast.server.auth import Auth, NotAdmitted
from holdfast.server.listen import BadListen, Listen, Stdio, TcpListen, UnixListen
from tests.fakes.certificates import Authority, authority
from tests.fakes.tokens import SECRET, token

WS = TcpListen("127.0.0.1", 0)
WSS = TcpListen("127.0.0.1", 0, tls=True)
DIGEST = hashlib.sha256(b"tok").hexdigest()

CAPABILITY = ("--ws-auth", "capability-token")
SIGNED = ("--ws-auth", "signed-bearer-token")


def arguments(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_access(parser)
    return parser.parse_args(options)


def auth(*options: str, where: tuple[Listen, ...] = (WS,)) -> Auth | None:
    return make_auth(arguments(*options), list(where))


def words(*options: str, where: tuple[Listen, ...] = (WS,)) -> str:
    """Why there is no such server."""
    with pytest.raises(BadAccess) as caught:
        auth(*options, where=where)
    return str(caught.value)


def lets_in(auth: Auth | None, text: str) -> Principal | None:
    assert auth is not None
    try:
        return auth.admit(f"Bearer {text}")
    except NotAdmitted:
        return None


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """The path of a file with white space around what counts."""
    path = tmp_path / "secret"
    path.write_bytes(b"\n  " + SECRET + b" \r\n")
    return str(path)


# What fits together.


def test_without_options_nobody_is_asked() -> None:
    assert auth() is None
    assert auth(where=(Stdio(), UnixListen("/x"))) is None


def test_a_capability_token_is_what_is_in_the_file_without_space_around_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(" \n tok \t\n")

    made = auth(*CAPABILITY, "--ws-token-file", str(path))

    assert lets_in(made, "tok") == Principal("token")
    assert lets_in(made, "other") is None


@pytest.mark.parametrize("digest", [DIGEST, DIGEST.upper()])
def test_a_capability_token_may_be_known_by_its_digest(digest: str) -> None:
    made = auth(*CAPABILITY, "--ws-token-sha256", digest)

    assert lets_in(made, "tok") == Principal("token")
    assert lets_in(made, digest) is None


def test_signed_tokens_are_checked_with_all_that_the_options_say(secret: str) -> None:
    options = ("--ws-issuer", " me ", "--ws-audience", "us", "--ws-max-clock-skew-seconds", "0")
    made = auth(*SIGNED, "--ws-shared-secret-file", secret, *options)

    assert lets_in(made, token("a", iss="me", aud=["us"])) == Principal("a", "me")
    assert lets_in(made, token("a", iss="me")) is None
    assert lets_in(made, token("a", aud="us")) is None
    assert lets_in(made, token("a", iss="me", aud="us", exp=1)) is None
    assert lets_in(made, token("a", iss="me", aud="us", secret=SECRET + b"\n")) is None


def test_the_skew_is_what_the_option_says(secret: str) -> None:
    made = auth(*SIGNED, "--ws-shared-secret-file", secret, "--ws-max-clock-skew-seconds", "9999999999")

    assert lets_in(made, token("a", exp=1)) == Principal("a")


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_issuer_or_audience_asks_for_none(secret: str, empty: str) -> None:
    made = auth(*SIGNED, "--ws-shared-secret-file", secret, "--ws-issuer", empty, "--ws-audience", empty)

    assert lets_in(made, token("a")) == Principal("a")


@pytest.mark.parametrize("where", [(WS,), (WSS,), (Stdio(), WS), (UnixListen("/x"), WSS)])
def test_one_websocket_among_the_listeners_is_enough(where: tuple[Listen, ...]) -> None:
    assert auth(*CAPABILITY, "--ws-token-sha256", DIGEST, where=where) is not None


@pytest.mark.parametrize("skew", ["-1", "1.5", "x", ""])
def test_a_skew_is_a_whole_number(skew: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments("--ws-max-clock-skew-seconds", skew)

    assert "--ws-max-clock-skew-seconds" in capsys.readouterr().err


# What does not: in the words of the protocol.

REQUIRED = "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`"
ONE_NEEDED = "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set"
EXCLUSIVE = "`--ws-token-file` and `--ws-token-sha256` are mutually exclusive"
BAD_DIGEST = "--ws-token-sha256 must be a 64-character hex SHA-256 digest"
SECRET_NEEDED = "`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set"
NOT_SIGNED = (
    "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds`"
    " require `--ws-auth signed-bearer-token`"
)
NOT_FIXED = (
    "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`,"
    " not `signed-bearer-token`"
)

FIXED_FLAGS = [("--ws-token-file", "/x"), ("--ws-token-sha256", DIGEST)]
SIGNED_FLAGS = [
    ("--ws-shared-secret-file", "/x"),
    ("--ws-issuer", "i"),
    ("--ws-audience", "a"),
    ("--ws-max-clock-skew-seconds", "0"),
]


@pytest.mark.parametrize("flags", [*FIXED_FLAGS, *SIGNED_FLAGS])
def test_details_need_the_kind(flags: tuple[str, str]) -> None:
    """Or somebody believes that a server asks for tokens which asks for none."""
    assert words(*flags) == REQUIRED
    assert words(*flags, where=(Stdio(),)) == REQUIRED


@pytest.mark.parametrize("flags", SIGNED_FLAGS)
def test_details_of_signed_tokens_do_not_go_with_the_other_kind(flags: tuple[str, str]) -> None:
    assert words(*CAPABILITY, "--ws-token-sha256", DIGEST, *flags) == NOT_SIGNED


@pytest.mark.parametrize("flags", FIXED_FLAGS)
def test_a_capability_token_does_not_go_with_signed_ones(secret: str, flags: tuple[str, str]) -> None:
    assert words(*SIGNED, "--ws-shared-secret-file", secret, *flags) == NOT_FIXED


def test_a_capability_token_comes_from_exactly_one_place() -> None:
    assert words(*CAPABILITY) == ONE_NEEDED
    assert words(*CAPABILITY, "--ws-token-file", "/x", "--ws-token-sha256", DIGEST) == EXCLUSIVE


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "x",
        DIGEST[:-1],
        DIGEST + "0",
        "g" + DIGEST[1:],
        " " + DIGEST[1:],
        DIGEST[:30] + "  " + DIGEST[32:],
        "0x" + DIGEST[2:],
        "\u0661" * 64,
        DIGEST + "\n",
    ],
)
def test_a_digest_is_64_digits_and_nothing_else(digest: str) -> None:
    assert words(*CAPABILITY, "--ws-token-sha256", digest) == BAD_DIGEST


def test_signed_tokens_need_a_secret() -> None:
    assert words(*SIGNED) == SECRET_NEEDED


@pytest.mark.parametrize("size", [1, 31])
def test_a_short_secret_is_refused_whatever_is_around_it(tmp_path: Path, size: int) -> None:
    path = tmp_path / "secret"
    path.write_text("x" * size + "\n" * 40)

    said = words(*SIGNED, "--ws-shared-secret-file", str(path))

    assert said == f"signed websocket bearer secret {path} must be at least 32 bytes"


def test_32_bytes_are_enough_and_bytes_are_what_counts(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("é" * 16)

    assert signing_secret(str(path)) == ("é" * 16).encode()


@pytest.mark.parametrize(
    "flags", [(*CAPABILITY, "--ws-token-file"), (*SIGNED, "--ws-shared-secret-file")], ids=["token", "secret"]
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, flags: tuple[str, ...]) -> None:
    begin = "failed to read websocket auth secret"
    binary, empty = tmp_path / "binary", tmp_path / "empty"
    binary.write_bytes(b"\xff" * 40)
    empty.write_text(" \n\t\n")

    assert (
        words(*flags, str(tmp_path / "no"))
        == f"{begin} {tmp_path}/no: No such file or directory (os error 2)"
    )
    assert words(*flags, str(tmp_path)) == f"{begin} {tmp_path}: Is a directory (os error 21)"
    assert words(*flags, f"{empty}/x") == f"{begin} {empty}/x: Not a directory (os error 20)"
    assert words(*flags, str(binary)) == f"{begin} {binary}: stream did not contain valid UTF-8"
    assert words(*flags, str(empty)) == f"websocket auth secret {empty} must not be empty"


def test_a_relative_path_is_shown_as_an_absolute_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the log of a service does not know where it was started."""
    monkeypatch.chdir(tmp_path)

    said = words(*CAPABILITY, "--ws-token-file", "no")

    assert said == (
        f"failed to read websocket auth secret {os.getcwd()}/no: No such file or directory (os error 2)"
    )


def test_what_cannot_be_read_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("short-s3cret")

    with pytest.raises(BadAccess) as caught:
        signing_secret(str(path))
    path.write_bytes(b"s3cret\xff")
    with pytest.raises(BadAccess) as binary:
        read_secret(str(path))

    for said in (caught, binary):
        assert "s3cret" not in f"{said.value} {said.value!r} {said.value.__cause__}"


@pytest.mark.parametrize(
    ("where", "kind"),
    [((Stdio(),), "stdio"), ((UnixListen("/x"),), "a unix socket"), ((UnixListen("/x"), Stdio()), "stdio")],
)
def test_a_token_needs_somebody_who_is_asked_for_it(where: tuple[Listen, ...], kind: str) -> None:
    said = words(*CAPABILITY, "--ws-token-sha256", DIGEST, where=where)

    assert said == f"WebSocket auth requires a WebSocket listener, not {kind}"


ERRORS: dict[str, tuple[list[str], str]] = {
    "no kind": (["--ws-token-sha256", DIGEST], REQUIRED),
    "no token": ([*CAPABILITY], ONE_NEEDED),
    "two tokens": ([*CAPABILITY, "--ws-token-file", "/x", "--ws-token-sha256", DIGEST], EXCLUSIVE),
    "a bad digest": ([*CAPABILITY, "--ws-token-sha256", "x"], BAD_DIGEST),
    "no secret": ([*SIGNED], SECRET_NEEDED),
    "no such file": (
        [*SIGNED, "--ws-shared-secret-file", "/no/such"],
        "failed to read websocket auth secret /no/such: No such file or directory (os error 2)",
    ),
    "stdio alone": (
        [*CAPABILITY, "--ws-token-sha256", DIGEST, "--listen", "stdio"],
        "WebSocket auth requires a WebSocket listener, not stdio",
    ),
    "a key alone": (["--tls-key", "/x"], "`--tls-key` requires `--tls-cert`"),
    "no certificate": (["--listen", "wss://127.0.0.1:0"], "`--tls-cert` is required for a wss:// listener"),
    "nobody to use it": (["--tls-cert", "/x"], "`--tls-cert` requires a wss:// listener"),
    "no such certificate": (
        ["--listen", "wss://127.0.0.1:0", "--tls-cert", "/no/such"],
        "cannot use the TLS certificate /no/such: No such file or directory",
    ),
}


@pytest.mark.parametrize(("options", "said"), ERRORS.values(), ids=ERRORS)
def test_each_is_one_line_on_standard_error(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *options]) == 1
    assert capsys.readouterr() == ("", f"Error: {said}\n")


# Certificates.


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls"))


def tls(*options: str, where: tuple[Listen, ...] = (WSS,)) -> ssl.SSLContext | None:
    return make_tls(arguments(*options), list(where))


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls(where=(WS, Stdio())) is None


def test_a_certificate_may_be_in_one_file_with_its_key_or_in_two(issued: Authority) -> None:
    assert tls("--tls-cert", issued.certificate, "--tls-key", issued.key) is not None
    assert tls("--tls-cert", issued.both) is not None
    assert tls("--tls-cert", issued.both, where=(UnixListen("/x"), WS, WSS)) is not None


@pytest.mark.parametrize(
    ("options", "where", "said"),
    [
        (("--tls-key", "/x"), (WSS,), "`--tls-key` requires `--tls-cert`"),
        ((), (WS, WSS), "`--tls-cert` is required for a wss:// listener"),
        (("--tls-cert", "/x"), (WS, Stdio(), UnixListen("/x")), "`--tls-cert` requires a wss:// listener"),
    ],
)
def test_certificates_and_listeners_need_each_other(
    options: tuple[str, ...], where: tuple[Listen, ...], said: str
) -> None:
    with pytest.raises(BadAccess) as caught:
        tls(*options, where=where)

    assert str(caught.value) == said


def test_a_bad_certificate_is_named(issued: Authority) -> None:
    with pytest.raises(BadListen, match="cannot use the TLS certificate"):
        tls("--tls-cert", issued.key)


def test_nothing_of_a_secret_is_in_the_arguments(secret: str) -> None:
    """They are shown to everybody on the host."""
    assert SECRET.decode() not in json.dumps(vars(arguments("--ws-shared-secret-file", secret)))
