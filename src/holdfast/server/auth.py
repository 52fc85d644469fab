"""Who may connect: bearer tokens of two kinds.

What must hold:

1. A secret is compared by its digest, in a time that tells nothing about it, and is never told:
   neither to the log nor in an error.
2. What a token says about itself that we cannot read is a reason to refuse it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from string import whitespace
from time import time
from typing import Any, Protocol

import msgspec

from holdfast.principal import Grant, Principal

CLAIM = "holdfast"
"""The claim that says what a token allows."""

MISSING = "missing websocket bearer token"
BAD_HEADER = "invalid authorization header"
BAD_TOKEN = "invalid websocket bearer token"  # noqa: S105  (the words of an answer)
BAD_JWT = "invalid websocket jwt"
EXPIRED = "expired websocket jwt"
EARLY = "websocket jwt is not valid yet"
ISSUER = "websocket jwt issuer mismatch"
AUDIENCE = "websocket jwt audience mismatch"

REASONS = {
    MISSING: "missing",
    BAD_HEADER: "header",
    BAD_TOKEN: "invalid",
    BAD_JWT: "invalid",
    EXPIRED: "expired",
    EARLY: "early",
    ISSUER: "issuer",
    AUDIENCE: "audience",
}
"""The word for each refusal in metrics and in the audit log."""


class NotAdmitted(Exception):
    """The client is refused; ``str`` of this is the text of the answer."""

    @property
    def reason(self) -> str:
        return REASONS[str(self)]


class Auth(Protocol):
    """Finds out who a client is."""

    def admit(self, authorization: str | None) -> Principal:
        """Return the principal of a client with this ``Authorization`` header, which is None if it sent none.

        Raises:
            NotAdmitted: The header proves no principal.
        """


class CapabilityAuth:
    """One token for everybody.  Implements ``Auth``."""

    def __init__(self, digest: bytes) -> None:
        """``digest`` is the SHA-256 of the token."""
        self._digest = digest
        self._principal = Principal("token")

    def admit(self, authorization: str | None) -> Principal:
        token = _bearer(authorization)
        if not hmac.compare_digest(hashlib.sha256(token).digest(), self._digest):
            raise NotAdmitted(BAD_TOKEN)
        return self._principal


class SignedAuth:
    """Tokens that somebody with the same secret has signed (JWT, HS256).  Implements ``Auth``."""

    def __init__(
        self,
        secret: bytes,
        *,
        issuer: str | None = None,
        audience: str | None = None,
        skew: int = 30,
        clock: Callable[[], float] = time,
    ) -> None:
        """``skew`` are the seconds that clocks may differ."""
        import jwt  # Here: who has no such tokens starts without it.

        self._secret = secret
        self._issuer = issuer
        self._audience = audience
        self._skew = skew
        self._clock = clock
        self._decode = jwt.PyJWS(algorithms=["HS256"]).decode
        self._bad = (jwt.PyJWTError, ValueError, TypeError, RecursionError)

    def admit(self, authorization: str | None) -> Principal:
        token = _bearer(authorization)
        try:
            claims = msgspec.json.decode(self._decode(token, self._secret, algorithms=["HS256"]))
        except (*self._bad, msgspec.DecodeError):
            # Not from it: what it could not read might be shown by whoever logs this.
            raise NotAdmitted(BAD_JWT) from None
        if not isinstance(claims, dict):
            raise NotAdmitted(BAD_JWT)
        self._check_time(claims)
        if self._issuer is not None and claims.get("iss") != self._issuer:
            raise NotAdmitted(ISSUER)
        if self._audience is not None and not _is_for(claims.get("aud"), self._audience):
            raise NotAdmitted(AUDIENCE)
        return _principal(claims)

    def _check_time(self, claims: Mapping[str, Any]) -> None:
        now = self._clock()
        until, since = _instant(claims, "exp"), _instant(claims, "nbf")
        if until is None:
            raise NotAdmitted(BAD_JWT)
        if now > until + self._skew:
            raise NotAdmitted(EXPIRED)
        if since is not None and now < since - self._skew:
            raise NotAdmitted(EARLY)


def _bearer(authorization: str | None) -> bytes:
    """The token in a header."""
    if authorization is None:
        raise NotAdmitted(MISSING)
    scheme, _, token = authorization.partition(" ")
    token = token.strip(whitespace)  # ASCII: what else looks like a space here is part of a letter.
    if scheme.lower() != "bearer" or not token:
        raise NotAdmitted(BAD_HEADER)
    try:
        return token.encode("latin-1")  # The bytes as they came.
    except UnicodeEncodeError:
        raise NotAdmitted(BAD_HEADER) from None


def _instant(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is not None and type(value) is not int:
        raise NotAdmitted(BAD_JWT)
    return value


def _is_for(audience: object, name: str) -> bool:
    return audience == name or (isinstance(audience, list) and name in audience)


class _Allowed(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What a token may say that it allows.  A name we do not know is an error: it may be a restriction."""

    methods: list[str] | None = None
    roots: list[str] | None = None
    env: list[str] | None = None
    processes: int | None = None
    retained_bytes: int | None = None
    connections: int | None = None
    sessions: int | None = None
    users: list[str] | None = None


def grant_of(claim: object) -> Grant:
    """What the claim allows.

    Raises:
        ValueError: It is none that we know.
    """
    asked = msgspec.convert(claim, _Allowed)
    counts = (asked.processes, asked.retained_bytes, asked.connections, asked.sessions)
    if any(count is not None and count < 0 for count in counts):
        raise ValueError("a number in the claim is negative")
    for root in asked.roots or ():
        if not _is_plain(root):
            raise ValueError(f"{root!r} is not an absolute path without dots")
    return Grant(
        methods=_tuple(asked.methods),
        roots=_tuple(asked.roots),
        variables=_tuple(asked.env),
        processes=asked.processes,
        retained_bytes=asked.retained_bytes,
        connections=asked.connections,
        sessions=asked.sessions,
        users=tuple(asked.users or ()),
    )


def _is_plain(path: str) -> bool:
    """Whether paths can be compared with it by their text."""
    if "\0" in path:
        return False
    return path == "/" or (
        path.startswith("/") and all(name not in ("", ".", "..") for name in path[1:].split("/"))
    )


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _principal(claims: Mapping[str, Any]) -> Principal:
    name, issuer = claims.get("sub", ""), claims.get("iss", "")
    if not isinstance(name, str) or not isinstance(issuer, str):
        raise NotAdmitted(BAD_JWT)
    try:
        grant = grant_of(claims.get(CLAIM, {}))
    except ValueError:  # What msgspec raises is one, too.
        raise NotAdmitted(BAD_JWT) from None
    return Principal(name, issuer, grant)
