"""``holdfast token``: makes a signed token, and says in it what it allows."""

from __future__ import annotations

import argparse
from math import ceil
from time import time
from typing import Any

from . import options
from .durations import positive_duration
from .failure import Failure
from .guarding import BadGuard, signing_secret
from .sizes import byte_count, count


def configure(parser: options.Parser) -> None:
    """The options of ``token``."""
    parser.description = (
        "Make a token for a server with --ws-auth signed-bearer-token, and print it.  What is not restricted"
        " here is allowed."
    )
    parser.epilog = (
        "examples:\n"
        "  holdfast token --secret-file secret --subject alice --expires 8h >alice.token\n"
        "  holdfast token --secret-file secret --subject ci --root /srv/ci --env 'CI_*' --processes 50\n"
        "  holdfast token --secret-file secret --subject scraper --method metrics --expires 365d\n"
    )
    parser.add_argument(
        "--secret-file",
        metavar="PATH",
        required=True,
        help="the file with the secret of the server's --ws-shared-secret-file",
    )
    parser.add_argument(
        "--subject",
        metavar="NAME",
        required=True,
        help="whom it is for: clients of one name share sessions and quotas, others see nothing of them",
    )
    parser.add_argument(
        "--expires",
        metavar="TIME",
        type=positive_duration,
        default=3600.0,
        help="for how long it may be used to connect, for example 15m, 8h or 30d (default: 1h)",
    )
    parser.add_argument("--issuer", metavar="NAME", help="the server's --ws-issuer")
    parser.add_argument("--audience", metavar="NAME", help="the server's --ws-audience")
    _configure_grant(parser)
    options.add_output(parser, "the token and what it says, as an object")


def _configure_grant(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it allows")
    group.add_argument(
        "--method",
        metavar="PATTERN",
        action="append",
        help="a method, * for any run of characters: 'process/*', 'fs/read*'; metrics for GET /metrics;"
        " may be repeated",
    )
    group.add_argument(
        "--root",
        metavar="PATH",
        action="append",
        help="an absolute path: programs start, and files are reached, only there and below; may be repeated",
    )
    group.add_argument(
        "--env",
        metavar="PATTERN",
        action="append",
        help="a variable that programs may have, * for any run of characters; may be repeated",
    )
    group.add_argument("--processes", metavar="N", type=count, help="processes at once")
    group.add_argument(
        "--retained-bytes",
        metavar="BYTES",
        type=byte_count,
        help="output kept for all of them, 64m for example",
    )
    group.add_argument("--connections", metavar="N", type=count, help="connections at once")
    group.add_argument("--sessions", metavar="N", type=count, help="sessions at once")


def token(arguments: argparse.Namespace) -> int:
    """Print the token."""
    import jwt

    from holdfast.server.auth import CLAIM, grant_of

    allowed = {
        "methods": arguments.method,
        "roots": arguments.root,
        "env": arguments.env,
        "processes": arguments.processes,
        "retainedBytes": arguments.retained_bytes,
        "connections": arguments.connections,
        "sessions": arguments.sessions,
    }
    claim = {name: value for name, value in allowed.items() if value is not None}
    try:
        _check(arguments.subject, arguments.issuer, arguments.audience, claim)
        grant_of(claim)
        secret = signing_secret(arguments.secret_file)
    except (ValueError, BadGuard) as bad:
        raise Failure(str(bad)) from None
    now = int(time())
    claims: dict[str, Any] = {"sub": arguments.subject, "iat": now, "exp": now + ceil(arguments.expires)}
    if arguments.issuer is not None:
        claims["iss"] = arguments.issuer
    if arguments.audience is not None:
        claims["aud"] = arguments.audience
    if claim:
        claims[CLAIM] = claim
    made = jwt.encode(claims, secret, algorithm="HS256")
    if arguments.output == "json":
        import json

        print(json.dumps({"token": made, "claims": claims}))
    else:
        print(made)
    return 0


def _check(subject: str, *rest: object) -> None:
    """Refuse what no server would take.

    Raises:
        ValueError: The subject is empty, or something is no text.
    """
    if not subject:
        raise ValueError("the subject must not be empty: it tells clients apart")
    import msgspec  # Here: other commands do without.

    for text in (subject, *rest):
        try:
            msgspec.json.encode(text)
        except UnicodeEncodeError:
            raise ValueError(f"{text!r} is not text, and a token cannot say it") from None
