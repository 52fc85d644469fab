"""Processes that are written to, resized, signalled, ended and fenced in."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.soaking.peer import check
from bench.soaking.tale import digest
from bench.soaking.user import User


async def echo(user: User) -> None:
    """Bytes to a program and back, with every write sent again some of the time."""
    name = await user.start("cat", pipeStdin=True)
    sent = bytearray()
    for number in range(user.chance.randrange(1, 8)):
        data = user.chance.randbytes(user.size(1 << 17))
        sent += data
        for _ in range(user.chance.choice((1, 1, 3))):
            check(await user.write(name, data, str(number)) == "accepted", f"{name}: write {number}")
    for _ in range(2):
        closed = await user.peer.call("process/closeStdin", {"processId": name, "writeId": "end"})
        check(closed == {"status": "accepted"}, f"{name}: closeStdin gave {closed}")
    tale = await user.end(name)
    check(tale.digest("stdout") == digest(sent), f"{name}: {tale.digest('stdout')}, not {digest(sent)}")
    check(await user.write(name, b"x", "0") == "accepted", f"{name}: an old write id is forgotten")


async def pipelined(user: User) -> None:
    """Requests right behind a start wait for it, and are handled in their order."""
    name, peer = user.name(), user.peer
    start = await peer.post("process/start", user.start_params(name, ["cat"], pipeStdin=True))
    writes = [
        await peer.post("process/write", {"processId": name, "chunk": "YWJj", "writeId": str(number)})
        for number in range(10)
    ]
    close = await peer.post("process/closeStdin", {"processId": name})
    await peer.result(start)
    for answer in [*writes, close]:
        check(await peer.result(answer) == {"status": "accepted"}, f"{name}: a pipelined request")
    tale = await user.end(name)
    check(tale.bytes("stdout") == b"abc" * 10, f"{name}: {tale.data}")


async def terminal(user: User) -> None:
    """A terminal has the size it was given last."""
    rows, cols = user.chance.randrange(2, 200), user.chance.randrange(2, 200)
    options = {"tty": True, "size": {"rows": 7, "cols": 9}}
    name = await user.start("sh", "-c", "stty -echo; stty size; read line; stty size; exit 5", **options)
    tale = user.peer.tale(name)
    await user.peer.until(lambda: tale.bytes("pty") == b"7 9\r\n", f"{name} told its size")
    resized = await user.peer.call(
        "process/resize", {"processId": name, "size": {"rows": rows, "cols": cols}}
    )
    check(resized == {}, f"{name}: resize gave {resized}")
    check(await user.write(name, b"\n", "1") == "accepted", f"{name}: write")
    tale = await user.end(name, 5)
    check(tale.bytes("pty") == b"7 9\r\n%d %d\r\n" % (rows, cols), f"{name}: {tale.data}")
    await user.peer.refused(
        -32602, "at least 1", "process/resize", {"processId": name, "size": {"rows": 0, "cols": 1}}
    )


async def raw_terminal(user: User) -> None:
    """Every byte goes through a terminal that was told to leave them alone."""
    name = await user.start("sh", "-c", "stty raw -echo; printf ready; exec cat", tty=True)
    tale = user.peer.tale(name)
    await user.peer.until(lambda: tale.bytes("pty") == b"ready", f"{name} was ready")
    data = user.chance.randbytes(user.size(1 << 14))
    check(await user.write(name, data, "1") == "accepted", f"{name}: write")
    await user.peer.until(lambda: len(tale.bytes("pty")) >= len(data) + 5, f"{name} gave it back")
    ended = await user.peer.call("process/terminate", {"processId": name})
    check(ended["running"] and not ended["survivors"], f"{name}: terminate gave {ended}")
    tale = await user.end(name, 137)
    check(tale.digest("pty") == digest(b"ready" + data), f"{name}: {tale.digest('pty')}")


async def signals(user: User) -> None:
    """A signal that is caught, and one that is not."""
    script = 'trap "echo got; exit 7" USR1; sleep 1000 >/dev/null 2>&1 & echo up; wait'
    name = await user.start("sh", "-c", script)
    tale = user.peer.tale(name)
    await user.peer.until(lambda: tale.bytes("stdout") == b"up\n", f"{name} was up")
    check(await user.peer.call("process/signal", {"processId": name, "signal": "user1"}) == {}, "signal")
    tale = await user.end(name, 7)
    check(tale.bytes("stdout") == b"up\ngot\n", f"{name}: {tale.data}")

    signal, code = user.chance.choice((("interrupt", 130), ("kill", 137), ("quit", 131), ("hangup", 129)))
    name = await user.start("sleep", "1000", tty=user.chance.random() < 0.3)
    for pause in ("stop", "continue"):
        await user.peer.call("process/signal", {"processId": name, "signal": pause})
    tree = user.chance.choice((True, False, None))
    await user.peer.call("process/signal", {"processId": name, "signal": signal, "tree": tree})
    tale = await user.end(name, code)
    check(tale.end["outcome"]["kind"] == "signal", f"{name}: {tale.end}")
    nobody = {"processId": user.name(), "signal": signal}
    check(await user.peer.call("process/signal", nobody) == {}, "a signal to nobody")


async def grace(user: User) -> None:
    """A program that tidies up when it is asked to, and one that does not."""
    script = 'trap "echo bye; exit 0" TERM; sleep 1000 >/dev/null 2>&1 & echo up; wait'
    name = await user.start("sh", "-c", script)
    tale = user.peer.tale(name)
    await user.peer.until(lambda: tale.bytes("stdout") == b"up\n", f"{name} was up")
    ended = await user.peer.call("process/terminate", {"processId": name, "graceMs": 20_000})
    check(ended == {"running": True, "survivors": [], "treeExact": True}, f"{name}: {ended}")
    check(tale.is_closed, f"{name}: the answer to terminate came before the end was told")
    tale = await user.end(name, 0)
    check(tale.bytes("stdout") == b"up\nbye\n", f"{name}: {tale.data}")
    check(tale.end["outcome"]["kind"] == "terminated", f"{name}: {tale.end}")

    name = await user.start("sh", "-c", 'trap "" TERM; echo up; sleep 1000')
    tale = user.peer.tale(name)
    await user.peer.until(lambda: tale.bytes("stdout") == b"up\n", f"{name} was up")
    await user.peer.call("process/terminate", {"processId": name, "graceMs": 30})
    await user.end(name, 137)


async def tree(user: User) -> None:
    """An end takes those who have left, too."""
    name = await user.start("sh", "-c", "setsid sleep 1000 & (setsid sleep 1000 &) ; echo up; wait")
    tale = user.peer.tale(name)
    await user.peer.until(lambda: tale.bytes("stdout") == b"up\n", f"{name} was up")
    ended = await user.peer.call("process/terminate", {"processId": name})
    check(ended == {"running": True, "survivors": [], "treeExact": True}, f"{name}: {ended}")
    await user.end(name, 137)


async def cancelled(user: User) -> None:
    """A terminate right behind a start: the start is given up, or the process ended."""
    name, peer = user.name(), user.peer
    start = await peer.post("process/start", user.start_params(name, ["sleep", "1000"]))
    ended = await peer.call("process/terminate", {"processId": name})
    answer = await asyncio.wait_for(start, 60)
    if "error" in answer:
        check("start was cancelled" in answer["error"]["message"], f"{name}: {answer}")
        return
    check(ended["running"], f"{name}: {ended} and {answer}")
    await user.end(name, 137)


def policy(*roots: str) -> dict[str, Any]:
    """Everything may be read, and the roots written."""
    places: list[tuple[dict[str, str], str]] = [({"kind": "root"}, "read")]
    if roots:
        places.append(({"kind": "project_roots"}, "write"))
    entries = [{"path": {"type": "special", "value": value}, "access": access} for value, access in places]
    return {
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "cwd": "file:///",
        "workspaceRoots": [f"file://{root}" for root in roots],
        "windowsSandboxLevel": "disabled",
    }


async def sandboxed(user: User) -> None:
    """What a sandbox allows works, and what it refuses is told."""
    if not user.world.has_sandbox:
        return
    script = 'cat; echo "$1" > inside && cat inside'
    # The same for all: a server keeps what it made of a policy for the next one.
    work = str(user.world.directory)
    options = {"sandbox": policy(work), "pipeStdin": True}
    name = await user.start("sh", "-c", script, "sh", "hello", **options)
    check(await user.write(name, b"to a sandbox\n", "1") == "accepted", f"{name}: write")
    await user.peer.call("process/closeStdin", {"processId": name})
    tale = await user.end(name)
    check(tale.bytes("stdout") == b"to a sandbox\nhello\n", f"{name}: {tale.data}")

    name = await user.start("sh", "-c", "echo x > inside", sandbox=policy())
    tale = await user.end(name, None)
    check(tale.code and tale.end["sandboxDenied"], f"{name}: {tale.end}")

    name = await user.start("sh", "-c", "setsid sleep 1000 & sleep 1000", sandbox=policy(work))
    ended = await user.peer.call("process/terminate", {"processId": name})
    check(not ended["survivors"], f"{name}: {ended}")
    await user.end(name, 137)
