"""Where a server may tell the ends of processes to, and how what it tells is signed (pure)."""

from __future__ import annotations

import hashlib
import hmac
import re
from urllib.parse import urlsplit

from .errors import BadRequest, BadUrl
from .value import value
from .web import parse_url

SIGNATURE = "holdfast-signature"
"""The header with the time and the signature: ``t=SECONDS,v1=HEX``."""

_DOTS = re.compile(r"/(\.|%2e){1,2}(/|$)", re.IGNORECASE)
"""Steps of a path that lead somewhere else than the text says."""


@value
class WebhookPolicy:
    """Which URLs clients may name, and the secret that whoever is there knows, too."""

    allowed: tuple[str, ...]
    """Each a scheme, a host and the beginning of a path, in the form of ``prefix``."""
    secret: bytes

    def check(self, url: str) -> str:
        """Return a URL in its plain form.

        Raises:
            BadRequest: It is none, or not below one that is allowed.
        """
        try:
            plain = _plain(url)
        except BadUrl as bad:
            raise BadRequest(f"notifyUrl is no URL: {bad.reason}", field="notifyUrl") from None
        path = plain.partition("?")[0]
        if not any(path == each.rstrip("/") or path.startswith(_folder(each)) for each in self.allowed):
            raise refused(url)
        return plain


def refused(url: str) -> BadRequest:
    """The refusal of a URL that the operator of a server has not allowed."""
    shown = url if len(url) <= 200 else f"{url[:200]}..."
    return BadRequest(
        f"the server may not notify {shown!r}: its operator allows URLs with"
        " 'holdfast serve --webhook-allow URL'",
        field="notifyUrl",
    )


def prefix(text: str) -> str:
    """The plain form of what an operator allows.

    Raises:
        BadUrl: It is no http or https URL, or has more than a scheme, a host and a path.
    """
    plain = _plain(text)
    if "?" in plain:
        raise BadUrl("a query cannot be allowed, only a scheme, a host and the beginning of a path")
    return plain


def _folder(allowed: str) -> str:
    return allowed if allowed.endswith("/") else f"{allowed}/"


def _plain(url: str) -> str:
    plain = parse_url(url)
    parts = urlsplit(plain)
    if parts.scheme not in ("http", "https"):
        raise BadUrl("only http and https URLs can be notified")
    if "@" in parts.netloc or "#" in plain:
        raise BadUrl("a URL to notify has no user and no fragment")
    if _DOTS.search(parts.path) or "\\" in parts.path:
        raise BadUrl("a URL to notify has no steps such as ..")
    return plain


def signed(secret: bytes, seconds: int, body: bytes) -> str:
    """The value of the header for a body that is sent at this time, in seconds since 1970."""
    proof = hmac.new(secret, b"%d.%b" % (seconds, body), hashlib.sha256).hexdigest()
    return f"t={seconds},v1={proof}"
