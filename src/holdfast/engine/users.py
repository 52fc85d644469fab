"""Starts as another user: whose process it becomes, found out before anything is started.

What must hold:

1. No process is started as another user than the one that was asked for: whatever is not known is refused.
2. Nobody but whoever asked waits for the user database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from holdfast.errors import UserRefused
from holdfast.faults import UserFault
from holdfast.host import users
from holdfast.model import Spec
from holdfast.principal import matches
from holdfast.users import Credentials, User, numbers_of
from holdfast.value import replace

from .workers import Workers

T = TypeVar("T")

_THREADS = 2
"""Threads that ask the user database: of their own, because it may hang, and files must go on."""


class Users:
    """Looks up the users of starts."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        patience: float,
        *,
        find: Callable[[str], Credentials] = users.find,
        own_names: Callable[[], tuple[str, ...]] = users.own_names,
    ) -> None:
        """
        Args:
            patience: Seconds that the user database may take.
            find: Looks a user up; called in a thread.
            own_names: What the server's own user may be called; called in a thread.
        """
        self._workers = Workers(_THREADS, loop, "holdfast-users")
        self._patience = patience
        self._find = find
        self._own_names = own_names

    async def settle(self, spec: Spec) -> Spec:
        """Return ``spec`` with what the host knows of its user, and with the variables of that user.

        A variable that the request sets or takes away stays as the request has it.

        Raises:
            UserRefused: Nothing can be started as that user, or not in this way.
        """
        assert spec.user is not None
        name = spec.user.name
        numbers_of(name)
        found = await self._ask(name, lambda: self._find(name))
        if spec.sandbox is not None and not found.own:
            reason = "a sandbox is kept for the server's own user only: leave out one of the two"
            raise UserRefused(name, UserFault.SANDBOX, reason)
        policy = spec.env_policy
        # A pattern without stars is how a request takes one variable away.
        given = () if policy is None else (*policy.exclude, *(each for each, _ in policy.set))
        env = {
            each: text
            for each, text in found.variables
            if each not in given and (spec.variables is None or matches(each, spec.variables))
        }
        return replace(spec, user=User(name, found), env={**env, **spec.env})

    async def is_own(self, name: str) -> bool:
        """Whether the server runs as that user; false if that cannot be found out.

        Raises:
            UserRefused: No user can be called that.
        """
        numbers_of(name)
        try:
            return name in await self._ask(name, self._own_names)
        except UserRefused:
            return False

    async def _ask(self, name: str, call: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._patience):
                return await self._workers.run(call)
        except TimeoutError:
            reason = f"the user database of the host has not answered within {self._patience:g} s"
            raise UserRefused(name, UserFault.LOOKUP, reason) from None

    def close(self) -> None:
        """End the threads, each when its question is answered.  Nobody waits for that."""
        self._workers.close()
