"""What the exec endpoint offers."""

from __future__ import annotations

from functools import partial

from holdfast.dialects.catalog import Catalog, Notice, call, notice
from holdfast.dialects.shapes import Nothing

from . import answers as a
from . import file_messages as f
from . import http_messages as h
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
        _call("process/ack", m.AckParams, Nothing),
        _call("process/wait", m.WaitParams, a.WaitResult),
        _call("process/write", m.WriteParams, a.WriteResult),
        _call("process/closeStdin", m.CloseStdinParams, a.WriteResult),
        _call("process/resize", m.ResizeParams, Nothing),
        _call("process/signal", m.SignalParams, Nothing),
        _call("process/terminate", m.TerminateParams, a.TerminateResult),
        _call("fs/readFile", f.ReadFileParams, f.ReadFileResult),
        _call("fs/writeFile", f.WriteFileParams, Nothing),
        _call("fs/createDirectory", f.CreateDirectoryParams, Nothing),
        _call("fs/getMetadata", f.GetMetadataParams, f.GetMetadataResult),
        _call("fs/canonicalize", f.CanonicalizeParams, f.CanonicalizeResult),
        _call("fs/readDirectory", f.ReadDirectoryParams, f.ReadDirectoryResult),
        _call("fs/walk", f.WalkParams, f.WalkResult),
        _call("fs/remove", f.RemoveParams, Nothing),
        _call("fs/copy", f.CopyParams, Nothing),
        _call("fs/open", f.OpenParams, f.OpenResult),
        _call("fs/readBlock", f.ReadBlockParams, f.ReadBlockResult),
        _call("fs/writeBlock", f.WriteBlockParams, Nothing),
        _call("fs/close", f.CloseParams, Nothing),
        _call("fs/watchMissing", f.WatchMissingParams, f.WatchMissingResult),
        _call("http/request", h.HttpRequestParams, h.HttpRequestResult),
    ),
    heard=(Notice("initialized", None, "The answer to ``initialize`` has come; other methods may follow."),),
    told=(
        notice("process/output", a.ProcessOutput),
        notice("process/exited", a.ProcessExited),
        notice("process/closed", a.ProcessClosed),
        notice("fs/missingChanged", f.MissingChanged),
        notice("http/request/bodyDelta", h.HttpBodyDelta),
    ),
    base64=frozenset({"chunk", "dataBase64", "bodyBase64", "deltaBase64"}),
)
