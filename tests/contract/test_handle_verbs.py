"""What programs ask of a process beyond its life: near and far alike."""

from __future__ import annotations

import uuid

from holdfast import PIPE, Handle, Host, Inspection, Size


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


async def until_it_waits(handle: Handle) -> Inspection:
    found = await handle.inspect()
    while not found.waiting_for_input:
        found = await handle.inspect()
    return found


async def test_a_process_says_that_it_waits_for_input(host: Host) -> None:
    """A harness need not guess from silence."""
    handle = await host.start(["cat"], stdin=PIPE)

    found = await until_it_waits(handle)

    assert found == Inspection(waiting_for_input=True)


async def test_the_facts_of_a_terminal_come_with_it(host: Host) -> None:
    handle = await host.start(sh("stty -echo; read secret"), terminal=Size())

    found = await until_it_waits(handle)

    assert found == Inspection(waiting_for_input=True, echo=False, canonical=True)


async def test_a_list_says_who_waits_if_it_is_asked(host: Host) -> None:
    """And nobody is looked at otherwise."""
    names = [f"{word}-{uuid.uuid4()}" for word in ("waits", "sleeps", "ended")]
    waits = await host.start(["cat"], stdin=PIPE, name=names[0], keep=True)
    sleeps = await host.start(["sleep", "1000"], stdin=PIPE, name=names[1], keep=True)
    ended = await host.start(["true"], name=names[2], keep=True)
    await ended.wait()
    await until_it_waits(waits)
    while (await sleeps.inspect()).waiting_for_input is not False:
        pass  # It is still a shim that is about to become this program.

    looked = {each.name: each.waiting_for_input for each in await host.processes(inspect=True)}
    plain = {each.name: each.waiting_for_input for each in await host.processes()}

    assert [looked[name] for name in names] == [True, False, None]
    assert [plain[name] for name in names] == [None] * 3
