"""Starting processes and commands, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import time
from typing import Any

import msgspec

from holdfast.dialects import spawning
from holdfast.dialects.dialect import LongResult
from holdfast.dialects.scope import Scope, Starting
from holdfast.errors import NameTaken, SpawnFailed, StartCancelled
from holdfast.model import Stream
from holdfast.protocol import base64
from holdfast.protocol.app import ExecParams, ExecResult, SpawnParams
from holdfast.protocol.shapes import Nothing, camel

from . import order, results
from .conversation import AppConversation, Run, around
from .explain import Declined, Failed
from .order import COMMAND, PROCESS, Family, Order

_encode = msgspec.json.Encoder().encode

_EXITED = "process/exited"


def spawn(talk: AppConversation, params: SpawnParams) -> Coroutine[Any, Any, Nothing]:
    """Start a process.  The answer comes once it runs, before any of its output."""
    placed = order.process(params, talk.endpoint.limits)
    return _spawn(talk, placed, _reserve(talk.processes, PROCESS, params.process_handle))


async def _spawn(talk: AppConversation, placed: Order, starting: Starting) -> Nothing:
    name = starting.name

    def on_over(run: Run) -> bool:
        if results.is_long(run) and talk.wants(_EXITED):
            prefix, suffix = around(_EXITED)
            talk.client.send_long(results.exited_long(name, run, prefix, suffix, on_begin))
            return True
        on_begin()
        talk.notify(_EXITED, results.exited(name, run))
        return False

    def on_begin() -> None:
        talk.processes.release(name)  # First: the client may use the name again when it reads this.

    await _start(talk, PROCESS, talk.processes, placed, starting, on_over)
    return Nothing()


def execute(
    talk: AppConversation, params: ExecParams
) -> Coroutine[Any, Any, asyncio.Future[ExecResult | LongResult]]:
    """Run a command.  The answer comes when it is over."""
    if params.permission_profile is not None:
        talk.need_experimental("command/exec.permissionProfile")
    placed = order.command(params, talk.backend.info, talk.endpoint.limits)
    if params.process_id is None:
        scope = talk.unnamed
        starting = scope.reserve(str(next(talk.numbers)))
    else:
        scope = talk.commands
        starting = _reserve(scope, COMMAND, params.process_id)
    return _execute(talk, scope, placed, starting)


async def _execute(
    talk: AppConversation, scope: Scope[Run], placed: Order, starting: Starting
) -> asyncio.Future[ExecResult | LongResult]:
    answer: asyncio.Future[ExecResult | LongResult] = talk.endpoint.loop.create_future()

    def on_over(run: Run) -> bool:
        scope.release(starting.name)
        long = results.is_long(run) and not answer.done()
        if long:
            answer.set_result(results.of_command_long(run, whole=placed.whole))
        elif not answer.done():
            answer.set_result(results.of_command(run, whole=placed.whole))
        return long

    await _start(talk, COMMAND, scope, placed, starting, on_over, answer.cancel)
    return answer


def _reserve(scope: Scope[Run], family: Family, name: str) -> Starting:
    try:
        return scope.reserve(name)
    except NameTaken as taken:
        raise Declined(family.taken(name), taken) from None


async def _start(
    talk: AppConversation,
    family: Family,
    scope: Scope[Run],
    placed: Order,
    starting: Starting,
    on_over: Callable[[Run], bool | None],
    on_lost: Callable[[], object] = lambda: None,
) -> None:
    endpoint = talk.endpoint
    try:
        process = await spawning.start(talk.backend, placed.spec, scope, starting)
    except SpawnFailed as failed:
        text = family.not_started(spawning.failure_text(failed))
        raise Failed(text, failed) from None
    except StartCancelled as cancelled:
        raise Failed(family.not_started(str(cancelled)), cancelled) from None
    # From here to the answer nothing waits, so nothing can be told in between.

    def over(run: Run) -> bool | None:
        talk.strays.keep(process)
        return on_over(run)

    tell = _teller(talk, family, starting.name)
    run = Run(
        process,
        placed.terms,
        valve=talk.valve,
        room=endpoint.room,
        loop=endpoint.loop,
        tell=tell,
        on_over=over,
        on_lost=on_lost,
    )
    scope.settle(starting, run)


def _teller(talk: AppConversation, family: Family, name: str) -> Callable[[Stream, bytes, bool], None]:
    if not talk.wants(family.delta):
        return lambda stream, data, full: None
    send = talk.client.send
    begin = b'{"method":"%b","params":{"%b":%b,"stream":"' % (
        family.delta.encode(),
        camel(family.field).encode(),
        _encode(name),
    )
    stdout, stderr = begin + b'stdout","deltaBase64":"', begin + b'stderr","deltaBase64":"'

    def tell(stream: Stream, data: bytes, full: bool) -> None:  # noqa: FBT001
        send(
            stderr if stream is Stream.STDERR else stdout,
            base64.encode(data),
            b'","capReached":%b},"emittedAtMs":%d}' % (b"true" if full else b"false", int(time() * 1000)),
        )

    return tell
