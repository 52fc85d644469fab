"""The methods of the exec dialect, as a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from holdfast.dialects.dialect import Method, UnknownMethod
from holdfast.dialects.shapes import decoded

from . import messages as m
from .control import close_stdin, resize, signal, terminate, write
from .endpoint import ExecConversation
from .handshake import close, environment_info, environment_status, initialize, take_over
from .reading import list_processes, read, wait
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
    "process/wait": _method(m.WaitParams, wait, "exec", name_of=_name, waits=True),
    "process/list": Method(m.decode_unit, list_processes, "exec"),
    "process/write": Method(m.decode_write, write, "exec", name_of=_name, waits=True),
    "process/closeStdin": _method(m.CloseStdinParams, close_stdin, "exec", name_of=_name),
    "process/resize": _method(m.ResizeParams, resize, "exec", name_of=_name),
    "process/signal": _method(m.SignalParams, signal, "exec", name_of=_name),
    # Not in any order with its start: this is what gives the start up.
    "process/terminate": _method(m.TerminateParams, terminate, "exec"),
}

ABSENT = {
    "filesystem": (
        "fs/readFile fs/writeFile fs/createDirectory fs/getMetadata fs/canonicalize fs/readDirectory fs/walk"
        " fs/remove fs/copy fs/open fs/readBlock fs/writeBlock fs/close fs/watchMissing"
    ),
    "http": "http/request",
    "environment config": "environmentConfig/read",
    "capability discovery": "capabilityRoots/discoverV1 capabilities/discoverV2",
}
METHODS |= {name: _absent(name, family) for family, names in ABSENT.items() for name in names.split()}
