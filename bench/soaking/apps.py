"""The app dialects: processes and commands that end with their connection."""

from __future__ import annotations

import base64
from typing import Any

from bench.soaking.peer import Message, check
from bench.soaking.tale import Tale, digest
from bench.soaking.user import PATH, User

_SCRIPT = 'head -c "$1" "$0"; head -c "$2" "$0" >&2; exit "$3"'
_PATIENT: Message = {"timeoutMs": None}
"""The default would be over on a machine that has much else to do."""

_FREE = {"type": "dangerFullAccess"}


async def _spawn(user: User, *command: str, **options: Any) -> str:
    name = user.name()
    params = {"command": command, "processHandle": name, "cwd": str(user.directory), **_PATIENT, **options}
    answer = await user.peer.call("process/spawn", params)
    check(answer == {}, f"{name}: spawn gave {answer}")
    return name


async def _write(user: User, name: str, data: bytes, *, close: bool = False) -> None:
    params = {"processHandle": name, "deltaBase64": base64.b64encode(data).decode(), "closeStdin": close}
    check(await user.peer.call("process/writeStdin", params) == {}, f"{name}: writeStdin")


async def spawn(user: User) -> None:
    """Output that is told as it comes, to its last byte."""
    out, err, code = user.size(), user.size(), user.chance.randrange(124)
    arguments = (user.world.noise_path, str(out), str(err), str(code))
    options = {"streamStdoutStderr": True, "outputBytesCap": None}
    name = await _spawn(user, "sh", "-c", _SCRIPT, *arguments, **options)
    tale = await user.end(name, code)
    check(tale.digest("stdout") == user.noise(out), f"{name}: stdout is {tale.digest('stdout')}")
    check(tale.digest("stderr") == user.noise(err), f"{name}: stderr is {tale.digest('stderr')}")
    check(tale.end["stdout"] == tale.end["stderr"] == "", f"{name}: {tale.end}")


async def spawn_buffered(user: User) -> None:
    """Output that comes with the end, up to a cap."""
    cap = user.chance.choice((3, 100))
    name = await _spawn(user, "sh", "-c", "printf abcdef; printf ab >&2", outputBytesCap=cap)
    tale = await user.end(name)
    said = (tale.end["stdout"], tale.end["stderr"], tale.end["stdoutCapReached"])
    check(said == ("abcdef"[:cap], "ab", cap == 3) and not tale.data, f"{name}: {tale.end}")


async def spawn_echo(user: User) -> None:
    """Bytes there and back."""
    name = await _spawn(user, "cat", streamStdin=True, streamStdoutStderr=True)
    sent = bytearray()
    for _ in range(user.chance.randrange(1, 5)):
        data = user.chance.randbytes(user.size(1 << 16))
        sent += data
        await _write(user, name, data)
    await _write(user, name, b"end", close=True)
    tale = await user.end(name)
    check(tale.digest("stdout") == digest(sent + b"end"), f"{name}: {tale.digest('stdout')}")


async def spawn_terminal(user: User) -> None:
    """A terminal with another size."""
    options = {"tty": True, "size": {"rows": 7, "cols": 9}, "env": {"PATH": PATH}}
    name = await _spawn(user, "sh", "-c", "stty -echo; stty size; read x; stty size", **options)
    tale = user.peer.tale(name)
    await user.peer.until(lambda: tale.bytes("stdout") == b"7 9\r\n", f"{name} told its size")
    size = {"rows": 33, "cols": 44}
    await user.peer.refused(
        -32602, "", "process/resizePty", {"processHandle": name, "size": {"rows": 0, "cols": 1}}
    )
    check(await user.peer.call("process/resizePty", {"processHandle": name, "size": size}) == {}, "resizePty")
    await _write(user, name, b"\n")
    tale = await user.end(name)
    check(tale.bytes("stdout") == b"7 9\r\n33 44\r\n", f"{name}: {tale.data}")


async def spawn_ended(user: User) -> None:
    """Killed, or over its time; and the names that are taken meanwhile."""
    name = await _spawn(user, "sh", "-c", "setsid sleep 1000 & sleep 1000")
    params = {"command": ["true"], "processHandle": name, "cwd": "/"}
    await user.peer.refused(-32600, "duplicate active", "process/spawn", params)
    check(await user.peer.call("process/kill", {"processHandle": name}) == {}, f"{name}: kill")
    await user.end(name, 137)
    await user.peer.refused(-32600, "no active process", "process/kill", {"processHandle": name})
    name = await _spawn(user, "sleep", "1000", timeoutMs=50)
    await user.end(name, 124)


