"""What the exec endpoint offers."""

from __future__ import annotations

from functools import partial

from holdfast.dialects.catalog import Catalog, Notice, call, notice
from holdfast.dialects.shapes import Nothing

from . import answers as a
from . import messages as m
from .methods import METHODS

_call = partial(call, METHODS)

CATALOG = Catalog(
    name="exec",
    title="The exec endpoint of holdfast",
    calls=(
        _call("initialize", m.InitializeParams, a.InitializeResult),
        _call("session/takeOver", m.TakeOverParams, a.InitializeResult),
        _call("session/close", None, a.CloseResult),
        _call("environment/info", None, a.EnvironmentInfo, "What the host is like."),
        _call("environment/status", None, a.StatusResult, "A sign of life of the session's side."),
        _call("process/start", m.StartParams, a.StartResult),
        _call("process/list", None, a.ListResult),
        _call("process/read", m.ReadParams, a.ReadResult),
        _call("process/wait", m.WaitParams, a.WaitResult),
        _call("process/write", m.WriteParams, a.WriteResult),
        _call("process/closeStdin", m.CloseStdinParams, a.WriteResult),
        _call("process/resize", m.ResizeParams, Nothing),
        _call("process/signal", m.SignalParams, Nothing),
        _call("process/terminate", m.TerminateParams, a.TerminateResult),
    ),
    heard=(Notice("initialized", None, "The answer to ``initialize`` has come; other methods may follow."),),
    told=(
        notice("process/output", a.ProcessOutput),
        notice("process/exited", a.ProcessExited),
        notice("process/closed", a.ProcessClosed),
    ),
    base64=frozenset({"chunk"}),
)
