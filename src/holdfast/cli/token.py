"""``holdfast token``: makes a signed token, with claims about what its holder may do."""

from __future__ import annotations

import argparse
import json
from math import ceil
from time import time
from typing import Any

import jwt
import msgspec

from holdfast.server.auth import CLAIM, grant_of

from .options import wants_json
from .report import Failure
from .serve_access import BadAccess, signing_secret


def token(arguments: argparse.Namespace) -> int:
    """Print a token that has the claims of the options.

    Raises:
        Failure: No server would accept such a token, or the secret cannot be read.
    """
    allowed = {
        "methods": arguments.method,
        "roots": arguments.root,
        "env": arguments.env,
        "processes": arguments.processes,
        "retainedBytes": arguments.retained_bytes,
        "connections": arguments.connections,
        "sessions": arguments.sessions,
        "users": arguments.user,
    }
    claim = {name: value for name, value in allowed.items() if value is not None}
    try:
        _check(arguments.subject, arguments.issuer, arguments.audience, claim)
        grant_of(claim)
        secret = signing_secret(arguments.secret_file)
    except (ValueError, BadAccess) as bad:
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
    if wants_json(arguments):
        print(json.dumps({"token": made, "claims": claims}))
    else:
        print(made)
    return 0


def _check(subject: str, *rest: object) -> None:
    """Check that a token can be made of these claims.

    Raises:
        ValueError: The subject is empty, or a claim is not Unicode text.
    """
    if not subject:
        raise ValueError("the subject must not be empty: it tells clients apart")
    for text in (subject, *rest):
        try:
            msgspec.json.encode(text)
        except UnicodeEncodeError:
            raise ValueError(f"{text!r} is not text, and a token cannot say it") from None
