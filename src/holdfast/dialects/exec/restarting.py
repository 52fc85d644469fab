"""Starting a process again that belongs to no client: the same request, under the same name."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.dialects.scope import Starting
from holdfast.errors import BadRequest, StillRunning, StillStarting, UnknownProcess
from holdfast.protocol.start import RestartParams, StartResult

from .control import LONGEST_GRACE
from .conversation import ExecConversation
from .decoding import decode_start
from .starting import start

_decode: Any = msgspec.json.Decoder().decode


async def restart(talk: ExecConversation, params: RestartParams) -> StartResult:
    """End a process with everything it has started, and start it again under another identifier."""
    # Now: the client may close this session before the process has ended, which then has to be started again.
    name, session = params.process_id, talk.session
    entry = talk.endpoint.find(session, name)
    match entry:
        case None:
            raise UnknownProcess(name)
        case Starting():
            raise StillStarting(name)
    if not entry.request.again:
        raise BadRequest(
            "the request for this process is not remembered: it was made without keep, or is too long",
            field="processId",
        )
    asked: dict[str, Any] = _decode(entry.request.again)
    with talk.waiting_for_end(counted=True):
        ended = await entry.process.end(grace=min((params.grace_ms or 0) / 1000, LONGEST_GRACE))
    if ended.survivors:
        raise StillRunning(name)
    return await start(talk, decode_start({**asked, "processId": params.new_process_id}), session)
