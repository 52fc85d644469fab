"""``holdfast login``, ``logout`` and ``hosts``: names and tokens of servers, kept for later commands."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from getpass import getpass

from holdfast.api.host import connect
from holdfast.client import address
from holdfast.client.known_hosts import (
    KnownHost,
    config_path,
    default_name,
    is_name,
    read,
    remove,
    store,
)
from holdfast.errors import BadRequest, HoldfastError, LinkFault, LinkLost

from .explain import explain
from .options import wants_json
from .report import Failure, say, tell
from .show import table, tell_json
from .streams import is_given
from .target import checked_token, given_token
from .terminal import is_terminal

_LONGEST_TOKEN = 1 << 16
"""Characters that are read of our standard input."""

_LOOPBACK = ("127.", "localhost", "::1")


def login(arguments: argparse.Namespace) -> int:
    """Check a token against a server, and keep both under a name.

    Raises:
        Failure: The server cannot be reached or does not accept the token; nothing is kept then.
    """
    url, path = arguments.server, config_path(os.environ)
    try:
        name = _name(arguments.name, url, path)
        token = _checked(url, _first_token(arguments), arguments.reconnect)
        _warn(url, token)
        store(path, KnownHost(name, url, token))
    except HoldfastError as error:
        raise explain(error, url=url) from None
    if wants_json(arguments):
        tell_json({"name": name, "url": url, "token": token is not None, "config": path})
    else:
        tell(f"{url} is {name} from now on; 'holdfast -H {name} ps' shows its processes")
    return 0


def _name(given: str | None, url: str, path: str) -> str:
    address.parse(url)
    known = read(path)
    if given is None:
        return default_name(url, known)
    if not is_name(given):
        raise Failure(f"--name: {given!r} is no name; take letters, digits, dots and dashes")
    if given in known and known[given].url != url:
        raise Failure(
            f"{given} is {known[given].url} already; take another --name, or 'holdfast logout {given}' first"
        )
    return given


def _first_token(arguments: argparse.Namespace) -> str | None:
    """Return the token that is at hand without asking: from an option, a variable, or our standard input."""
    if token := given_token(arguments):
        return token
    if not is_given(0):
        return None
    token = sys.stdin.read(_LONGEST_TOKEN + 1).strip()
    return checked_token(token, "the token on standard input") if token else None


def _checked(url: str, token: str | None, patience: float) -> str | None:
    """Return a token that the server accepts, asking for one if it wants one; None if it wants none."""
    try:
        asyncio.run(_try(url, token, patience))
    except LinkLost as error:
        if error.fault is not LinkFault.TOKEN or token is not None or not is_terminal(0):
            raise
        token = getpass(f"token for {url}: ").strip()
        if not token:
            raise
        asyncio.run(_try(url, checked_token(token, "the token"), patience))
    return token


async def _try(url: str, token: str | None, patience: float) -> None:
    async with connect(url, token=token, reconnect_timeout=patience):
        pass


def _warn(url: str, token: str | None) -> None:
    place = address.parse(url)
    if token is None or not isinstance(place, address.TcpAddress) or place.secure:
        return
    if not place.host.startswith(_LOOPBACK):
        say(f"the way to {url} is not encrypted: others may read the token there; use wss:// if you can")


def logout(arguments: argparse.Namespace) -> int:
    """Forget a server and its token."""
    path = config_path(os.environ)
    try:
        remove(path, arguments.host)
    except BadRequest as error:
        raise explain(error) from None
    return 0


def hosts(arguments: argparse.Namespace) -> int:
    """Print the servers that have a name here; no token is shown."""
    try:
        known = sorted(read(config_path(os.environ)).values(), key=lambda one: one.name)
    except BadRequest as error:
        raise explain(error) from None
    if wants_json(arguments):
        tell_json([{"name": one.name, "url": one.url, "token": _has_token(one)} for one in known])
    else:
        rows = [(one.name, "yes" if _has_token(one) else "no", one.url) for one in known]
        tell(*table(("NAME", "TOKEN", "URL"), rows))
    return 0


def _has_token(host: KnownHost) -> bool:
    return host.token is not None or host.token_file is not None
