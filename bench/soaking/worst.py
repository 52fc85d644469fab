"""The worst messages that are legal: those that the tests send one by one, sent among everything else."""

from __future__ import annotations

import contextlib

from bench.soaking.peer import Peer, Refusal, check
from bench.soaking.user import User
from holdfast.dialects.app import methods as app_methods
from holdfast.dialects.exec import methods as exec_methods
from tests.fakes import fence
from tests.fakes.worst import ORDINARY, Growth, cases, has_digits

_SIZE = 64 << 10
"""Bytes of a message: small enough to send thousands of them."""

_IN_A_ROW = 10


async def worst(user: User) -> None:
    """Some in a row, of one method each; the server answers, and stays what it is to everybody else."""
    root = user.directory / "worst"
    for _ in range(_IN_A_ROW):
        root.mkdir(exist_ok=True)
        await _one(user, Growth(_SIZE, str(root)))
    check(await _is_served(user), "the server no longer answers")


async def _one(user: User, growth: Growth) -> None:
    catalog = app_methods.CATALOG if user.is_app else exec_methods.CATALOG
    call = user.chance.choice(catalog.calls)
    ordinary = ORDINARY[catalog.name](growth.root)[call.name]
    case = user.chance.choice(list(cases(call, ordinary, growth)))
    members = {key: value for key, value in (case.params or {}).items() if key != "url"}
    if has_digits(members):
        return  # No message at all to some: there is no answer to wait for.
    outside = list(fence.leaving(members, growth.root))
    check(not outside, f"{call.name} {case.name} would leave the tree: {outside[:1]}")
    peer = await user.open()
    try:
        if call.name not in ("initialize", "session/takeOver"):
            await user.join(peer)
        with contextlib.suppress(Refusal):
            await peer.call(call.name, case.params)
        await _end(user, peer)
    finally:
        await user.leave(peer)


async def _end(user: User, peer: Peer) -> None:
    """Leave no session behind, for which the server would wait."""
    if not user.is_app and user.chance.random() < 0.9:
        with contextlib.suppress(Refusal):
            await peer.call("session/close")


async def _is_served(user: User) -> bool:
    if user.is_app:
        await user.peer.refused(-32600, "unknown variant", "no/such/method")
        return True
    return bool(await user.peer.call("environment/status") == {"status": "ready"})
