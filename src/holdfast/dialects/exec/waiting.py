"""Waits until a process has brought something about, so that nobody asks again and again over a network."""

from __future__ import annotations

from holdfast import conditions
from holdfast.conditions import Condition
from holdfast.dialects.dialect import Pause
from holdfast.errors import Forbidden
from holdfast.protocol import paths
from holdfast.protocol.waiting import WaitForParams, WaitForResult, waited
from holdfast.waiting import wait_for as wait

from .conversation import ExecConversation
from .decoding import local
from .reading import as_seconds, find


async def wait_for(talk: ExecConversation, params: WaitForParams) -> WaitForResult:
    """Wait until a port or a URL answers, a text is printed, a file is there, or the process ends."""
    process = find(talk, params.process_id).process
    file = None if params.file is None else local(paths.parse(params.file))
    condition = Condition(params.port, params.url, params.output, file)
    conditions.prepared(condition)
    _check(talk, condition)
    await Pause()  # What follows needs a task, because of its timeouts.
    seconds = as_seconds(params.wait_ms)
    return waited(await wait(process, condition, talk.backend, seconds=seconds))


def _check(talk: ExecConversation, condition: Condition) -> None:
    """Refuse what the client's token does not let it find out in another way."""
    grant = talk.client.principal.grant
    needed = ""
    if condition.file is not None:
        needed = "fs/getMetadata"
    elif condition.url is not None and not conditions.is_loopback(condition.url):
        needed = "http/request"
    if needed and not grant.allows_method(needed):
        raise Forbidden("method", needed)
