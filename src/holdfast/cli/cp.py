"""``holdfast cp``: files between here and a host."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import options
from .failure import Failure
from .target import perform, url_of

if TYPE_CHECKING:
    from holdfast.api.host import Host

_ENDS = (signal.SIGTERM, signal.SIGHUP)


def configure(parser: options.Parser) -> None:
    """The options of ``cp``."""
    parser.description = (
        "Copy files between here and a server.  A path on the server begins with a colon,\n"
        "and is relative to the server's directory unless a slash follows:\n"
        "'holdfast cp -r ./site :/srv/site'."
    )
    parser.epilog = (
        "A copy to here gets its name when it is complete.  A copy to the server that breaks off is\n"
        "removed.  Links are followed, but not to directories.  Owners and times are not copied, and\n"
        "modes only without a server: its protocol has no word for them.  A program that was copied\n"
        "there can be run after 'holdfast exec -- chmod +x PATH', one from there after 'chmod +x PATH'."
    )
    parser.add_argument("source", metavar="SRC", help="what to copy; ':PATH' is on the server")
    parser.add_argument("target", metavar="DST", help="where to; ':PATH' is on the server")
    parser.add_argument(
        "-r", "--recursive", action="store_true", help="directories, with all that is in them"
    )
    options.add_quiet(parser, "show no progress, and say nothing of what is left out")
    options.add_output(parser)
    options.add_server(parser, embedded=True)


def cp(arguments: argparse.Namespace) -> int:
    """Copy it."""
    if not (arguments.source.startswith(":") or arguments.target.startswith(":")):
        raise Failure(
            "one of the two has to be on the server: put a colon before its path, such as :/tmp/file"
        )

    async def work(host: Host) -> int:
        import asyncio

        from holdfast.errors import FileFailed, FileRefused

        from .copying import Copying
        from .progress import Progress
        from .report import is_terminal, say, tell_json
        from .sides import Far, Near, Side
        from .terminal import screen_size

        near: Side = Near()
        # Without a server both sides are this file system, with all that can be said of its files.
        far: Side = near if url_of(arguments) is None else Far(host.files, host.info.cwd)
        shown = is_terminal(sys.stderr) and not arguments.quiet
        progress = Progress(_show if shown else _hide, time.monotonic, lambda: (screen_size() or (0, 80))[1])
        copying = Copying(
            far if arguments.source.startswith(":") else near,
            far if arguments.target.startswith(":") else near,
            begin=progress.begin,
            advance=progress.advance,
            skip=_hide if arguments.quiet else say,
        )
        paths = arguments.source.removeprefix(":"), arguments.target.removeprefix(":")
        try:
            with _told_to_end() as told:
                await copying.copy(*paths, recursive=arguments.recursive)
        except asyncio.CancelledError:
            progress.end()
            number = told[0] if told else signal.SIGINT
            raise Failure(
                f"interrupted: {arguments.source} is not copied completely"
                f" ({copying.files} files are, {copying.bytes} bytes in all)",
                128 + number,
            ) from None
        except (FileFailed, FileRefused) as error:
            raise Failure(f"cannot copy {arguments.source} to {arguments.target}: {error}") from None
        except OSError as error:
            where = os.fsdecode(error.filename) if error.filename else arguments.target
            words = f"cannot copy {arguments.source} to {arguments.target}: {error.strerror}"
            raise Failure(words if where in words else f"{words}: {where}") from None
        finally:
            progress.end()
        if arguments.output == "json":
            tell_json({"files": copying.files, "bytes": copying.bytes})
        return 0

    return perform(arguments, work, embedded=True)


@contextlib.contextmanager
def _told_to_end() -> Iterator[list[int]]:
    """Have the task of this block cancelled by signals that end a program; gives the one that came.

    ^C does the same without us.
    """
    import asyncio

    told: list[int] = []
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def on_signal(number: int) -> None:
        told.append(number)
        task.cancel()

    for number in _ENDS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield told
    finally:
        for number in _ENDS:
            loop.remove_signal_handler(number)


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _hide(text: str) -> None:
    """Say nothing."""
