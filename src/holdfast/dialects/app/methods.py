"""The methods and notifications of the app dialects, as one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from holdfast.dialects.dialect import Catalog, Method, Notice, listed, notice
from holdfast.dialects.endpoints import Services
from holdfast.protocol.app import (
    EXEC,
    EXEC_RESIZE,
    EXEC_TERMINATE,
    EXEC_WRITE,
    INITIALIZE,
    KILL,
    RESIZE_PTY,
    SPAWN,
    WRITE_STDIN,
    AppInitializeParams,
    AppInitializeResult,
    AppProcessExited,
    CommandDelta,
    ProcessDelta,
    decode_params,
)
from holdfast.protocol.shapes import Signature

from .control import kill, resize, write
from .conversation import AppConversation, AppEndpoint
from .order import COMMAND, PROCESS, Family
from .starting import execute, spawn

P = TypeVar("P")
R = TypeVar("R")


def initialize(talk: AppConversation, params: AppInitializeParams) -> AppInitializeResult:
    """Begin the conversation."""
    return talk.begin(params)


def _method(
    signature: Signature[P, R], handle: Callable[..., Any], family: str = "", **traits: Any
) -> Method:
    assert signature.params is not None
    decode = partial(decode_params, kind=signature.params)
    return Method(decode, handle, family, signature=signature, **traits)


def _about(family: Family, signature: Signature[P, R], handle: Callable[..., Any], **traits: Any) -> Method:
    """A row about one process; in error texts it goes by its own name."""

    def name_of(params: Any) -> str | None:
        # Names of the two families are apart, also while their processes start.
        name = family.name(params)
        return None if name is None else f"{family.noun} {name}"

    return _method(signature, handle, signature.name, name_of=name_of, **traits)


def _control(family: Family, signature: Signature[P, R], handle: Callable[..., Any], **traits: Any) -> Method:
    return _about(family, signature, partial(handle, family), **traits)


_ROWS = (
    _method(INITIALIZE, initialize),
    _about(PROCESS, SPAWN, spawn, starts=True, waits=True),
    _control(PROCESS, WRITE_STDIN, write, waits=True),
    _control(PROCESS, RESIZE_PTY, resize),
    _control(PROCESS, KILL, kill),
    _about(COMMAND, EXEC, execute, starts=True, waits=True),
    _control(COMMAND, EXEC_WRITE, write, waits=True),
    _control(COMMAND, EXEC_RESIZE, resize),
    _control(COMMAND, EXEC_TERMINATE, kill),
)

METHODS: dict[str, Method] = {each.signature.name: each for each in _ROWS if each.signature is not None}

CATALOG = Catalog(
    name="app",
    title="The app endpoint of holdfast",
    calls=listed(METHODS),
    client_notifications=(
        Notice("initialized", None, "Changes nothing: the answer to ``initialize`` is enough."),
    ),
    server_notifications=(
        notice(PROCESS.delta, ProcessDelta),
        notice("process/exited", AppProcessExited),
        notice(COMMAND.delta, CommandDelta),
    ),
    base64=frozenset({"deltaBase64"}),
    stamped=True,
)


def make_endpoint(services: Services) -> AppEndpoint:
    """The app endpoint of a server."""
    return AppEndpoint(
        services.backend,
        METHODS,
        loop=services.loop,
        limits=services.limits.app,
    )
