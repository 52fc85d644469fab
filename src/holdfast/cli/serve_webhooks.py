"""``holdfast serve --webhook-allow``: where clients may have the ends of processes told to."""

from __future__ import annotations

import argparse
import os

from holdfast.errors import BadUrl
from holdfast.webhooks import WebhookPolicy, prefix

_SHORTEST_SECRET = 32
"""Bytes.  A shorter secret could be found by trying, given one request."""


class BadWebhooks(Exception):
    """The options do not fit together, or a file cannot be used.  The text is a message for the user."""


def webhooks_of(arguments: argparse.Namespace) -> WebhookPolicy | None:
    """Return what the options allow; None if that is nothing.

    Raises:
        BadWebhooks: They do not fit together.
    """
    allowed, path = arguments.webhook_allow, arguments.webhook_secret_file
    if not allowed and path is None:
        return None
    if not allowed:
        raise BadWebhooks("`--webhook-secret-file` requires `--webhook-allow`")
    if path is None:
        raise BadWebhooks("`--webhook-allow` requires `--webhook-secret-file`, with which receivers check it")
    prefixes = []
    for text in allowed:
        try:
            prefixes.append(prefix(text))
        except BadUrl as bad:
            raise BadWebhooks(f"--webhook-allow {text}: {bad.reason}") from None
    return WebhookPolicy(tuple(prefixes), _secret(path))


def _secret(path: str) -> bytes:
    place = os.path.abspath(path)
    try:
        with open(path, "rb") as file:
            secret = file.read().strip()
    except OSError as error:
        raise BadWebhooks(f"the webhook secret {place} cannot be read: {error.strerror}") from None
    if len(secret) < _SHORTEST_SECRET:
        raise BadWebhooks(f"the webhook secret {place} must have at least {_SHORTEST_SECRET} bytes")
    return secret
