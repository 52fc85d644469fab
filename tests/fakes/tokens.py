"""Signed tokens made by hand, with nothing of ours and no library: a test can break every rule of them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

from holdfast.principal import Principal
from holdfast.server.auth import Auth, NotAdmitted, SignedAuth

SECRET = b"a secret that only the tests know, of 48 bytes.."
HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}

SOON = 3600
"""Seconds that a token lasts."""


def part(data: bytes) -> str:
    """One of the three parts of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signature(text: str, secret: bytes = SECRET, alg: str = "HS256") -> bytes:
    return hmac.new(secret, text.encode(), HASHES[alg]).digest()


def sealed(payload: bytes, head: bytes = b'{"alg":"HS256","typ":"JWT"}', secret: bytes = SECRET) -> str:
    """A token with exactly these bytes in it, and a good signature."""
    text = f"{part(head)}.{part(payload)}"
    return f"{text}.{part(signature(text, secret))}"


def token(sub: str | None = None, *, secret: bytes = SECRET, **claims: Any) -> str:
    """A good token, or one with these claims; a claim that is ``...`` is left out."""
    whole: dict[str, Any] = {"exp": int(time.time()) + SOON, **claims}
    if sub is not None:
        whole["sub"] = sub
    return sealed(json.dumps({k: v for k, v in whole.items() if v is not ...}).encode(), secret=secret)


def bearer(text: str) -> str:
    """The header line that shows a token."""
    return f"Authorization: Bearer {text}"


def signing_options(directory: Path) -> tuple[str, ...]:
    """What a server needs to know of these tokens."""
    path = directory / "secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    return "--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", str(path)


# For tests of what checks them.

NOW = 1_000_000
"""What the clock says."""


def signed(**options: Any) -> SignedAuth:
    return SignedAuth(SECRET, **{"clock": lambda: NOW, **options})


def asked(auth: Auth, header: str | None) -> Principal | str:
    """Who is let in, or what it is told."""
    try:
        return auth.admit(header)
    except NotAdmitted as denied:
        return str(denied)


def shown(text: str, **options: Any) -> Principal | str:
    """The same for a signed token."""
    return asked(signed(**options), f"Bearer {text}")


def claimed(**claims: Any) -> str:
    """A token that is good for another minute, or that has these claims."""
    return token(**{"exp": NOW + 60, **claims})
