"""Processes from their start to their end, by themselves."""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from typing import Any

from bench.soaking.peer import PATIENCE, check
from bench.soaking.tale import Tale
from bench.soaking.user import NOISE_BYTES, User

_SCRIPT = 'head -c "$1" "$0"; head -c "$2" "$0" >&2; exit "$3"'


async def run(user: User) -> None:
    """A program that writes to both outputs; then everything that can be asked about the past."""
    out, err, code = user.size(), user.size(), user.chance.randrange(256)
    name = await user.start("sh", "-c", _SCRIPT, user.world.noise_path, str(out), str(err), str(code))
    tale = await user.end(name, code)
    check(tale.digest("stdout") == user.noise(out), f"{name}: stdout is {tale.digest('stdout')}")
    check(tale.digest("stderr") == user.noise(err), f"{name}: stderr is {tale.digest('stderr')}")
    await _ask_about_the_past(user, name, code, tale.after)


async def _ask_about_the_past(user: User, name: str, code: int, last: int) -> None:
    peer = user.peer
    page = await peer.call("process/read", {"processId": name, "afterSeq": last - 2, "waitMs": 60_000})
    check(page["closed"] and page["nextSeq"] == last + 1, f"{name}: read gave {page}")
    waited = await peer.call("process/wait", {"processId": name, "waitMs": 60_000})
    check(waited["exitCode"] == code and waited["closed"], f"{name}: wait gave {waited}")
    ended = await peer.call("process/terminate", {"processId": name})
    check(ended == {"running": False, "survivors": [], "treeExact": True}, f"{name}: terminate gave {ended}")
    check(await user.write(name, b"late", "late") == "stdinClosed", f"{name} took a late write")
    listed = [each for each in (await peer.call("process/list"))["processes"] if each["processId"] == name]
    check(len(listed) == 1 and listed[0]["state"] == "closed", f"{name} is listed as {listed}")
    await peer.refused(
        -32600, "already exists", "process/start", user.start_params(name, ["true"], idempotent=False)
    )


async def page_through(user: User) -> None:
    """Output that is read page by page is what was told."""
    size = user.size()
    name = await user.start("head", "-c", str(size), user.world.noise_path)
    tale = await user.end(name)
    got, after = bytearray(), 0
    while after < tale.after:
        params = {"processId": name, "afterSeq": after, "maxBytes": user.chance.choice((1, 5000, 1 << 18))}
        page = await user.peer.call("process/read", params)
        for chunk in page["chunks"]:
            got += base64.b64decode(chunk["chunk"])
        check(page["nextSeq"] - 1 > after, f"{name}: no progress from {after}: {page['nextSeq']}")
        after = page["nextSeq"] - 1
    check(got == tale.bytes("stdout") == user.world.noise[:size], f"{name}: {len(got)} of {size} bytes")


async def burst(user: User) -> None:
    """Several at once, on one connection."""
    names = [await user.start("sh", "-c", f"echo {number}; exit {number}") for number in range(5)]
    for number, name in enumerate(names):
        tale = await user.end(name, number)
        check(tale.bytes("stdout") == b"%d\n" % number, f"{name}: {tale.data}")


async def long_poll(user: User) -> None:
    """A read that waits is answered by output, and by the end; a status request does not wait behind it."""
    name = await user.start("cat", pipeStdin=True)
    polled = await user.peer.post("process/read", {"processId": name, "afterSeq": 0, "waitMs": 60_000})
    waited = await user.peer.post("process/wait", {"processId": name, "waitMs": 60_000})
    short = await user.peer.call("process/wait", {"processId": name, "waitMs": 1})
    check(not short["exited"], f"{name}: {short}")
    await status(user)
    check(await user.write(name, b"ping", "1") == "accepted", f"{name}: write")
    page = await user.peer.result(polled)
    check([base64.b64decode(chunk["chunk"]) for chunk in page["chunks"]] == [b"ping"], f"{name}: {page}")
    await user.peer.call("process/closeStdin", {"processId": name})
    check((await user.peer.result(waited))["exitCode"] == 0, f"{name}: wait")
    await user.end(name)


async def status(user: User) -> None:
    """Small questions."""
    check(await user.peer.call("environment/status") == {"status": "ready"}, "environment/status")
    if user.chance.random() < 0.2:
        info = await user.peer.call("environment/info")
        check(info["platformOs"] == "linux", f"environment/info: {info}")
    if user.chance.random() < 0.2:
        await user.peer.call("process/list")


