"""Starts as another user, up to the moment in which something is started."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.config import EngineLimits
from holdfast.engine.users import Users
from holdfast.errors import Forbidden, UserRefused
from holdfast.faults import UserFault
from holdfast.model import EnvironmentPolicy, Inherit, Spec
from holdfast.principal import ANYBODY, Grant, Principal
from holdfast.sandbox import Sandbox
from holdfast.users import Credentials, User
from holdfast.value import replace
from tests.fakes.process import command, running_backend

BOB = Credentials(
    1000, 100, (100, 7), (("HOME", "/b"), ("USER", "bob"), ("LOGNAME", "bob"), ("SHELL", "/b/sh"))
)
PATIENCE = 60.0


def as_bob(**members: Any) -> Spec:
    return replace(command("id"), user=User("bob"), env={}, **members)


@pytest.fixture
def users() -> Iterator[Callable[..., Users]]:
    """Users of a host that has bob."""
    made: list[Users] = []

    def make(find: Callable[[str], Credentials] = lambda name: BOB, patience: float = PATIENCE) -> Users:
        made.append(
            Users(asyncio.get_running_loop(), patience, find=find, own_names=lambda: ("root", "0", "0:0"))
        )
        return made[-1]

    yield make
    for each in made:
        each.close()


async def test_the_user_is_known_afterwards_with_its_variables(users: Callable[..., Users]) -> None:
    settled = await users().settle(as_bob())

    assert settled.user == User("bob", BOB)
    assert settled.env == dict(BOB.variables)


async def test_what_the_request_sets_or_takes_away_stays_so(users: Callable[..., Users]) -> None:
    policy = EnvironmentPolicy(
        Inherit.ALL, ignore_default_excludes=True, exclude=("USER",), set=(("SHELL", "x"),), include_only=()
    )
    spec = replace(as_bob(env_policy=policy), env={"HOME": None, "A": "1"})

    settled = await users().settle(spec)

    assert settled.env == {"LOGNAME": "bob", "HOME": None, "A": "1"}


async def test_a_token_may_not_allow_the_variables(users: Callable[..., Users]) -> None:
    settled = await users().settle(as_bob(variables=("HOM*", "PATH")))

    assert settled.env == {"HOME": "/b"}


async def test_another_user_is_put_into_no_sandbox(users: Callable[..., Users]) -> None:
    """The witness of a sandbox acts for the command, with the rights of the server."""
    asking = users()

    with pytest.raises(UserRefused) as caught:
        await asking.settle(as_bob(sandbox=Sandbox.read_only()))
    own = await users(lambda name: replace(BOB, own=True)).settle(as_bob(sandbox=Sandbox.read_only()))

    assert caught.value.fault is UserFault.SANDBOX
    assert own.sandbox == Sandbox.read_only()


async def test_a_database_that_hangs_holds_up_whoever_asks_and_nobody_for_ever(
    users: Callable[..., Users],
) -> None:
    answer, asked = threading.Event(), threading.Semaphore(0)

    def hang(name: str) -> Credentials:
        asked.release()
        answer.wait(PATIENCE)
        return BOB

    asking = users(hang, patience=0.05)
    try:
        with pytest.raises(UserRefused, match=r"has not answered within 0\.05 s") as caught:
            await asking.settle(as_bob())
        assert caught.value.fault is UserFault.LOOKUP
        assert asked.acquire(timeout=PATIENCE)
    finally:
        answer.set()


async def test_a_malformed_name_is_refused_without_a_question(users: Callable[..., Users]) -> None:
    def never(name: str) -> Credentials:
        raise AssertionError(name)

    with pytest.raises(UserRefused):
        await users(never).settle(replace(as_bob(), user=User("a:b")))


async def test_the_own_user_is_known_by_all_its_names(users: Callable[..., Users]) -> None:
    asking = users()

    assert [await asking.is_own(name) for name in ("root", "0", "0:0", "0:1", "bob", "00")] == [
        *(True, True, True),
        *(False, False, False),
    ]


# Tokens.


async def test_a_token_that_lists_nobody_allows_the_own_user_only() -> None:
    """Also for names that there are not, so that nobody finds out which there are."""
    async with running_backend(EngineLimits()) as backend:
        mine = backend.on_behalf_of(Principal("a"))

        for name in ("nobody", "65534", "no-such-user"):
            with pytest.raises(Forbidden) as caught:
                await mine.start(replace(command("id"), user=User(name)))
            assert (caught.value.what, caught.value.subject) == ("user", name)


def test_users_are_listed_by_patterns_and_as_they_are_spelled() -> None:
    some = Principal("a", grant=Grant(users=("bob", "ci-*", "7:*")))

    allowed = [name for name in ("bob", "1000", "ci-1", "ci", "7", "7:8", "root") if some.allows_user(name)]

    assert allowed == ["bob", "ci-1", "7:8"]
    assert ANYBODY.allows_user("anybody")
    assert not Principal("token").allows_user("bob")
