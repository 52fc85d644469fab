"""Who may connect to ``holdfast serve``: tokens, and the certificate of the server."""

from __future__ import annotations

import argparse
import os
import re
import ssl
from hashlib import sha256

from holdfast.server.auth import Auth, CapabilityAuth, SignedAuth
from holdfast.server.listen import Listen, Stdio, TcpListen
from holdfast.server.stream import make_context

from .serve_options import CLOCK_SKEW

_SHORTEST_SECRET = 32
"""Bytes.  A shorter secret could be found by trying, given one token."""

_DIGEST = re.compile(r"[0-9A-Fa-f]{64}")


class BadAccess(Exception):
    """The options do not fit together, or a file cannot be used.  The text is a message for the user."""


def make_auth(arguments: argparse.Namespace, where: list[Listen]) -> Auth | None:
    """Return what checks the tokens of clients; None if clients need none.

    Raises:
        BadAccess: The options do not fit together.  The messages are those of other servers of this
            protocol, word for word.
    """
    mode = arguments.ws_auth
    signed = (
        arguments.ws_shared_secret_file,
        arguments.ws_issuer,
        arguments.ws_audience,
        arguments.ws_max_clock_skew_seconds,
    )
    fixed = (arguments.ws_token_file, arguments.ws_token_sha256)
    if mode is None:
        if _any_given(signed) or _any_given(fixed):
            raise BadAccess(
                "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`"
            )
        return None
    if mode == "capability-token" and _any_given(signed):
        raise BadAccess(
            "`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds`"
            " require `--ws-auth signed-bearer-token`"
        )
    if mode == "signed-bearer-token" and _any_given(fixed):
        raise BadAccess(
            "`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`,"
            " not `signed-bearer-token`"
        )
    if not any(isinstance(listen, TcpListen) for listen in where):
        kind = "stdio" if Stdio() in where else "a unix socket"
        raise BadAccess(f"WebSocket auth requires a WebSocket listener, not {kind}")
    return _capability(*fixed) if mode == "capability-token" else _signed(arguments)


def _any_given(values: tuple[object, ...]) -> bool:
    return any(value is not None for value in values)


def _capability(path: str | None, digest: str | None) -> Auth:
    if path is None and digest is None:
        raise BadAccess(
            "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set"
        )
    if path is not None and digest is not None:
        raise BadAccess("`--ws-token-file` and `--ws-token-sha256` are mutually exclusive")
    if path is not None:
        return CapabilityAuth(sha256(read_secret(path)).digest())
    if digest is None or not _DIGEST.fullmatch(digest):
        raise BadAccess("--ws-token-sha256 must be a 64-character hex SHA-256 digest")
    return CapabilityAuth(bytes.fromhex(digest))


def _signed(arguments: argparse.Namespace) -> Auth:
    path = arguments.ws_shared_secret_file
    if path is None:
        raise BadAccess("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set")
    skew = arguments.ws_max_clock_skew_seconds
    return SignedAuth(
        signing_secret(path),
        # An empty name means none.
        issuer=(arguments.ws_issuer or "").strip() or None,
        audience=(arguments.ws_audience or "").strip() or None,
        skew=CLOCK_SKEW if skew is None else skew,
    )


def signing_secret(path: str) -> bytes:
    """Read the secret that signs tokens.

    Raises:
        BadAccess: The file cannot be read, or the secret is too short.
    """
    secret = read_secret(path)
    if len(secret) < _SHORTEST_SECRET:
        raise BadAccess(f"signed websocket bearer secret {os.path.abspath(path)} must be at least 32 bytes")
    return secret


def read_secret(path: str) -> bytes:
    """Read a token or secret from a file, without white space around it.

    Raises:
        BadAccess: The file cannot be read, is empty, or is not text.
    """
    place = os.path.abspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
    except OSError as error:
        reason = f"{os.strerror(error.errno)} (os error {error.errno})" if error.errno else str(error)
        raise BadAccess(f"failed to read websocket auth secret {place}: {reason}") from None
    except ValueError:
        reason = "stream did not contain valid UTF-8"
        raise BadAccess(f"failed to read websocket auth secret {place}: {reason}") from None
    if not text:
        raise BadAccess(f"websocket auth secret {place} must not be empty")
    return text.encode()


def make_tls(arguments: argparse.Namespace, where: list[Listen]) -> ssl.SSLContext | None:
    """Return the TLS settings of ``wss`` listeners; None if there is no certificate.

    Raises:
        BadAccess: The options do not fit together.
        BadListen: The files do not contain a certificate and its key.
    """
    wanted = any(isinstance(listen, TcpListen) and listen.tls for listen in where)
    if arguments.tls_cert is None:
        if arguments.tls_key is not None:
            raise BadAccess("`--tls-key` requires `--tls-cert`")
        if wanted:
            raise BadAccess("`--tls-cert` is required for a wss:// listener")
        return None
    if not wanted:
        raise BadAccess("`--tls-cert` requires a wss:// listener")
    return make_context(arguments.tls_cert, arguments.tls_key)
