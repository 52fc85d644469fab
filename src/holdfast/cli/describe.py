"""Processes and their ends as JSON: names in camelCase, as in the protocol (pure).

Members are never taken away and never change their meaning; new ones may come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .codes import signal_name

if TYPE_CHECKING:
    from holdfast.model import Chunk, Listing, Outcome, Usage


def outcome(found: Outcome | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "kind": found.kind.value,
        "exitCode": found.exit_code,
        "signal": None if found.signal is None else signal_name(found.signal),
        "by": found.by,
        "detail": found.detail,
    }


def usage(found: Usage | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "userMs": found.user_us // 1000,
        "systemMs": found.system_us // 1000,
        "maxRssBytes": found.peak_bytes,
    }


def listing(found: Listing) -> dict[str, Any]:
    return {
        "name": found.name,
        "pid": found.pid,
        "argv": [_text(word) for word in found.argv],
        "cwd": _text(found.cwd),
        "tty": found.terminal,
        "startedAtMs": round(found.started * 1000),
        "state": found.state,
        "exitCode": found.exit_code,
        "outcome": outcome(found.outcome),
        "nextSeq": found.next_seq,
        "retainedBytes": found.retained,
        "kept": found.kept,
    }


def chunk(found: Chunk) -> dict[str, Any]:
    """One piece of output; its bytes are in base64, because they need not be text."""
    from base64 import b64encode

    return {"seq": found.seq, "stream": found.stream.value, "data": b64encode(found.data).decode()}


def _text(text: str) -> str:
    """Bytes that are no UTF-8 as replacement characters: there is no JSON for them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
