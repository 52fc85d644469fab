"""Waits until a process has brought something about, on the wire (pure)."""

from __future__ import annotations

from typing import Annotated

from holdfast.conditions import Condition, Waited, WaitEnd

from . import events, paths
from .processes import WaitResult, WireOutcome, WireUsage
from .shapes import U16, U64, Params, PathText, Shape, Signature, open_choice, within_u64


class WaitForParams(Params):
    wire_name = "WaitForParams"

    process_id: str
    port: U16 | None = None
    """Until this TCP port at the loopback address of the server's host takes a connection."""
    url: str | None = None
    """Until a GET is answered with a status below 400; redirects are not followed."""
    output: str | None = None
    """Until this regular expression is found in the output, which is searched from its begin."""
    file: PathText | None = None
    """Until something is there."""
    wait_ms: U64 | None = None
    """Wait so long; null is 0: one attempt."""

    def __post_init__(self) -> None:
        within_u64(self.wait_ms)


class WaitForResult(Shape, kw_only=True):
    end: Annotated[str, open_choice(WaitEnd)]
    line: str | None = None
    """The line with the text, as far as it had come; of a long one the last 4,096 bytes."""
    seq: U64 | None = None
    """The number of the output in which the text ends."""
    status: U64 | None = None
    """What the URL was answered with at last."""
    exit_code: int | None = None
    outcome: WireOutcome | None = None
    """How the process has ended, if it has."""
    usage: WireUsage | None = None
    trouble: str | None = None
    """Why the last attempt was none."""
    missed: bool = False
    """Whether output was dropped before it could be searched."""

    def __post_init__(self) -> None:
        within_u64(self.seq, self.status)


WAIT_FOR = Signature("process/waitFor", WaitForParams, WaitForResult)


def wait_for_params(name: str, condition: Condition, seconds: float) -> WaitForParams:
    """What a client asks."""
    return WaitForParams(
        name,
        condition.port,
        condition.url,
        condition.output,
        None if condition.file is None else paths.to_uri(condition.file),
        max(0, int(seconds * 1000)),
    )


def waited(found: Waited) -> WaitForResult:
    """What a server answers."""
    end = found.exit
    return WaitForResult(
        end=found.end.value,
        line=found.line,
        seq=found.seq,
        status=found.status,
        exit_code=None if end is None else end.code,
        outcome=None if end is None else events.outcome(end.outcome),
        usage=None if end is None or end.usage is None else events.usage(end.usage),
        trouble=found.trouble,
        missed=found.missed,
    )


def read_waited(found: WaitForResult) -> Waited:
    """How a wait has ended on a server.

    Raises:
        ValueError: It is none of the ways that we know.
    """
    end = None
    if found.outcome is not None:
        told = WaitResult(
            exited=True, exit_code=found.exit_code, outcome=found.outcome, usage=found.usage, closed=False
        )
        end = events.read_exit(told)
    return Waited(
        WaitEnd(found.end),
        line=found.line,
        seq=found.seq,
        status=found.status,
        exit=end,
        trouble=found.trouble,
        missed=found.missed,
    )
