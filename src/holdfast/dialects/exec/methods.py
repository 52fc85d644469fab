"""The methods of the exec dialect, as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from holdfast.dialects.dialect import Method, UnknownMethod
from holdfast.dialects.endpoints import Services
from holdfast.dialects.shapes import decoded

from . import file_messages as f
from . import files
from . import http_messages as h
from . import messages as m
from .control import acknowledge, close_stdin, resize, signal, terminate, write
from .conversation import ExecConversation
from .endpoint import ExecEndpoint
from .handles import close_file, open_file, read_block, watch_missing, write_block
from .handshake import close, environment_info, environment_status, initialize, take_over
from .http import request
from .listing import list_processes
from .reading import read, wait
from .spans import in_span
from .starting import start


def _absent(method: str, family: str) -> Method:
    """A method of the protocol that this server does not have."""

    def refuse(talk: ExecConversation, params: Any) -> None:
        raise UnknownMethod(method)

    return Method(lambda params: params, refuse, family)


P = TypeVar("P")


def _method(
    kind: type[P], handle: Callable[[ExecConversation, P], Any], family: str = "", **traits: Any
) -> Method:
    return Method(partial(decoded, kind=kind), handle, family, **traits)


def _name(params: Any) -> str:
    name: str = params.process_id
    return name


METHODS: dict[str, Method] = {
    "initialize": _method(m.InitializeParams, initialize, alone=True, waits=True),
    "session/takeOver": _method(m.TakeOverParams, take_over, alone=True, waits=True),
    "session/close": Method(m.decode_unit, close, "session", alone=True, waits=True),
    "environment/info": Method(m.decode_unit, environment_info, "environment info"),
    "environment/status": Method(m.decode_unit, environment_status, "environment status"),
    "process/start": Method(
        m.decode_start,
        start,
        "exec",
        name_of=lambda request: request.params.process_id,
        starts=True,
        waits=True,
    ),
    "process/read": _method(m.ReadParams, read, "exec", name_of=_name, waits=True),
    "process/ack": _method(m.AckParams, acknowledge, "exec", name_of=_name),
    "process/wait": _method(m.WaitParams, wait, "exec", name_of=_name, waits=True),
    "process/list": Method(m.decode_unit, list_processes, "exec", waits=True),
    "process/write": Method(m.decode_write, write, "exec", name_of=_name, waits=True),
    "process/closeStdin": _method(m.CloseStdinParams, close_stdin, "exec", name_of=_name),
    "process/resize": _method(m.ResizeParams, resize, "exec", name_of=_name),
    "process/signal": _method(m.SignalParams, signal, "exec", name_of=_name),
    "http/request": Method(h.decode_request, request, "http", waits=True),
    # Not in any order with its start: this is what gives the start up.
    "process/terminate": _method(m.TerminateParams, terminate, "exec"),
}

_file = partial(Method, family="filesystem", waits=True)

FILE_METHODS: dict[str, Method] = {
    "fs/readFile": _file(f.located(f.ReadFileParams), files.read_file),
    "fs/writeFile": _file(f.located(f.WriteFileParams), files.write_file),
    "fs/createDirectory": _file(f.located(f.CreateDirectoryParams), files.create_directory),
    "fs/getMetadata": _file(f.located(f.GetMetadataParams), files.get_metadata),
    "fs/canonicalize": _file(f.located(f.CanonicalizeParams), files.canonicalize),
    "fs/readDirectory": _file(f.located(f.ReadDirectoryParams), files.read_directory),
    "fs/walk": _file(f.located(f.WalkParams), files.walk),
    "fs/remove": _file(f.located(f.RemoveParams), files.remove),
    "fs/copy": _file(f.located(f.CopyParams, "source_path", "destination_path"), files.copy),
    "fs/open": _file(f.located(f.OpenParams), open_file),
    "fs/readBlock": _method(f.ReadBlockParams, read_block, "filesystem", waits=True),
    "fs/writeBlock": _file(f.decode_write_block, write_block),
    "fs/close": _method(f.CloseParams, close_file, "filesystem", waits=True),
    "fs/watchMissing": _file(f.decode_watch_missing, watch_missing),
}

ABSENT = {
    "environment config": "environmentConfig/read",
    "capability discovery": "capabilityRoots/discoverV1 capabilities/discoverV2",
}
FILE_METHODS = {name: replace(each, handle=in_span(name, each.handle)) for name, each in FILE_METHODS.items()}
METHODS |= FILE_METHODS
METHODS |= {name: _absent(name, family) for family, names in ABSENT.items() for name in names.split()}


def make_endpoint(services: Services) -> ExecEndpoint:
    """The exec endpoint of a server."""
    limits = services.limits
    return ExecEndpoint(
        services.backend,
        METHODS,
        loop=services.loop,
        telemetry=services.telemetry,
        limits=limits.session,
        http_limits=limits.http,
        file_limits=limits.file,
        sandbox_limits=limits.sandbox,
    )
