"""Terminals that the server records, as far as their client may write files."""

from __future__ import annotations

from holdfast.errors import BadRequest, Forbidden
from holdfast.protocol import paths
from holdfast.protocol.sandbox import sandbox_of
from holdfast.protocol.start import RecordParams
from holdfast.recordings import RECORDING_MOST, HostRecording

from .conversation import ExecConversation
from .decoding import local

_NEEDED = "fs/writeFile"

_LEAST = 1024
"""Bytes: room for the first line of a short command, and the mark at the end."""

_MOST = 1 << 62
"""Bytes; more is legal and means the same, but the kernel's numbers end."""


def recording_of(talk: ExecConversation, params: RecordParams) -> HostRecording:
    """Return what is to be recorded.

    Raises:
        Forbidden: The client may not write files.
    """
    if not talk.client.principal.grant.allows_method(_NEEDED):
        raise Forbidden("method", _NEEDED)
    most = RECORDING_MOST if params.max_bytes is None else min(params.max_bytes, _MOST)
    if most < _LEAST:
        raise BadRequest(f"record.maxBytes must be at least {_LEAST}", field="record.maxBytes")
    sandbox = sandbox_of(params.sandbox, None, talk.endpoint.sandbox_limits)
    return HostRecording(local(paths.parse(params.path)), params.input, most, sandbox)
