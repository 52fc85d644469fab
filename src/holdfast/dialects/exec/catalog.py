"""What the exec endpoint offers."""

from __future__ import annotations

from functools import partial

from holdfast.dialects.catalog import Catalog, Notice, call, notice
from holdfast.dialects.shapes import Nothing

from . import messages as m
from .methods import METHODS

_call = partial(call, METHODS)

CATALOG = Catalog(
    name="exec",
    title="The exec endpoint of holdfast",
    calls=(
        _call("initialize", m.InitializeParams, m.InitializeResult),
        _call("environment/info", None, m.EnvironmentInfo, "What the host is like."),
        _call("environment/status", None, m.StatusResult, "A sign of life of the session's side."),
        _call("process/start", m.StartParams, m.StartResult),
        _call("process/read", m.ReadParams, m.ReadResult),
        _call("process/write", m.WriteParams, m.WriteResult),
        _call("process/signal", m.SignalParams, Nothing),
        _call("process/terminate", m.TerminateParams, m.TerminateResult),
    ),
    heard=(Notice("initialized", None, "The answer to ``initialize`` has come; other methods may follow."),),
    told=(
        notice("process/output", m.ProcessOutput),
        notice("process/exited", m.ProcessExited),
        notice("process/closed", m.ProcessClosed),
    ),
    base64=frozenset({"chunk"}),
)
