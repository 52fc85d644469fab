"""Params of the exec dialect, good ones and the words for bad ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.dialects.exec.decoding import decode_start, decode_write
from holdfast.errors import BadRequest
from holdfast.protocol.processes import (
    CloseStdinParams,
    ReadParams,
    ResizeParams,
    SignalParams,
    TerminateParams,
    WaitParams,
)
from holdfast.protocol.ranges import ReadRangeParams
from holdfast.protocol.screen import SnapshotParams
from holdfast.protocol.session import InitializeParams, TakeOverParams
from holdfast.protocol.shapes import decoded

START = {"processId": "p", "argv": ["x"], "cwd": "file:///tmp", "env": {}, "tty": False}
POLICY = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}
READ = {"processId": "p"}
WRITE = {"processId": "p", "chunk": "YQ==", "writeId": "w"}
SIGNAL = {"processId": "p", "signal": "interrupt"}
RESIZE = {"processId": "p", "size": {"rows": 1, "cols": 1}}
TAKE_OVER = {"sessionId": "s"}

SHAPES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "initialize": ("InitializeParams", lambda value: decoded(value, InitializeParams)),
    "start": ("WireExecParams", decode_start),
    "read": ("ReadParams", lambda value: decoded(value, ReadParams)),
    "write": ("WriteParams", decode_write),
    "signal": ("SignalParams", lambda value: decoded(value, SignalParams)),
    "terminate": ("TerminateParams", lambda value: decoded(value, TerminateParams)),
    "wait": ("WaitParams", lambda value: decoded(value, WaitParams)),
    "closeStdin": ("CloseStdinParams", lambda value: decoded(value, CloseStdinParams)),
    "resize": ("ResizeParams", lambda value: decoded(value, ResizeParams)),
    "readRange": ("ReadRangeParams", lambda value: decoded(value, ReadRangeParams)),
    "snapshot": ("SnapshotParams", lambda value: decoded(value, SnapshotParams)),
    "takeOver": ("TakeOverParams", lambda value: decoded(value, TakeOverParams)),
}


def complaint(shape: str, value: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        SHAPES[shape][1](value)
    return str(caught.value)


FOUND = {
    "1": "number",
    "-1": "number",
    "1.5": "number",
    "1e2": "number",
    "18446744073709551616": "number",
    "true": "boolean `true`",
    "false": "boolean `false`",
    "null": "null",
    '"x"': 'string "x"',
    "[]": "sequence",
    "{}": "map",
}
"""What any field says about a value of a wrong type."""
