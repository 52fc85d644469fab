"""Every method for files, in a directory of the user's own."""

from __future__ import annotations

import base64

from bench.soaking.control import policy
from bench.soaking.peer import Message, check
from bench.soaking.tale import digest
from bench.soaking.user import User

_WALK = {"maxDepth": 8, "maxDirectories": 100, "maxEntries": 1000, "followDirectorySymlinks": False}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def whole_files(user: User) -> None:
    """Written, looked at, copied, listed, read and removed."""
    peer, root = user.peer, f"{user.directory.as_uri()}/{user.name()}"
    data = user.chance.randbytes(user.size(1 << 19))
    check(await peer.call("fs/createDirectory", {"path": f"{root}/a/b"}) == {}, "fs/createDirectory")
    await peer.refused(
        -32603, "os error 17", "fs/createDirectory", {"path": f"{root}/a/b", "recursive": False}
    )
    written = await peer.call("fs/writeFile", {"path": f"{root}/a/one", "dataBase64": _encoded(data)})
    check(written == {}, f"fs/writeFile: {written}")
    facts = await peer.call("fs/getMetadata", {"path": f"{root}/a/one"})
    check(facts["isFile"] and facts["size"] == len(data), f"fs/getMetadata: {facts}")
    copy = {"sourcePath": f"{root}/a", "destinationPath": f"{root}/c"}
    await peer.refused(-32600, "requires recursive", "fs/copy", {**copy, "recursive": False})
    check(await peer.call("fs/copy", {**copy, "recursive": True}) == {}, "fs/copy")
    read = base64.b64decode((await peer.call("fs/readFile", {"path": f"{root}/c/one"}))["dataBase64"])
    check(digest(read) == digest(data), f"fs/readFile: {digest(read)}, not {digest(data)}")
    entries = (await peer.call("fs/readDirectory", {"path": f"{root}/c"}))["entries"]
    check({entry["fileName"] for entry in entries} == {"b", "one"}, f"fs/readDirectory: {entries}")
    walked = await peer.call("fs/walk", {"path": root, "options": _WALK})
    names = [entry["path"].removeprefix(root) for entry in walked["entries"]]
    check(names == ["/a", "/c", "/a/b", "/a/one", "/c/b", "/c/one"], f"fs/walk: {names}")
    real = await peer.call("fs/canonicalize", {"path": f"{root}/a/../c/./one"})
    check(real["path"] == f"{root}/c/one", f"fs/canonicalize: {real}")
    await _refusals(user, root)
    await peer.refused(-32603, "os error 39", "fs/remove", {"path": root, "recursive": False})
    check(await peer.call("fs/remove", {"path": root}) == {}, "fs/remove")
    await peer.refused(-32004, "os error 2", "fs/getMetadata", {"path": root})


async def _refusals(user: User, root: str) -> None:
    peer = user.peer
    await peer.refused(-32004, "os error 2", "fs/readFile", {"path": f"{root}/none"})
    await peer.refused(-32600, "is not a file", "fs/readFile", {"path": f"{root}/a"})
    await peer.refused(
        -32600, "base64", "fs/writeFile", {"path": f"{root}/a/one", "dataBase64": "not base64!"}
    )
    await peer.refused(-32602, "relative URL", "fs/readFile", {"path": "no/uri"})
    if user.world.has_sandbox:
        params: Message = {"path": f"{root}/a/two", "dataBase64": "", "sandbox": policy()}
        await peer.refused(-32603, "os error 30", "fs/writeFile", params)
        params["sandbox"] = policy(str(user.world.directory))
        check(await peer.call("fs/writeFile", params) == {}, "fs/writeFile in a sandbox")


async def handles(user: User) -> None:
    """Files that are open for a while; some stay open until the connection ends."""
    peer, path = user.peer, f"{user.directory.as_uri()}/{user.name()}"
    writer, reader = user.name(), user.name()
    check(
        await peer.call("fs/open", {"handleId": writer, "path": path, "mode": "replace"})
        == {"handleId": writer},
        "fs/open",
    )
    await peer.refused(
        -32600, "already exists", "fs/open", {"handleId": writer, "path": path, "mode": "replace"}
    )
    blocks = [user.chance.randbytes(1 + user.size(1 << 16)) for _ in range(3)]
    offset = 0
    for block in blocks:
        params = {"handleId": writer, "offset": offset, "chunk": _encoded(block)}
        check(await peer.call("fs/writeBlock", params) == {}, "fs/writeBlock")
        offset += len(block)
    check(await peer.call("fs/close", {"handleId": writer}) == {}, "fs/close")
    await peer.refused(
        -32004, "unknown file handle", "fs/writeBlock", {"handleId": writer, "offset": 0, "chunk": "AA=="}
    )
    await peer.call("fs/open", {"handleId": reader, "path": path})
    got, eof = bytearray(), False
    while not eof:
        block_params = {"handleId": reader, "offset": len(got), "len": 50_000}
        answer = await peer.call("fs/readBlock", block_params)
        got += base64.b64decode(answer["chunk"])
        eof = answer["eof"]
    check(digest(got) == digest(b"".join(blocks)), f"fs/readBlock: {digest(got)}")
    if user.chance.random() < 0.8:
        await peer.call("fs/close", {"handleId": reader})
        await peer.call("fs/remove", {"path": path})
    else:
        # Let the connection close it.
        await peer.call("fs/remove", {"path": path})
        await user.leave(peer)
        user.forget()


async def watch(user: User) -> None:
    """Something that is missing appears, and that is told once."""
    peer, path = user.peer, f"{user.directory.as_uri()}/{user.name()}"
    number = int(path.rpartition("-")[2])
    watching = await peer.call("fs/watchMissing", {"watchId": number, "missing": [f"{path}/file"]})
    check(watching == {"watching": True}, f"fs/watchMissing: {watching}")
    if user.chance.random() < 0.2:
        return
    await peer.call("fs/createDirectory", {"path": path})
    note = {"method": "fs/missingChanged", "params": {"watchId": number}}
    await peer.until(lambda: note in peer.told, "the change was told")
    peer.told.remove(note)
    check(not peer.told, f"told besides: {peer.told}")
    await peer.call("fs/remove", {"path": path})
