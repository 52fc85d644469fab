"""Processes as users see them: tables and JSON documents (pure, but for ``tell_json``).

JSON documents have the member names of the protocol, in camelCase.  Members are never removed and never
change their meaning; new ones may be added.
"""

from __future__ import annotations

import contextlib
import json
import shlex
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.model import Chunk, Listing, Outcome, Usage
from holdfast.sandbox import Denial
from holdfast.wording import signal_name

from .explain import LIVE_STATES, state_of
from .quantities import format_duration
from .report import cut, plain

_GAP = "   "
"""Between two columns."""

_LEAST_LAST_COLUMN = 8
"""Characters that the last column of a table keeps on a narrow terminal."""

_LONGEST_COMMAND = 48
"""Characters of a command line in ``ps``, unless ``--no-trunc`` is given."""

_LONGEST_NAME = 200
"""Characters of a name in ``ps``, likewise.  Other clients may choose names of any length."""

_SHORT_IDENTIFIER = 12
"""Characters of an identifier in ``ps``, likewise.  So many are enough to name a process by."""

LISTING_HEAD = ("NAME", "ID", "PID", "STATE", "STARTED", "COMMAND")
STATE_COLUMN = LISTING_HEAD.index("STATE")

WAITING = "waiting"
"""The state of a process that is known to wait for input, as in ``top``."""


# Tables.


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    paint: Callable[[int, str], str] | None = None,
) -> list[str]:
    """Format rows as lines, each column as wide as its longest cell.

    Args:
        width: Cut the last column so that no line is longer than this.
        paint: Adds colour to a cell, given the number of its column.  Colour does not count as width.
    """
    lines = [head, *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    if width is not None:
        before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(_LEAST_LAST_COLUMN, width - before))
    last = len(widths) - 1
    shown = []
    for number, line in enumerate(lines):
        cells = []
        for column, cell in enumerate(line):
            text = cut(cell, widths[column])
            padding = "" if column == last else " " * (widths[column] - len(text))
            painted = text if paint is None or number == 0 else paint(column, text)
            cells.append(painted + padding)
        shown.append(_GAP.join(cells).rstrip())
    return shown


def listing_row(found: Listing, *, now: float, whole: bool) -> Sequence[str]:
    """Return the row of a process for ``ps``.

    Args:
        now: The time in seconds since 1970.
        whole: Do not cut the name, the identifier and the command line.
    """
    command = shlex.join(found.argv)
    name = plain(found.name)
    return (
        name if whole else cut(name, _LONGEST_NAME),
        plain(found.identifier) if whole else plain(found.identifier[:_SHORT_IDENTIFIER]),
        "-" if found.pid is None else str(found.pid),
        WAITING if found.waiting_for_input else state_of(found.state, found.outcome, found.exit_code),
        f"{format_duration(max(0.0, float(round(now - found.started))))} ago",
        command if whole else cut(command, _LONGEST_COMMAND),
    )


def is_live(found: Listing) -> bool:
    """Whether a process starts or runs."""
    return found.state in LIVE_STATES


# JSON.


def json_line(document: Any) -> str:
    """Encode a document as ASCII, on one line, without the line end."""
    return json.dumps(document, ensure_ascii=True, separators=(",", ":"))


def tell_json(document: Any) -> None:
    """Print a document on one line of standard output, and flush: a program may be waiting for the line."""
    print(json_line(document), flush=True)


def outcome_document(found: Outcome | None) -> Mapping[str, Any] | None:
    """Describe how a process ended; None while it runs."""
    if found is None:
        return None
    return {
        "kind": found.kind.value,
        "exitCode": found.exit_code,
        "signal": None if found.signal is None else signal_name(found.signal),
        "by": found.by,
        "detail": found.detail,
    }


def usage_document(found: Usage | None) -> Mapping[str, Any] | None:
    """Describe what a process has used; None if that is not known."""
    if found is None:
        return None
    return {
        "userMs": found.user_us // 1000,
        "systemMs": found.system_us // 1000,
        "maxRssBytes": found.peak_bytes,
    }


def denial_documents(found: Sequence[Denial]) -> Sequence[Mapping[str, Any]]:
    """Describe what a sandbox has refused."""
    return [{"op": each.op, "path": _utf8(each.subject), "count": each.count} for each in found]


def listing_document(found: Listing, *, inspected: bool = False) -> Mapping[str, Any]:
    """Describe a process for ``ps -o json``; ``inspected``: and whether it waits for input."""
    waiting = {"waitingForInput": found.waiting_for_input} if inspected else {}
    return {
        "name": found.name,
        "id": found.identifier,
        "pid": found.pid,
        "argv": [_utf8(word) for word in found.argv],
        "cwd": _utf8(found.cwd),
        "tty": found.terminal,
        "startedAtMs": round(found.started * 1000),
        "state": found.state,
        "exitCode": found.exit_code,
        "outcome": outcome_document(found.outcome),
        "nextSeq": found.next_seq,
        "retainedBytes": found.retained,
        "kept": found.kept,
        **waiting,
    }


def chunk_document(found: Chunk) -> Mapping[str, Any]:
    """Describe a piece of output: its bytes in base64, and as text if they are UTF-8 by themselves.

    A piece may begin or end within a character.  Whoever wants text of all pieces decodes the bytes.
    """
    document = {
        "seq": found.seq,
        "stream": found.stream.value,
        "data": b2a_base64(found.data, newline=False).decode(),
    }
    with contextlib.suppress(UnicodeDecodeError):
        document["text"] = found.data.decode()
    return document


def _utf8(text: str) -> str:
    """Replace bytes that are not UTF-8: JSON cannot express them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
