"""Talking to what runs: input, size, end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from holdfast.dialects.scope import Starting
from holdfast.errors import BadRequest, NoTerminal, UnknownProcess
from holdfast.model import WriteStatus
from holdfast.protocol import base64
from holdfast.protocol.app import (
    CommandResizeParams,
    CommandTerminateParams,
    CommandWriteParams,
    ProcessKillParams,
    ProcessResizeParams,
    ProcessWriteParams,
)
from holdfast.protocol.shapes import Nothing

from . import order
from .conversation import AppConversation, Run
from .explain import Declined
from .order import Family


def write(
    family: Family, talk: AppConversation, params: ProcessWriteParams | CommandWriteParams
) -> Nothing | Coroutine[Any, Any, Nothing]:
    """Offer bytes to stdin, close it, or both."""
    if params.delta_base64 is None and not params.close_stdin:
        raise BadRequest(family.nothing_to_write())
    try:
        data = base64.decode(params.delta_base64 or "")
    except BadRequest as bad:
        raise BadRequest(f"invalid deltaBase64: {bad}") from None
    run = _find(talk, family, params)
    if not run.takes_stdin:
        raise Declined(family.no_stdin())
    if data and not run.stdin_open:
        raise Declined("stdin is already closed")
    if params.close_stdin:
        run.stdin_open = False
    status = run.process.try_write(data) if data else WriteStatus.ACCEPTED
    if status is None:
        return _write_later(run, data, close=params.close_stdin)
    return _written(run, status, close=params.close_stdin)


async def _write_later(run: Run, data: bytes, *, close: bool) -> Nothing:
    return _written(run, await run.process.write(data), close=close)


def _written(run: Run, status: WriteStatus, *, close: bool) -> Nothing:
    if close:
        run.process.close_stdin_now()
    if status is WriteStatus.STDIN_CLOSED:
        raise Declined("stdin is already closed")
    return Nothing()


def resize(
    family: Family, talk: AppConversation, params: ProcessResizeParams | CommandResizeParams
) -> Nothing:
    """Give a terminal another size."""
    size = order.size(family, params.size)
    run = _find(talk, family, params)
    try:
        run.process.resize_now(size)
    except NoTerminal as refused:
        raise Declined("failed to resize PTY: process is not attached to a PTY", refused) from None
    return Nothing()


def kill(
    family: Family, talk: AppConversation, params: ProcessKillParams | CommandTerminateParams
) -> Nothing:
    """Kill a process; its result follows."""
    _find(talk, family, params).kill()
    return Nothing()


def _find(talk: AppConversation, family: Family, params: Any) -> Run:
    name = family.name(params)
    assert name is not None
    run = talk.scope(family).find(name)
    if run is None or isinstance(run, Starting):
        raise Declined(family.unknown(name), UnknownProcess(name))
    if run.exit_code is not None:
        raise Declined(family.over(name), UnknownProcess(name))
    return run
