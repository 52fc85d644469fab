"""The verbs of a host for commands that are run to their end: one, or many side by side.

The functions are methods of ``Host``.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from holdfast.errors import HoldfastError

from .capture import Coding, HeadTail
from .completed import Completed
from .mapping import AT_ONCE, in_order
from .options import Options, Text
from .running import run_to_end

if TYPE_CHECKING:
    from typing import Unpack

    from .host import Host

_WHOLE = HeadTail(sys.maxsize, 0)
"""Everything: as with a shape, both outputs are then there in every case."""


@overload
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,
    capture_output: Literal[True],
    capture: HeadTail | None = None,
    check: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[str]: ...
@overload
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,
    capture_output: Literal[True],
    capture: HeadTail | None = None,
    check: bool = False,
    text: bool | None = None,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[str]: ...
@overload
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,
    capture_output: Literal[True],
    capture: HeadTail | None = None,
    check: bool = False,
    text: Literal[False] | None = None,
    encoding: None = None,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[bytes]: ...
@overload
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,
    capture_output: bool = False,
    capture: HeadTail,
    check: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[str]: ...
@overload
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,
    capture_output: bool = False,
    capture: HeadTail,
    check: bool = False,
    text: bool | None = None,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[str]: ...
@overload
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,
    capture_output: bool = False,
    capture: HeadTail,
    check: bool = False,
    text: Literal[False] | None = None,
    encoding: None = None,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[bytes]: ...
@overload
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,
    capture_output: bool = False,
    capture: HeadTail | None = None,
    check: bool = False,
    text: bool | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[bytes | str | None]: ...
async def run(
    self: Host,
    argv: Sequence[Text],
    *,
    input: bytes | str | None = None,  # noqa: A002  (as in subprocess)
    capture_output: bool = False,
    capture: HeadTail | None = None,
    check: bool = False,
    text: bool | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[Options],
) -> Completed[bytes | str | None]:
    """Run a command to its end.

    Takes the arguments of ``subprocess.run``, and those of ``start``.  Output that is not captured
    is written to our own outputs.  If other processes hold it open when the command has ended, they
    have ``drain`` seconds to finish, 2 by default.  Cancelling ends the command, with everything it
    has started, before it returns.

    However the command ends, there is a result, with the output up to then.  After a timeout or a
    limit, too: ``outcome.kind`` says which.

    Args:
        capture: Capture the beginning and the end of each output, in bounded memory.  An output that is
            joined with the other one, or dropped, is empty then.

    Raises:
        CommandTimedOut: It was ended because of ``timeout`` or ``idle_timeout``, and ``check`` is set.
        CommandExited: It failed, or was ended for another reason, and ``check`` is set.
        SpawnFailed: It could not be started.
    """
    completed = await run_to_end(
        self,
        argv,
        options,
        given=input,
        capture=capture_output,
        shape=capture,
        coding=Coding(text=text, encoding=encoding, errors=errors),
    )
    if check:
        completed.check_returncode()
    return completed


@overload
def map_commands(
    self: Host,
    commands: Iterable[Sequence[Text]],
    *,
    limit: int = AT_ONCE,
    text: Literal[True],
    errors: str = "strict",
    capture: HeadTail | None = None,
    check: bool = False,
    return_exceptions: Literal[False] = False,
    **options: Unpack[Options],
) -> AsyncGenerator[Completed[str], None]: ...
@overload
def map_commands(
    self: Host,
    commands: Iterable[Sequence[Text]],
    *,
    limit: int = AT_ONCE,
    text: Literal[True],
    errors: str = "strict",
    capture: HeadTail | None = None,
    check: bool = False,
    return_exceptions: Literal[True],
    **options: Unpack[Options],
) -> AsyncGenerator[Completed[str] | HoldfastError, None]: ...
@overload
def map_commands(
    self: Host,
    commands: Iterable[Sequence[Text]],
    *,
    limit: int = AT_ONCE,
    text: Literal[False] = False,
    errors: str = "strict",
    capture: HeadTail | None = None,
    check: bool = False,
    return_exceptions: Literal[False] = False,
    **options: Unpack[Options],
) -> AsyncGenerator[Completed[bytes], None]: ...
@overload
def map_commands(
    self: Host,
    commands: Iterable[Sequence[Text]],
    *,
    limit: int = AT_ONCE,
    text: Literal[False] = False,
    errors: str = "strict",
    capture: HeadTail | None = None,
    check: bool = False,
    return_exceptions: Literal[True],
    **options: Unpack[Options],
) -> AsyncGenerator[Completed[bytes] | HoldfastError, None]: ...
def map_commands(
    self: Host,
    commands: Iterable[Sequence[Text]],
    *,
    limit: int = AT_ONCE,
    text: bool = False,
    errors: str = "strict",
    capture: HeadTail | None = None,
    check: bool = False,
    return_exceptions: bool = False,
    **options: Unpack[Options],
) -> AsyncGenerator[Any, None]:
    """Run commands side by side, and give their results in the order of the commands.

    The output of each is captured.  A command that comes next may take long: meanwhile others go on, and so
    many of their results are held as ``limit`` times 4.  When the iteration ends, is cancelled or is left,
    the commands that still run are ended, with everything they have started.  To wait for that when you
    leave early, put ``contextlib.aclosing`` around this.

    Args:
        commands: Each as in ``run``.  They are taken one by one, as there is room.
        limit: How many run at once.
        text: Whether output is text, in UTF-8.
        capture: Capture the beginning and the end of each output, in bounded memory.
        return_exceptions: Give an error in place of the result, and go on.  Otherwise the first one is raised
            at its place in the order, and ends all commands.

    Raises, when it is read:
        CommandFailed: A command did not succeed, and ``check`` is set.
        SpawnFailed: A command could not be started.
    """
    if limit < 1:
        raise ValueError("limit must be at least 1")

    async def one(command: Sequence[Text]) -> object:
        coding = Coding(text=text, errors=errors if text else None)
        completed = await run_to_end(
            self, command, options.copy(), given=None, capture=False, shape=capture or _WHOLE, coding=coding
        )
        if check:
            completed.check_returncode()
        return completed

    return in_order(one, commands, limit=limit, passes=(HoldfastError,) if return_exceptions else ())
