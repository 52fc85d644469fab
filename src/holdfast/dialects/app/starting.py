"""Starting processes and commands, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import time
from typing import Any

import msgspec
from msgspec import UNSET

from holdfast import tracing
from holdfast.dialects import base64, spawning
from holdfast.dialects.scope import Scope, Starting
from holdfast.dialects.shapes import Nothing, camel
from holdfast.errors import NameTaken, SpawnFailed, StartCancelled
from holdfast.model import Stream

from . import messages as m
from . import order
from .capped import Capped
from .endpoint import AppConversation
from .explain import Declined, Failed
from .family import COMMAND, PROCESS, Family
from .order import Order
from .run import Run
from .text import decode

_encode = msgspec.json.Encoder().encode


def spawn(talk: AppConversation, params: m.SpawnParams) -> Coroutine[Any, Any, Nothing]:
    """Start a process.  The answer comes once it runs, before anything it says."""
    placed = order.process(params, talk.endpoint.limits)
    return _spawn(talk, placed, _reserve(talk.processes, PROCESS, params.process_handle))


async def _spawn(talk: AppConversation, placed: Order, starting: Starting) -> Nothing:
    name = starting.name

    def on_over(run: Run) -> None:
        talk.processes.release(name)  # First: the client may use the name again when it reads this.
        talk.notify("process/exited", _exited(name, run))

    await _start(talk, PROCESS, talk.processes, placed, starting, on_over)
    return Nothing()


def execute(talk: AppConversation, params: m.ExecParams) -> Coroutine[Any, Any, asyncio.Future[m.ExecResult]]:
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
) -> asyncio.Future[m.ExecResult]:
    answer: asyncio.Future[m.ExecResult] = talk.endpoint.loop.create_future()

    def on_over(run: Run) -> None:
        scope.release(starting.name)
        if not answer.done():
            answer.set_result(_result(run, whole=placed.whole))

    await _start(talk, COMMAND, scope, placed, starting, on_over, answer.cancel)
    return answer


def _reserve(scope: Scope[Run], family: Family, name: str) -> Starting:
    try:
        return scope.reserve(name)
    except NameTaken:
        raise Declined(family.taken(name)) from None


async def _start(
    talk: AppConversation,
    family: Family,
    scope: Scope[Run],
    placed: Order,
    starting: Starting,
    on_over: Callable[[Run], None],
    on_lost: Callable[[], object] = lambda: None,
) -> None:
    endpoint = talk.endpoint
    try:
        process = await spawning.start(talk.backend, placed.spec, scope, starting)
    except SpawnFailed as failed:
        text = family.not_started(spawning.failure_text(failed))
        raise Failed(text, spawning.failure_data(failed)) from None
    except StartCancelled as cancelled:
        raise Failed(family.not_started(str(cancelled))) from None
    # From here to the answer nothing waits, so nothing can be told in between.
    started, span = endpoint.loop.time(), tracing.begin(tracing.PROCESS)

    def over(run: Run) -> None:
        talk.strays.keep(process)
        result = "terminated" if run.killed else "error" if run.exit_code else "success"
        _count(talk, result, started, span)
        on_over(run)

    def lost() -> None:
        _count(talk, "terminated", started, span)
        on_lost()

    tell = _teller(talk, family, starting.name)
    run = Run(
        process,
        placed.terms,
        valve=talk.valve,
        room=endpoint.room,
        loop=endpoint.loop,
        tell=tell,
        on_over=over,
        on_lost=lost,
    )
    scope.settle(starting, run)
    endpoint.telemetry.process_started()


def _count(talk: AppConversation, result: str, started: float, span: tracing.Span | None) -> None:
    talk.endpoint.telemetry.process_finished(result, talk.endpoint.loop.time() - started)
    if span is not None:
        span.set("result", result)
        span.end()


def _teller(talk: AppConversation, family: Family, name: str) -> Callable[[Stream, bytes, bool], None]:
    if not talk.hears(family.delta):
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


# Results.


def _text(run: Run, capped: Capped) -> str:
    return decode(capped.kept(), cut=capped.full or run.torn)


def _exited(name: str, run: Run) -> m.ProcessExited:
    assert run.exit_code is not None
    return m.ProcessExited(
        process_handle=name,
        exit_code=run.exit_code,
        output_drain_timed_out=run.drain_timed_out,
        stdout=_text(run, run.stdout),
        stdout_cap_reached=run.stdout.full,
        stderr=_text(run, run.stderr),
        stderr_cap_reached=run.stderr.full,
    )


def _result(run: Run, *, whole: bool) -> m.ExecResult:
    """``whole`` if the client wanted everything: then it must be told if that is not what it gets."""
    assert run.exit_code is not None
    return m.ExecResult(
        exit_code=run.exit_code,
        stdout=_text(run, run.stdout),
        stderr=_text(run, run.stderr),
        stdout_cap_reached=True if run.stdout.crowded or (whole and run.stdout.full) else UNSET,
        stderr_cap_reached=True if run.stderr.crowded or (whole and run.stderr.full) else UNSET,
    )
