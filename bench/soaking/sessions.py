"""Connections that break, and sessions that go on."""

from __future__ import annotations

import asyncio

from bench.soaking.peer import PATIENCE, Refusal, check
from bench.soaking.tale import Tale, digest
from bench.soaking.user import User


async def resume(user: User) -> None:
    """A process goes on while its client is away; who comes back gets every byte, once."""
    size = user.size()
    script = 'head -c 1000 "$0"; read go; head -c "$1" "$0"; cat'
    name = await user.start("sh", "-c", script, user.world.noise_path, str(size), pipeStdin=True)
    if user.chance.random() < 0.5:
        tale = user.peer.tale(name)
        await user.peer.until(lambda: len(tale.bytes("stdout")) == 1000, f"{name} said something")
    await user.write(name, b"go\n", "go")
    before = await come_back(user, name)
    check(await user.write(name, b"go\n", "go") == "accepted", f"{name}: the write again")
    check(await user.write(name, b"tail", "tail") == "accepted", f"{name}: another write")
    await user.peer.call("process/closeStdin", {"processId": name, "writeId": "end"})
    while not before.is_closed:
        params = {"processId": name, "afterSeq": before.after, "waitMs": 60_000}
        before.catch_up(await user.peer.call("process/read", params))
    # The end was told, too, and before the answer to the read; unless it came while nobody was there.
    told = user.peer.tales.pop(name)
    check(told.is_closed or not told.after, f"{name}: told up to {told.after}, not to its end")
    check(not (mistakes := before.mistakes + told.mistakes), f"{name}: {mistakes}")
    check(before.code == 0, f"{name}: exit code {before.code}")
    expected = digest(user.world.noise[:1000] + user.world.noise[:size] + b"tail")
    check(before.digest("stdout") == expected, f"{name}: {before.digest('stdout')}, not {expected}")


async def come_back(user: User, name: str) -> Tale:
    """Lose the connection, and resume the session on another; give the tale of the process until then."""
    old, session = user.peer, user.peer.session
    if user.chance.random() < 0.2:
        await _try_too_early(user, session)
    await user.leave(old)
    peer = await user.open()
    tale = old.tales.pop(name)
    user.swap(peer)
    # From the answer on the server tells events again, wherever it is.
    peer.tales[name] = Tale(name, is_middle=True)
    await user.join(peer, session)
    return tale


async def _try_too_early(user: User, session: str) -> None:
    """A session is not given away while its client shows signs of life, which it has a second for."""
    peer = await user.open()
    try:
        await peer.call("initialize", {"clientName": "soak", "resumeSessionId": session})
    except Refusal as refusal:
        check(refusal.code == -32010, f"a resume that came too early: {refusal}")
    await user.leave(peer)


async def take_over(user: User) -> None:
    """Another connection takes the session from one that is alive."""
    name = await user.start("cat", pipeStdin=True)
    tale = user.peer.tale(name)
    check(await user.write(name, b"before", "1") == "accepted", f"{name}: write")
    await user.peer.until(lambda: tale.bytes("stdout") == b"before", f"{name} gave it back")
    old, peer = user.peer, await user.open()
    params = {"sessionId": old.session, "clientName": "soak", "holdfast": 1}
    taken = await peer.call("session/takeOver", params)
    await peer.notify("initialized")
    check(taken["sessionId"] == old.session, f"took over {old.session} and got {taken['sessionId']}")
    said = await old.over()
    check(said == "1008 the session was resumed by another connection", f"the old connection was told {said}")
    peer.session = old.session
    user.swap(peer)
    check(await user.write(name, b" after", "2") == "accepted", f"{name}: write")
    await user.peer.call("process/closeStdin", {"processId": name})
    tale = await user.end(name)
    check(tale.bytes("stdout") == b"before after", f"{name}: {tale.data}")


async def close_session(user: User) -> None:
    """The end of a session takes everything in it; the connection can have another."""
    peer = user.peer
    names = [await user.start("sh", "-c", "setsid sleep 1000 & sleep 1000") for _ in range(2)]
    names.append(await user.start("sleep", "1000", tty=True))
    waiting = await peer.post("process/wait", {"processId": names[0], "waitMs": 60_000})
    closed = await peer.call("session/close")
    check(closed == {"survivors": []}, f"session/close: {closed}")
    async with asyncio.timeout(PATIENCE):
        await waiting
    for name in names:
        told = peer.tales.pop(name)
        check(not told.is_closed and not told.mistakes, f"{name}: told of an end in a closed session")
    await peer.refused(-32600, "client must call initialize", "process/list")
    old = peer.session
    await peer.refused(-32600, "unknown session", "initialize", {"clientName": "x", "resumeSessionId": old})
    await user.join(peer)
    check(peer.session != old, "a closed session came back")
    await peer.refused(-32600, "unknown process id", "process/read", {"processId": names[0]})


async def abandon(user: User) -> None:
    """Go away with processes running and never come back: the server has to tidy up."""
    await user.start("sh", "-c", "setsid sleep 1000 & sleep 1000")
    await user.start("cat", tty=True)
    name = await user.start("cat", "/dev/zero", window=1 << 16)
    await user.peer.post("process/read", {"processId": name, "afterSeq": 1 << 40, "waitMs": 60_000})
    await user.peer.post("process/start", user.start_params(user.name(), ["sleep", "1000"]))
    await user.leave(user.peer)
    user.forget()


async def slow_reader(user: User) -> None:
    """A client that does not read for a while makes its process wait, and loses nothing."""
    size = 6 << 20
    name = await user.start("head", "-c", str(size), "/dev/zero", retainBytes=1000)
    user.peer.listening.clear()
    await asyncio.sleep(user.chance.random())
    user.peer.listening.set()
    tale = await user.end(name)
    check(tale.digest("stdout") == digest(bytes(size)), f"{name}: {tale.digest('stdout')}")
