"""``holdfast serve``: who may connect, and with what certificate."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from .sizes import count

if TYPE_CHECKING:
    import ssl

    from holdfast.server.auth import Auth
    from holdfast.server.listen import Listen

_LEAST_SECRET = 32
"""Bytes: a shorter secret could be guessed from a token."""

_DIGEST = re.compile(r"[0-9A-Fa-f]{64}")
_SKEW = 30


class BadGuard(Exception):
    """The options do not fit together, or a file is not what it should be; ``str`` of this says how."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The options about clients, and those about certificates."""
    group = parser.add_argument_group("who may connect")
    group.add_argument(
        "--ws-auth",
        choices=("capability-token", "signed-bearer-token"),
        help="ask WebSocket clients for a bearer token: one for all, or signed ones (JWT, HS256)",
    )
    group.add_argument("--ws-token-file", metavar="PATH", help="the file with the capability token")
    group.add_argument("--ws-token-sha256", metavar="HEX", help="the SHA-256 digest of the capability token")
    group.add_argument(
        "--ws-shared-secret-file",
        metavar="PATH",
        help="the file with the secret that signs tokens, at least 32 bytes; holdfast token makes them",
    )
    group.add_argument("--ws-issuer", metavar="NAME", help="the issuer that a signed token must have")
    group.add_argument("--ws-audience", metavar="NAME", help="the audience that a signed token must have")
    group.add_argument(
        "--ws-max-clock-skew-seconds",
        metavar="SECONDS",
        type=count,
        help=f"how far clocks may differ (default: {_SKEW})",
    )
    group.add_argument(
        "--tls-cert",
        metavar="PATH",
        help="the certificate of wss:// listeners, in PEM format, with those that vouch for it",
    )
    group.add_argument(
        "--tls-key", metavar="PATH", help="its private key, if it is not in the file of the certificate"
    )


def make_auth(arguments: argparse.Namespace, where: list[Listen]) -> Auth | None:
    """Whoever looks at tokens; None if everybody may connect.

    Raises:
        BadGuard: In the words that other servers of this protocol have for it.
    """
    from holdfast.server.listen import Stdio, Tcp

    mode = arguments.ws_auth
    signed = (
        arguments.ws_shared_secret_file,
        arguments.ws_issuer,
        arguments.ws_audience,
        arguments.ws_max_clock_skew_seconds,
    )
    fixed = (arguments.ws_token_file, arguments.ws_token_sha256)
    if mode is None:
        if _any(signed) or _any(fixed):
            raise BadGuard(
                "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`"
            )
        return None
    if mode == "capability-token" and _any(signed):
        raise BadGuard(
            "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds`"
            " require `--ws-auth signed-bearer-token`"
        )
    if mode == "signed-bearer-token" and _any(fixed):
        raise BadGuard(
            "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`,"
            " not `signed-bearer-token`"
        )
    if not any(isinstance(listen, Tcp) for listen in where):
        kind = "stdio" if Stdio() in where else "a unix socket"
        raise BadGuard(f"WebSocket auth requires a WebSocket listener, not {kind}")
    return _capability(*fixed) if mode == "capability-token" else _signed(arguments)


def _any(values: tuple[object, ...]) -> bool:
    return any(value is not None for value in values)


def _capability(path: str | None, digest: str | None) -> Auth:
    from hashlib import sha256

    from holdfast.server.auth import CapabilityAuth

    if path is None and digest is None:
        raise BadGuard(
            "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set"
        )
    if path is not None and digest is not None:
        raise BadGuard("`--ws-token-file` and `--ws-token-sha256` are mutually exclusive")
    if path is not None:
        return CapabilityAuth(sha256(read_secret(path)).digest())
    if digest is None or not _DIGEST.fullmatch(digest):
        raise BadGuard("--ws-token-sha256 must be a 64-character hex SHA-256 digest")
    return CapabilityAuth(bytes.fromhex(digest))


def _signed(arguments: argparse.Namespace) -> Auth:
    from holdfast.server.auth import SignedAuth

    path = arguments.ws_shared_secret_file
    if path is None:
        raise BadGuard("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set")
    skew = arguments.ws_max_clock_skew_seconds
    return SignedAuth(
        signing_secret(path),
        # Nobody is called nothing.
        issuer=(arguments.ws_issuer or "").strip() or None,
        audience=(arguments.ws_audience or "").strip() or None,
        skew=_SKEW if skew is None else skew,
    )


def signing_secret(path: str) -> bytes:
    """The secret in a file, if it is long enough.

    Raises:
        BadGuard: It is not, or cannot be read.
    """
    secret = read_secret(path)
    if len(secret) < _LEAST_SECRET:
        raise BadGuard(f"signed websocket bearer secret {os.path.abspath(path)} must be at least 32 bytes")
    return secret


def read_secret(path: str) -> bytes:
    """What is in a file, without white space around it."""
    place = os.path.abspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
    except OSError as error:
        reason = f"{os.strerror(error.errno)} (os error {error.errno})" if error.errno else str(error)
        raise BadGuard(f"failed to read websocket auth secret {place}: {reason}") from None
    except ValueError:
        reason = "stream did not contain valid UTF-8"
        raise BadGuard(f"failed to read websocket auth secret {place}: {reason}") from None
    if not text:
        raise BadGuard(f"websocket auth secret {place} must not be empty")
    return text.encode()


def make_tls(arguments: argparse.Namespace, where: list[Listen]) -> ssl.SSLContext | None:
    """The certificate of ``wss`` listeners; None if there is none.

    Raises:
        BadGuard: The options do not fit together.
        BadListen: The files are not what they should be.
    """
    from holdfast.server.listen import Tcp

    wanted = any(isinstance(listen, Tcp) and listen.tls for listen in where)
    if arguments.tls_cert is None:
        if arguments.tls_key is not None:
            raise BadGuard("`--tls-key` requires `--tls-cert`")
        if wanted:
            raise BadGuard("`--tls-cert` is required for a wss:// listener")
        return None
    if not wanted:
        raise BadGuard("`--tls-cert` requires a wss:// listener")
    from holdfast.server.tls import make_context

    return make_context(arguments.tls_cert, arguments.tls_key)
