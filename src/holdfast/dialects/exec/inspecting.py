"""What processes do at this moment, for whoever asks: nobody is looked at otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from holdfast.inspecting import inspect as look
from holdfast.inspection import Inspection
from holdfast.protocol.inspecting import InspectParams, InspectResult, inspected

from .conversation import ExecConversation
from .entries import Entry
from .reading import find

Waiting = Mapping[Entry, bytes]
"""What a list says of processes that were looked at: a member of a JSON object, with the comma before it."""

_SECONDS = 2.0
"""Seconds for the looks of one list.  Of a process whose look takes longer it is not known."""

_WORDS = {
    True: b',"waitingForInput":true',
    False: b',"waitingForInput":false',
    None: b',"waitingForInput":null',
}


async def inspect(talk: ExecConversation, params: InspectParams) -> InspectResult:
    """Whether a process waits for input at this moment, and whether its terminal shows what is typed."""
    return inspected(await look(find(talk, params.process_id).process))


async def look_at_all(talk: ExecConversation) -> Waiting:
    """Look at every running process that the client sees, all at once as far as there are threads."""
    found: dict[Entry, bool | None] = {}
    all_told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    session = talk.session
    running = [
        entry for home in (session, session.tenant.shared) for entry in home.entries if entry.process.running
    ]

    def tell(entry: Entry, inspection: Inspection) -> None:
        found[entry] = inspection.waiting_for_input
        if len(found) == len(running) and not all_told.done():
            all_told.set_result(None)

    for entry in running:
        entry.process.look_at_input(partial(tell, entry))
    if running:
        await asyncio.wait((all_told,), timeout=_SECONDS)  # What was seen in time is told.
    return {entry: _WORDS[found.get(entry)] for entry in running}