async def spawn_failing(user: User) -> None:
    """What cannot be started."""
    params = {"command": ["/no/such/program"], "processHandle": user.name(), "cwd": "/"}
    await user.peer.refused(-32603, "failed to spawn", "process/spawn", params)
    await user.peer.refused(-32600, "must not be empty", "process/spawn", {**params, "command": []})
    await user.peer.refused(-32600, "missing field", "process/spawn", {"command": ["true"]})
    await user.peer.refused(-32600, "unknown variant", "no/such/method")
    await user.peer.refused(
        -32600, "Already initialized", "initialize", {"clientInfo": {"name": "x", "version": "1"}}
    )


async def command(user: User) -> None:
    """A command and its answer."""
    code = user.chance.randrange(124)
    script = f"printf out; printf err >&2; exit {code}"
    params = {"command": ["sh", "-c", script], "sandboxPolicy": _FREE, "disableTimeout": True}
    answer = await user.peer.call("command/exec", params)
    check(answer == {"exitCode": code, "stdout": "out", "stderr": "err"}, f"command/exec: {answer}")
    timeout = {"command": ["sleep", "1000"], "timeoutMs": 50, "sandboxPolicy": _FREE}
    answer = await user.peer.call("command/exec", timeout)
    check(answer["exitCode"] == 124, f"command/exec: {answer}")


async def sandboxed_command(user: User) -> None:
    """A command that comes without a policy may change nothing."""
    if not user.world.has_sandbox:
        return
    command = ["sh", "-c", f"> {user.directory}/x; echo $?"]
    answer = await user.peer.call("command/exec", {"command": command, "disableTimeout": True})
    check(answer["stdout"] not in ("", "0\n"), f"command/exec: {answer}")


def _ended(user: User, name: str) -> Tale:
    tale = user.peer.tales.pop(name)
    check(not tale.mistakes, f"{name}: {tale.mistakes}")
    return tale


async def command_followed(user: User) -> None:
    """A command that is written to and resized while it runs."""
    name, peer = user.name(), user.peer
    params = {
        "command": ["sh", "-c", "stty -echo; stty size; read x; stty size; exit 3"],
        "processId": name,
        "tty": True,
        "size": {"rows": 7, "cols": 9},
        "disableTimeout": True,
        "sandboxPolicy": _FREE,
    }
    answer = await peer.post("command/exec", params)
    tale = peer.tale(name)
    await peer.until(lambda: tale.bytes("stdout") == b"7 9\r\n", f"{name} told its size")
    size = {"rows": 20, "cols": 30}
    check(await peer.call("command/exec/resize", {"processId": name, "size": size}) == {}, f"{name}: resize")
    check(
        await peer.call("command/exec/write", {"processId": name, "deltaBase64": "Cg=="}) == {},
        f"{name}: write",
    )
    result = await peer.result(answer)
    check(result == {"exitCode": 3, "stdout": "", "stderr": ""}, f"{name}: {result}")
    check(_ended(user, name).bytes("stdout") == b"7 9\r\n20 30\r\n", f"{name}: {tale.data}")


async def command_terminated(user: User) -> None:
    """A command that streams until it is told to stop."""
    name, peer = user.name(), user.peer
    params = {
        "command": ["sh", "-c", "echo up; exec cat"],
        "processId": name,
        "streamStdin": True,
        "streamStdoutStderr": True,
        "sandboxPolicy": _FREE,
        "disableTimeout": True,
    }
    answer = await peer.post("command/exec", params)
    # Right behind it: waits until the command runs.
    written = await peer.call("command/exec/write", {"processId": name, "deltaBase64": "aGk="})
    check(written == {}, f"{name}: write gave {written}")
    tale = peer.tale(name)
    await peer.until(lambda: tale.bytes("stdout") == b"up\nhi", f"{name} gave it back")
    check(await peer.call("command/exec/terminate", {"processId": name}) == {}, f"{name}: terminate")
    result = await peer.result(answer)
    check(result["exitCode"] == 137, f"{name}: {result}")
    _ended(user, name)
    await peer.refused(-32600, "no active command/exec", "command/exec/terminate", {"processId": name})


async def drop(user: User) -> None:
    """Go away with things running: all of it must end now."""
    await _spawn(user, "sh", "-c", "setsid sleep 1000 & sleep 1000")
    await _spawn(user, "cat", tty=True)
    await _spawn(user, "cat", "/dev/zero", streamStdoutStderr=True, outputBytesCap=None)
    hanging = {"command": ["sleep", "1000"], "disableTimeout": True, "sandboxPolicy": _FREE}
    await user.peer.post("command/exec", hanging)
    await user.leave(user.peer)
    user.forget()
