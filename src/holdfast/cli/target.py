"""Where the work is done: a server, or this process; and how every command that needs one is run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .descriptors import open_standard_files
from .failure import Failure

if TYPE_CHECKING:
    from holdfast.api.host import Host

Work = Callable[["Host"], Awaitable[int]]
"""What a command does with a host; it gives the exit code."""


def url_of(arguments: argparse.Namespace) -> str | None:
    """The URL of the server; None if there is none."""
    return arguments.url or os.environ.get("HOLDFAST_URL") or None


def perform(arguments: argparse.Namespace, work: Work, *, embedded: bool = False) -> int:
    """Run ``work`` with a host, in an event loop of its own; give the exit code.

    Args:
        embedded: Without a URL do the work in this process.

    Raises:
        Failure: It could not be done.
    """
    url = url_of(arguments)
    if url is None and not embedded:
        raise Failure(
            "no server given: use --url ws://HOST:PORT or set HOLDFAST_URL; start one with 'holdfast serve'"
        )
    token = _token(arguments)
    open_standard_files()
    import asyncio  # Here and below: after what can be refused without them.

    from holdfast.errors import HoldfastError

    told = None if getattr(arguments, "quiet", False) else _told()
    try:
        return asyncio.run(_with_host(url, token, arguments.reconnect, work, told))
    except HoldfastError as error:
        from .explain import explain

        raise explain(error, url=url) from None


def _told() -> Callable[[bool], None] | None:
    """Who tells the user of the connection; nobody where no user looks."""
    from .terminal import is_terminal

    if not is_terminal(2):
        return None
    from .notice import Notice

    return Notice(2).told


async def _with_host(
    url: str | None, token: str | None, give_up: float, work: Work, told: Callable[[bool], None] | None
) -> int:
    if url is None:
        from holdfast.api.host import local

        async with local() as host:
            return await work(host)
    from holdfast.api.host import connect

    async with connect(url, token=token, give_up=give_up, told=told) as host:
        return await work(host)


def _token(arguments: argparse.Namespace) -> str | None:
    """The token for the server; None without one.

    Raises:
        Failure: The file cannot be read, or is empty.
    """
    path = arguments.token_file or os.environ.get("HOLDFAST_TOKEN_FILE")
    if not path:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(f"cannot read the token file {path}: {reason}") from None
    if not token:
        raise Failure(f"the token file {path} is empty")
    if not (token.isascii() and token.isprintable()):
        raise Failure(f"the token file {path} has more in it than one line of plain characters")
    return token
