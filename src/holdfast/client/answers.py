"""What a server says, as shapes (pure).

Only what the protocol promises is required: the extensions are missing from the
answers of other servers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.dialects.shapes import Shape

T = TypeVar("T")


def reader(kind: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """A decoder of what a server sent; all it raises is ``msgspec.DecodeError``.

    The decoder itself has other words for texts that are not UTF-8 and for what is nested too
    deeply, and sees either only in the parts that it does not pass over.
    """
    decode = msgspec.json.Decoder(kind).decode

    def read(text: bytes | msgspec.Raw) -> T:
        try:
            return decode(text)
        except (UnicodeDecodeError, RecursionError) as error:
            raise msgspec.DecodeError(str(error)) from None

    return read


class ErrorBody(Shape):
    code: int
    message: str
    data: Any = None


class Envelope(msgspec.Struct, gc=False):
    """Any message: an answer has an identifier, a notification a method."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorBody | None = None


class Extensions(Shape):
    version: int = 0
    features: list[str] = msgspec.field(default_factory=list)
    sandbox: dict[str, Any] | None = None


class Capabilities(Shape):
    holdfast: Extensions | None = None
    file_write_streaming: bool = False
    sandboxed_file_streaming: bool = False


class ShellInfo(Shape):
    name: str
    path: str


class EnvironmentInfo(Shape):
    shell: ShellInfo
    executor_version: str = ""
    provider_id: str = ""
    cwd: str | None = None
    user_home_dir: str | None = None
    temporary_directories: list[str] = msgspec.field(default_factory=list)
    temp_dir: str | None = None
    capabilities: Capabilities = msgspec.field(default_factory=Capabilities)


class InitializeResult(Shape):
    session_id: str
    environment_info: EnvironmentInfo


class StartResult(Shape):
    process_id: str
    existing: bool = False
    pid: int | None = None
    limits: dict[str, str] = msgspec.field(default_factory=dict)


class WriteResult(Shape):
    status: str


class TerminateResult(Shape):
    running: bool
    survivors: list[int] = msgspec.field(default_factory=list)
    tree_exact: bool = False


class Outcome(Shape):
    kind: str
    exit_code: int | None = None
    signal: str | None = None
    by: str | None = None
    detail: str | None = None


class Usage(Shape):
    user_ms: int
    system_ms: int
    max_rss_bytes: int


class Denial(Shape):
    op: str
    path: str
    count: int


class OutputGap(Shape):
    from_seq: int
    to_seq: int
    bytes: int | None = None


class OutputChunk(Shape):
    seq: int
    stream: str
    chunk: str


class Ending(Shape):
    """What answers and notifications about an exit have in common."""

    exit_code: int | None = None
    sandbox_denied: bool = False
    denials: list[Denial] = msgspec.field(default_factory=list)
    denial: str | None = None
    outcome: Outcome | None = None
    usage: Usage | None = None
    held_by: list[int] = msgspec.field(default_factory=list)


class WaitResult(Ending, kw_only=True):
    exited: bool
    closed: bool


class ReadResult(Ending, kw_only=True):
    chunks: list[OutputChunk]
    next_seq: int
    exited: bool
    closed: bool
    failure: str | None = None
    gap: OutputGap | None = None


class ProcessOutput(Shape):
    process_id: str
    seq: int
    stream: str
    chunk: str


class ProcessExited(Ending, kw_only=True):
    process_id: str
    seq: int


class ProcessClosed(Shape):
    process_id: str
    seq: int


class ListedProcess(Shape):
    process_id: str
    argv: list[str]
    cwd: str
    tty: bool
    started_at_ms: int
    state: str
    pid: int | None
    exit_code: int | None
    outcome: Outcome | None
    next_seq: int
    retained_bytes: int
    kept: bool = False


class ListResult(Shape):
    processes: list[ListedProcess]
    more: bool = False
