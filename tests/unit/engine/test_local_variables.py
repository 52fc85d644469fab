"""Variables of processes of this host: what is too much, and where much is looked at."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping

import pytest

from holdfast.config import EnvironmentLimits
from holdfast.engine.local import LocalBackend
from holdfast.errors import Forbidden, LimitReached
from holdfast.host import environ
from holdfast.host.environ import Environment
from holdfast.host.info import host_info
from holdfast.host.spawn import Spawner
from holdfast.model import EnvironmentPolicy, Inherit, Spec
from holdfast.principal import Grant, Principal
from holdfast.value import replace
from tests.fakes.process import command
from tests.fakes.recorder import finished

MANY = {f"V{number:04}": "x" for number in range(1000)}
PLAIN = EnvironmentPolicy(Inherit.NONE, ignore_default_excludes=True, exclude=(), set=(), include_only=())


class Watched(Environment):
    """An environment that notes in which threads it is asked."""

    def __init__(self) -> None:
        super().__init__({})
        self.threads: list[bool] = []

    def child(
        self,
        policy: EnvironmentPolicy | None,
        overlay: Mapping[str, str | None],
        allowed: tuple[str, ...] | None = None,
    ) -> dict[str, str]:
        if policy is not None:
            self.threads.append(threading.current_thread() is not threading.main_thread())
        return super().child(policy, overlay, allowed)


@pytest.fixture
def environment() -> Watched:
    return Watched()


@pytest.fixture
async def backend(environment: Watched) -> AsyncIterator[LocalBackend]:
    limits = EnvironmentLimits(variables=1001, patterns=1)
    loop = asyncio.get_running_loop()
    made = LocalBackend(Spawner(environment), host_info, loop, environment_limits=limits)
    yield made
    await made.aclose()


def wanting(*included: str, given: Mapping[str, str] = MANY) -> Spec:
    policy = replace(PLAIN, set=tuple(given.items()), include_only=included)
    return replace(command("/usr/bin/env"), env={"A": "b"}, env_policy=policy)


async def output(backend: LocalBackend, spec: Spec) -> list[bytes]:
    process = await backend.start(spec)
    await finished(process)
    return b"".join(chunk.data for chunk in (await process.read()).chunks).split()


async def test_many_names_are_compared_in_a_thread(backend: LocalBackend, environment: Watched) -> None:
    """Everybody else would have to wait for it."""
    assert len(MANY) * 5 > environ.AT_ONCE

    assert await output(backend, wanting("V000?")) == [b"A=b", *(b"V000%d=x" % i for i in range(10))]

    assert environment.threads == [True]


async def test_few_names_are_compared_at_once(backend: LocalBackend, environment: Watched) -> None:
    assert await output(backend, wanting("*", given={"V": "x"})) == [b"A=b", b"V=x"]

    assert environment.threads == [False]


@pytest.mark.parametrize("asked", [False, True])
async def test_more_than_a_request_may_say_is_refused(backend: LocalBackend, *, asked: bool) -> None:
    """Before anything is compared with what its token allows."""
    place = backend.on_behalf_of(Principal("a", grant=Grant(variables=("X",)))) if asked else backend

    with pytest.raises(LimitReached, match="variables of one process"):
        await place.start(replace(wanting(), env={"A": "b", "B": "c"}))
    with pytest.raises(LimitReached, match="patterns of variables"):
        await place.start(wanting("a", "b"))


@pytest.mark.parametrize("name", ["W", "W" * 5000, "W=V0000"])
async def test_a_token_is_asked_about_every_name(backend: LocalBackend, name: str) -> None:
    """Also if there are many, which are looked at in a thread, and by the name that the program sees."""
    place = backend.on_behalf_of(Principal("a", grant=Grant(variables=("V*", "*V0000", "A"))))
    process = await place.start(wanting())
    await finished(process)

    with pytest.raises(Forbidden) as caught:
        await place.start(replace(wanting(), env={name: "b"}))

    assert (caught.value.what, caught.value.subject) == ("variable", name)
