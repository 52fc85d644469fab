"""How a session begins, or goes on (pure)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.errors import SessionUnknown

from . import answers as a

INITIALIZED = b'{"method":"initialized","params":{}}'
"""What a client says when it has read the server's answer."""

Ask = Callable[[str, object], Awaitable[msgspec.Raw]]


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a server answered."""

    session: str
    info: a.EnvironmentInfo
    features: frozenset[str]
    """What it can do beyond the protocol."""
    forgotten: bool
    """Whether there was a session, which it no longer knows."""


async def shake_hands(ask: Ask, client_name: str, session: str | None, features: frozenset[str]) -> Greeting:
    """Resume ``session``, if there is one and the server still knows it, or open a new one.

    Args:
        features: What the server could do when it was asked last.

    Raises:
        SessionBusy: The server has not noticed yet that we were gone.
    """
    about: dict[str, Any] = {"clientName": client_name, "holdfast": 1}
    answer: msgspec.Raw | None = None
    if session is not None:
        try:
            if "sessionTakeOver" in features:
                answer = await ask("session/takeOver", {"sessionId": session, **about})
            else:
                answer = await ask("initialize", {"resumeSessionId": session, **about})
        except SessionUnknown:
            pass
    forgotten = session is not None and answer is None
    if answer is None:
        answer = await ask("initialize", about)
    result = _result(answer)
    extensions = result.environment_info.capabilities.holdfast
    return Greeting(
        result.session_id,
        result.environment_info,
        frozenset(extensions.features if extensions else ()),
        forgotten,
    )


_result = a.reader(a.InitializeResult)
