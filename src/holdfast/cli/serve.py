"""``holdfast serve``: what comes before the event loop."""

from __future__ import annotations

import argparse
import logging
import os
import resource
import sys


class Refusal(Exception):
    """The server does not start; ``str`` of this says why."""


def serve(arguments: argparse.Namespace) -> int:
    """Run the server; return the exit code.

    Raises:
        Refusal: It cannot be started as asked.
    """
    from holdfast.server.listen import BadListen, check_exposure, parse_listen

    try:
        where = [parse_listen(url) for url in arguments.listen or ("ws://127.0.0.1:0",)]
        for listen in where:
            check_exposure(listen)
    except BadListen as bad:
        raise Refusal(str(bad)) from None
    _open_standard_files()
    files_limit = _raise_files_limit()
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")

    from .serving import run

    try:
        return run(arguments, where, files_limit)
    except BadListen as bad:
        raise Refusal(str(bad)) from None


def _open_standard_files() -> None:
    """Make sure that descriptors 0 to 2 are taken, so that no pipe of a child gets one of them."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def _raise_files_limit() -> tuple[int, int] | None:
    """Allow ourselves all the files we may have; return what children get instead."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
