"""What the app endpoint offers."""

from __future__ import annotations

from functools import partial

from holdfast.dialects.catalog import Catalog, Notice, call, notice
from holdfast.dialects.shapes import Nothing

from . import messages as m
from .family import COMMAND, PROCESS
from .methods import METHODS

_call = partial(call, METHODS)

CATALOG = Catalog(
    name="app",
    title="The app endpoint of holdfast",
    calls=(
        _call("initialize", m.InitializeParams, m.InitializeResult),
        _call("process/spawn", m.SpawnParams, Nothing),
        _call("process/writeStdin", m.ProcessWriteParams, Nothing),
        _call("process/resizePty", m.ProcessResizeParams, Nothing),
        _call("process/kill", m.ProcessKillParams, Nothing),
        _call("command/exec", m.ExecParams, m.ExecResult),
        _call("command/exec/write", m.CommandWriteParams, Nothing),
        _call("command/exec/resize", m.CommandResizeParams, Nothing),
        _call("command/exec/terminate", m.CommandTerminateParams, Nothing),
    ),
    heard=(Notice("initialized", None, "Changes nothing: the answer to ``initialize`` is enough."),),
    told=(
        notice(PROCESS.delta, m.ProcessDelta),
        notice("process/exited", m.ProcessExited),
        notice(COMMAND.delta, m.CommandDelta),
    ),
    base64=frozenset({"deltaBase64"}),
    stamped=True,
)