async def failing(user: User) -> None:
    """Starts that must be refused, with the right words, and whose names stay free."""
    name = user.name()

    def params(*argv: str, **options: Any) -> dict[str, Any]:
        return user.start_params(name, [*argv], **options)

    missing = await user.peer.refused(-32603, "os error 2", "process/start", params("/no/such/program"))
    check(missing.data["fault"] == "program", f"{missing.data}")
    nowhere = await user.peer.refused(-32603, "os error 2", "process/start", params("true", cwd="file:///no"))
    check(nowhere.data["fault"] == "directory", f"{nowhere.data}")
    await user.peer.refused(-32603, "No viable candidates", "process/start", params("nosuch", tty=True))
    await user.peer.refused(-32602, "argv must not be empty", "process/start", params())
    await user.peer.refused(-32603, "nul byte", "process/start", params("echo", "a\0b"))
    await user.peer.refused(
        -32602, "size needs", "process/start", params("true", size={"rows": 1, "cols": 1})
    )
    unknown = user.name()
    await user.peer.refused(-32600, "unknown process id", "process/read", {"processId": unknown})
    check(await user.write(unknown, b"x", "1") == "unknownProcess", "a write to nobody")
    check(not user.peer.tales, f"nothing ran, and something was told: {list(user.peer.tales)}")
    await user.peer.call("process/start", params("true"))
    await user.end(name)


async def limited(user: User) -> None:
    """Ends that come from a limit."""
    choices: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
        ("timeout", ("sleep", "1000"), {"timeoutMs": 50}),
        ("timeout", ("sleep", "1000"), {"timeoutMs": 50, "graceMs": 5000}),
        ("idleTimeout", ("sh", "-c", "echo; sleep 1000"), {"idleTimeoutMs": 200}),
        ("outputLimit", ("cat", "/dev/zero"), {"outputBytesLimit": 100_000}),
        ("exit", ("sh", "-c", "ulimit -n"), {"limits": {"openFiles": 33}}),
        ("exit", ("true",), {"limits": {"memoryBytes": 1 << 28, "processes": 8, "cpuSeconds": 60}}),
    )
    kind, argv, options = user.chance.choice(choices)
    name = await user.start(*argv, **options)
    tale = await user.end(name, None)
    check(tale.end["outcome"]["kind"] == kind, f"{name}: {tale.end}")
    if "ulimit -n" in argv:
        check(tale.bytes("stdout") == b"33\n", f"{name}: {tale.data}")


async def window(user: User) -> None:
    """A program is read no further than its window allows; acknowledged, it loses nothing."""
    size, room = NOISE_BYTES // 2 + user.size(NOISE_BYTES // 2), 1 << user.chance.randrange(12, 18)
    name = await user.start("head", "-c", str(size), user.world.noise_path, window=room)
    tale = user.peer.tale(name)
    way, given_up = user.chance.choice(("ack", "ack", "read", "release")), False
    while not tale.is_closed and not given_up:
        seen = tale.after
        if way == "read":
            await user.peer.call("process/read", {"processId": name, "afterSeq": seen, "maxBytes": 1})
        else:
            given_up = way == "release" and seen > 3
            await user.peer.call("process/ack", {"processId": name, "seq": seen, "release": given_up})
        await user.peer.until(partial(_went_on, tale, seen), f"{name} went on")
    tale = await user.end(name)
    check(tale.digest("stdout") == user.noise(size), f"{name}: {tale.digest('stdout')}, not {size}")


def _went_on(tale: Tale, seen: int) -> bool:
    return tale.is_closed or tale.after > seen


async def again(user: User) -> None:
    """A start that is sent twice starts once."""
    name = user.name()
    params = user.start_params(name, ["cat"], pipeStdin=True, idempotent=True)
    first, second = [await user.peer.post("process/start", params) for _ in range(2)]
    started, found = await user.peer.result(first), await user.peer.result(second)
    check((started["existing"], found["existing"]) == (False, True), f"{name}: {started}, {found}")
    check(started["pid"] == found["pid"], f"{name}: two processes: {started}, {found}")
    await user.peer.refused(-32600, "already exists", "process/start", {**params, "argv": ["true"]})
    await user.peer.call("process/closeStdin", {"processId": name})
    await user.end(name)


async def held_open(user: User) -> None:
    """Somebody holds the output open; the end is told all the same."""
    name = await user.start("sh", "-c", "sleep 2 & echo main", drainMs=50)
    user.peer.tale(name).may_be_late = True
    tale = await user.end(name)
    check(tale.bytes("stdout") == b"main\n", f"{name}: {tale.data}")


async def kept(user: User) -> None:
    """A process that belongs to nobody: whoever comes first starts it, and everybody can use it.

    There are few names, because a server remembers such a process for an hour.
    """
    name = f"kept{user.chance.randrange(8)}"
    options = {"pipeStdin": True, "keep": True, "idempotent": True, "retainBytes": 1024}
    await user.peer.call("process/start", user.start_params(name, ["cat"], cwd="file:///", **options))
    user.peer.tales.pop(name)
    listed = (await user.peer.call("process/list"))["processes"]
    found = [each for each in listed if each["processId"] == name and each.get("kept")]
    check(len(found) == 1 and found[0]["state"] == "running", f"{name} is listed as {found}")
    mark, said, after = user.name().encode(), b"", found[0]["nextSeq"] - 1
    check(await user.write(name, mark, mark.decode()) == "accepted", f"{name}: write")
    async with asyncio.timeout(PATIENCE):
        while mark not in said:
            params = {"processId": name, "afterSeq": after, "waitMs": 60_000}
            page = await user.peer.call("process/read", params)
            said += b"".join(base64.b64decode(chunk["chunk"]) for chunk in page["chunks"])
            after = page["nextSeq"] - 1
