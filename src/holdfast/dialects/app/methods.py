"""The methods of the app dialects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from holdfast.dialects.dialect import Method
from holdfast.dialects.endpoints import Services
from holdfast.value import replace

from . import messages as m
from .control import kill, resize, write
from .endpoint import AppConversation, AppEndpoint
from .family import COMMAND, PROCESS, Family
from .starting import execute, spawn

T = TypeVar("T")


def initialize(talk: AppConversation, params: m.InitializeParams) -> m.InitializeResult:
    """Begin the conversation."""
    return talk.begin(params)


def _method(family: Family, kind: type[T], handle: Callable[..., Any], **facts: Any) -> Method:
    def name_of(params: Any) -> str | None:
        # Names of the two families are apart, also while their processes start.
        name = family.name(params)
        return None if name is None else f"{family.noun} {name}"

    return Method(decode=partial(m.decode_params, kind=kind), handle=handle, name_of=name_of, **facts)


def _control(family: Family, kind: type[T], handle: Callable[..., Any], **facts: Any) -> Method:
    return _method(family, kind, partial(handle, family), **facts)


_TABLE = {
    "process/spawn": _method(PROCESS, m.SpawnParams, spawn, starts=True, waits=True),
    "process/writeStdin": _control(PROCESS, m.ProcessWriteParams, write, waits=True),
    "process/resizePty": _control(PROCESS, m.ProcessResizeParams, resize),
    "process/kill": _control(PROCESS, m.ProcessKillParams, kill),
    "command/exec": _method(COMMAND, m.ExecParams, execute, starts=True, waits=True),
    "command/exec/write": _control(COMMAND, m.CommandWriteParams, write, waits=True),
    "command/exec/resize": _control(COMMAND, m.CommandResizeParams, resize),
    "command/exec/terminate": _control(COMMAND, m.CommandTerminateParams, kill),
}

METHODS = {
    "initialize": Method(decode=partial(m.decode_params, kind=m.InitializeParams), handle=initialize),
    **{name: replace(method, family=name) for name, method in _TABLE.items()},
}
"""Every method but ``initialize`` goes by its own name in error texts."""


def make_endpoint(services: Services) -> AppEndpoint:
    """The app endpoint of a server."""
    return AppEndpoint(
        services.backend,
        METHODS,
        loop=services.loop,
        telemetry=services.telemetry,
        limits=services.limits.app,
    )
