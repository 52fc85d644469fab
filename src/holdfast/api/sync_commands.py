"""The verbs of ``commands`` for programs without an event loop.

The functions are methods of ``sync.Host``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from holdfast.errors import HoldfastError, OutOfTurn

from .capture import HeadTail
from .completed import Completed
from .mapping import AT_ONCE
from .options import Options, Text
from .sync_handle import Following
from .thread import LoopThread

if TYPE_CHECKING:
    from typing import Unpack

    from .sync import Host

T = TypeVar("T")


@overload
def run(
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
def run(
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
def run(
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
def run(
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
def run(
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
def run(
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
def run(
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
def run(
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
    """Run a command to its end, as ``subprocess.run`` does.

    Takes the arguments of that, and those of ``holdfast.Host.run`` and ``start``.  Output that is not
    captured is written to our own outputs.  Ctrl-C ends the command, with everything it has started, before
    ``KeyboardInterrupt`` is raised.

    However the command ends, there is a result, with the output up to then.  After a timeout or a
    limit, too: ``outcome.kind`` says which.

    Raises:
        CommandTimedOut: It was ended because of ``timeout`` or ``idle_timeout``, and ``check`` is set.
        CommandExited: It failed, or was ended for another reason, and ``check`` is set.
        SpawnFailed: It could not be started.
    """
    return self._call(
        self._host.run(
            argv,
            input=input,
            capture_output=capture_output,
            capture=capture,
            check=check,
            text=text,
            encoding=encoding,
            errors=errors,
            **options,
        )
    )


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
) -> Iterator[Completed[str]]: ...
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
) -> Iterator[Completed[str] | HoldfastError]: ...
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
) -> Iterator[Completed[bytes]]: ...
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
) -> Iterator[Completed[bytes] | HoldfastError]: ...
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
) -> Iterator[Any]:
    """Run commands side by side, and give their results in the order of the commands.

    See ``holdfast.Host.map``.  The commands that still run when the iteration is left are ended before it is:
    by the end of a ``for`` loop that nothing else refers to, or by ``close``.
    """
    asked: Any = {"text": text, "return_exceptions": return_exceptions}
    results: AsyncGenerator[Any, None] = self._host.map(
        commands, limit=limit, errors=errors, capture=capture, check=check, **asked, **options
    )
    return _each(results, self._loop())


def _each(results: AsyncGenerator[T, None], thread: LoopThread) -> Iterator[T]:
    try:
        yield from Following(results, thread)
    finally:
        with suppress(OutOfTurn):  # The host was closed before, and with it everything that ran.
            thread.call(_close(results))


async def _close(results: AsyncGenerator[T, None]) -> None:
    await results.aclose()
