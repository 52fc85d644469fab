"""The system refuses one call: of the server, its fork server, a shim, or a child that becomes a command.

Whichever it is, every request is answered once, nothing hangs, nothing is left, and the next start works.
``HOLDFAST_LONG=1`` tries every call of a cycle with every error at several positions; without it a part
of them, another one each time.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.backends import LONG
from tests.fakes.injection import Injection, Role, Scene, errors_of, strerror, why_not
from tests.fakes.injection_durable import CALLS, DurableScene
from tests.fakes.injection_durable import ERRORS as DURABLE_ERRORS
from tests.fakes.mortal import mortal_at
from tests.fakes.server import SETTLE, program_at

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it can")

POSITIONS = 5
"""The first so many calls of a kind, and the last."""

SAMPLE = 3
"""Injections per role, with pipes and with a terminal."""

KNOWN = {
    "server epoll_ctl ENOMEM": 2,
    "server read ENOMEM": 1,
    "server ioctl ENOMEM": 7,
    "shim sendto ENOMEM": 2,
    "shim openat ENFILE": 1,
    "shim recvmsg ENOMEM": 1,
    "fork_server clone EAGAIN": 1,
    "start execve ENOMEM": 1,
}
"""Calls whose failure once lost a start or an exit, or left somebody behind."""


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    with program_at("--durability", "off") as (program, url):
        made = Scene(program, url)
        await made.open()
        yield made
        await made.close()


def judge(injection: Injection, said: str) -> None:
    """A start that is refused names the cause."""
    assert not said.startswith("refused") or strerror(injection.error) in said, (injection, said)


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_what_once_went_wrong_at_a_failing_call_goes_well(scene: Scene) -> None:
    """Each with pipes; the terminal's way is the same."""
    for what, position in KNOWN.items():
        role, call, error = what.split()
        injection = Injection(Role(role), call, error, position)
        judge(injection, await scene.inject(injection, tty=False))


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(7200 if LONG else 60)
@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
@pytest.mark.parametrize("role", Role, ids=lambda role: role.value)
async def test_any_call_may_fail(scene: Scene, role: Role, tmp_path: Path, *, tty: bool) -> None:
    """The calls are those that a cycle makes when nothing fails."""
    calls = await scene.calls(role, tmp_path / "log", tty=tty)
    product = [
        Injection(role, call, error, position)
        for call, count in calls.items()
        for error in errors_of(call)
        for position in sorted({*range(1, min(count, POSITIONS) + 1), count})
    ]
    assert product
    told = Counter[str]()
    for injection in product if LONG else random.sample(product, min(SAMPLE, len(product))):
        try:
            said = await scene.inject(injection, tty=tty)
            judge(injection, said)
        except BaseException as error:
            error.add_note(f"at {injection}")
            raise
        told[said] += 1
    logging.getLogger(__name__).info("%s: %d of %d: %s", role.value, told.total(), len(product), told)


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(3600 if LONG else 120)
@pytest.mark.parametrize(("call", "name"), [(call, name) for call, names in CALLS.items() for name in names])
async def test_any_call_that_keeps_durable_processes_may_fail(call: str, name: str) -> None:
    """Nothing is lost and nobody is busy for ever; what cannot be started is refused."""
    product = [(error, position) for error in DURABLE_ERRORS for position in (1, 2, 5)]
    with mortal_at() as (program, url):
        scene = DurableScene(program, url)
        assert await scene.work() == "done"
        await asyncio.sleep(SETTLE)
        for error, position in product if LONG else random.sample(product, 2):
            try:
                said = await scene.inject(name, call, error, position)
            except BaseException as trouble:
                trouble.add_note(f"at {name}-{call}-{error}-{position}")
                raise
            logging.getLogger(__name__).info("%s-%s-%s-%d: %s", name, call, error, position, said)
            assert said == "done" or (said.startswith("refused") and call in ("fallocate", "sendmsg", "fork"))
