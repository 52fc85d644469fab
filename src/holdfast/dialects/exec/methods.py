"""The methods and notifications of the exec dialect, as one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from holdfast.dialects.dialect import Catalog, Method, Notice, listed, notice
from holdfast.dialects.endpoints import Services
from holdfast.protocol import files as f
from holdfast.protocol import inspecting as i
from holdfast.protocol import processes as p
from holdfast.protocol import session as s
from holdfast.protocol.discovery import DISCOVER_INSTALLED, DISCOVER_ROOTS
from holdfast.protocol.environment import READ_CONFIG
from holdfast.protocol.http import HTTP_REQUEST, HttpBodyDelta
from holdfast.protocol.ranges import READ_RANGE
from holdfast.protocol.screen import SNAPSHOT
from holdfast.protocol.shapes import Signature, decoded
from holdfast.protocol.start import RESTART, START
from holdfast.protocol.subscribing import EVENT, SUBSCRIBE, UNSUBSCRIBE, EventNotice
from holdfast.protocol.usage import USAGE
from holdfast.protocol.waiting import WAIT_FOR

from . import files
from .control import acknowledge, close_stdin, resize, signal, terminate, write
from .conversation import ExecEndpoint
from .decoding import (
    decode_http_request,
    decode_list,
    decode_start,
    decode_unit,
    decode_watch_missing,
    decode_write,
    decode_write_block,
    located,
)
from .discovery import discover_roots
from .environment import read_config
from .files import close_file, open_file, read_block, watch_missing, write_block
from .http import request
from .inspecting import inspect
from .installed import discover_installed
from .naming import find, remove
from .ranges import read_range
from .reading import read, wait
from .restarting import restart
from .screens import snapshot
from .session import close, environment_info, environment_status, initialize, list_processes, take_over
from .spans import in_span
from .starting import start
from .subscribing import subscribe, unsubscribe
from .usage import usage
from .waiting import wait_for

P = TypeVar("P")
R = TypeVar("R")


def _method(
    signature: Signature[P, R],
    handle: Callable[..., Any],
    family: str = "",
    *,
    decode: Callable[[Any], Any] | None = None,
    **traits: Any,
) -> Method:
    """A row of the table; without ``decode`` the handler is given the params as they are described."""
    if decode is None:
        kind = signature.params
        decode = decode_unit if kind is None else partial(decoded, kind=kind)
    return Method(decode, handle, family, signature=signature, **traits)


def _file(
    signature: Signature[P, R],
    handle: Callable[..., Any],
    decode: Callable[[Any], Any] | None = None,
    **traits: Any,
) -> Method:
    """A row about files: its span has the name of the method."""
    handle = in_span(signature.name, handle)
    return _method(signature, handle, "filesystem", decode=decode, waits=True, **traits)


def _discovery(
    signature: Signature[P, R], handle: Callable[..., Any], family: str = "capability discovery"
) -> Method:
    """A row about what is installed on the host, which is found by reading many files."""
    return _method(signature, in_span(signature.name, handle), family, waits=True)


def _name(params: Any) -> str:
    name: str = params.process_id
    return name


_about = partial(_method, family="exec", name_of=_name)
"""A row about one process: such a request waits while that process is starting."""

_ROWS = (
    _method(s.INITIALIZE, initialize, alone=True, waits=True),
    _method(s.TAKE_OVER, take_over, alone=True, waits=True),
    # What ends with the session is the client's own, and would stay until the session expires.
    _method(s.CLOSE_SESSION, close, "session", alone=True, waits=True, free=True),
    _method(s.ENVIRONMENT_INFO, environment_info, "environment info"),
    _method(s.ENVIRONMENT_STATUS, environment_status, "environment status"),
    _method(
        START,
        start,
        "exec",
        decode=decode_start,
        name_of=lambda asked: asked.params.process_id,
        starts=True,
        waits=True,
    ),
    _method(
        RESTART,
        restart,
        "exec",
        name_of=lambda params: params.new_process_id,
        starts=True,
        waits=True,
    ),
    _method(i.LIST, list_processes, "exec", decode=decode_list, waits=True),
    # Its answer is a part of that of the list.
    _method(p.FIND, find, "exec", waits=True, implied_by=(i.LIST.name,)),
    # Not in any order with its start: a process that has not ended is refused.
    _method(p.REMOVE, remove, "exec"),
    _method(USAGE, usage, "exec", waits=True),
    # Of what a client starts it is told anyway; these find what it missed, and make room for more.
    _about(p.READ, read, waits=True, implied_by=(START.name,)),
    _about(READ_RANGE, read_range, waits=True, implied_by=(START.name, p.READ.name)),
    _about(p.ACK, acknowledge, implied_by=(START.name, p.READ.name)),
    _about(p.WAIT, wait, waits=True, implied_by=(START.name, p.READ.name)),
    _about(WAIT_FOR, wait_for, waits=True),
    _about(i.INSPECT, inspect, waits=True),
    _about(SNAPSHOT, snapshot, waits=True, implied_by=(START.name, p.READ.name)),
    _about(p.WRITE, write, decode=decode_write, waits=True),
    _about(p.CLOSE_STDIN, close_stdin),
    _about(p.RESIZE, resize),
    _about(p.SIGNAL, signal),
    # Not in any order with its start: this is what gives the start up.
    _method(p.TERMINATE, terminate, "exec"),
    _method(SUBSCRIBE, subscribe, "events", waits=True),
    _method(UNSUBSCRIBE, unsubscribe, "events", implied_by=(SUBSCRIBE.name,)),
    _file(f.READ_FILE, files.read_file, located(f.ReadFileParams)),
    _file(f.WRITE_FILE, files.write_file, located(f.WriteFileParams)),
    _file(f.CREATE_DIRECTORY, files.create_directory, located(f.CreateDirectoryParams)),
    _file(f.GET_METADATA, files.get_metadata, located(f.GetMetadataParams)),
    _file(f.CANONICALIZE, files.canonicalize, located(f.CanonicalizeParams)),
    _file(f.READ_DIRECTORY, files.read_directory, located(f.ReadDirectoryParams)),
    _file(f.WALK, files.walk, located(f.WalkParams)),
    _file(f.REMOVE, files.remove, located(f.RemoveParams)),
    _file(f.COPY, files.copy, located(f.CopyParams, "source_path", "destination_path")),
    _file(f.RENAME, files.rename, located(f.RenameParams, "source_path", "destination_path")),
    _file(f.ARCHIVE, files.archive, located(f.ArchiveParams)),
    _file(f.EXTRACT, files.extract, located(f.ExtractParams)),
    _file(f.OPEN_FILE, open_file, located(f.OpenFileParams)),
    _file(f.READ_BLOCK, read_block),
    _file(f.WRITE_BLOCK, write_block, decode_write_block),
    _file(f.CLOSE_FILE, close_file, implied_by=(f.OPEN_FILE.name,)),
    _file(f.WATCH_MISSING, watch_missing, decode_watch_missing),
    _method(HTTP_REQUEST, request, "http", decode=decode_http_request, waits=True),
    _discovery(DISCOVER_ROOTS, discover_roots),
    _discovery(DISCOVER_INSTALLED, discover_installed),
    _discovery(READ_CONFIG, read_config, "environment config"),
)


METHODS: dict[str, Method] = {each.signature.name: each for each in _ROWS if each.signature is not None}

CATALOG = Catalog(
    name="exec",
    title="The exec endpoint of holdfast",
    calls=listed(METHODS),
    client_notifications=(
        Notice("initialized", None, "The answer to ``initialize`` has come; other methods may follow."),
    ),
    server_notifications=(
        notice("process/output", p.ProcessOutput),
        notice("process/exited", p.ProcessExited),
        notice("process/closed", p.ProcessClosed),
        notice(EVENT, EventNotice),
        notice("fs/missingChanged", f.MissingChanged),
        notice("http/request/bodyDelta", HttpBodyDelta),
    ),
    base64=frozenset({"chunk", "data", "dataBase64", "bodyBase64", "deltaBase64"}),
)


def make_endpoint(services: Services) -> ExecEndpoint:
    """The exec endpoint of a server."""
    limits = services.limits
    webhooks = None
    if services.webhooks is not None:
        from .notifying import WebhookSender  # Most servers notify nobody.

        webhooks = WebhookSender(services.webhooks, services.backend, services.telemetry)
    return ExecEndpoint(
        services.backend,
        METHODS,
        loop=services.loop,
        limits=limits.session,
        http_limits=limits.http,
        file_limits=limits.file,
        sandbox_limits=limits.sandbox,
        webhooks=webhooks,
    )
