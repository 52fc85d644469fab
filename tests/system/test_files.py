"""Every method about files, against the real program: what it answers to every kind of path."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client, Refusal, client
from tests.fakes.server import program_at
from tests.fakes.tree import grow, outline

NOT_FOUND = (-32004, "No such file or directory (os error 2)")
NO_DIRECTORY = (-32603, "Not a directory (os error 20)")
IS_DIRECTORY = (-32603, "Is a directory (os error 21)")
EXISTS = (-32603, "File exists (os error 17)")
LOOP = (-32603, "Symbolic link loop (os error 40)")
NO_PEER = (-32603, "No such device or address (os error 6)")
TOO_LONG = (-32603, "Filename too long (os error 36)")
HAS_LINK = (-32600, "path contains a symbolic link")
NOT_REGULAR = (-32600, "path is not a regular file")
SELF_COPY = (-32600, "fs/copy cannot copy a directory to itself or one of its descendants")
NEEDS_RECURSIVE = (-32600, "fs/copy requires recursive: true when sourcePath is a directory")
SPECIAL = (-32600, "fs/copy only supports regular files, directories, and symlinks")
UNSUPPORTED = (-32603, "recursive no-follow removal is unsupported")

OK: dict[str, Any] = {}
NO_FOLLOW = {"followSymlinks": False}
LONG = "n" * 300


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with program_at("--endpoint", "exec") as (_, where):
        yield where


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return grow(tmp_path)


class Asking:
    """Requests in which ``U:`` stands for the tree, and answers likewise."""

    def __init__(self, talking: Client, root: Path) -> None:
        self._client = talking
        self._root = root

    async def __call__(self, method: str, path: str | None = None, **params: Any) -> Any:
        """The result, or code and words of the refusal."""
        asked = params if path is None else {"path": path, **params}
        text = json.dumps(asked).replace("U:", f"file://{self._root}")
        try:
            result = await self._client.call(f"fs/{method}", json.loads(text))
        except Refusal as refusal:
            return refusal.code, refusal.text.replace(str(self._root), "W")
        return json.loads(json.dumps(result).replace(f"file://{self._root}", "U:"))


READS = [
    ("U:/f", b"hello"),
    ("U:/f/", b"hello"),
    ("U:/lf", b"hello"),
    ("U:/ld/a", b"A"),
    ("U:/d%2Fa", b"A"),
    ("U:/ld/../f", b"hello"),
    ("U:/nope", NOT_FOUND),
    ("U:/nope/x", NOT_FOUND),
    ("U:/dang", NOT_FOUND),
    ("U:/f/x", NO_DIRECTORY),
    ("U:/loop", LOOP),
    ("U:/loop/x", LOOP),
    ("U:/d", (-32600, "path `W/d` is not a file")),
    ("U:/ld", (-32600, "path `W/ld` is not a file")),
    ("U:/fifo", (-32600, "path `W/fifo` is not a file")),
    ("file:///dev/zero", (-32600, "path `/dev/zero` is not a file")),
    ("file:///", (-32600, "path `/` is not a file")),
    ("U:/sock", NO_PEER),
    (f"U:/{LONG}", TOO_LONG),
    ("U:/" + "a/" * 3000, TOO_LONG),
    ("U:/%00", (-32602, "'file://W/%00' is invalid on 'linux'")),
    ("f", (-32602, "invalid URI: relative URL without a base")),
    ("http://x/f", (-32602, "unsupported path URI scheme `http`")),
    ("file://host/f", (-32600, "'file://host/f' is invalid on 'linux'")),
    ("file:///C:/x", (-32600, "'file:///C:/x' is invalid on 'linux'")),
    ("U:/f?x", (-32602, "query parameters are not allowed in path URIs")),
]
NO_FOLLOW_READS = [
    ("U:/f", b"hello"),
    ("U:/ld/../f", b"hello"),
    ("U:/lf", LOOP),
    ("U:/ld", LOOP),
    ("U:/dang", LOOP),
    ("U:/loop", LOOP),
    ("U:/ld/a", NO_DIRECTORY),
    ("U:/nope", NOT_FOUND),
    ("U:/d", NOT_REGULAR),
    ("U:/fifo", NOT_REGULAR),
    ("U:/sock", NO_PEER),
    ("file:///", (-32600, "path must name an entry")),
]


async def test_only_regular_files_are_read_and_nothing_hangs(url: str, tree: Path) -> None:
    """A pipe that nobody writes to and a device that never ends are refused without being opened."""
    async with client(url) as talking:
        ask = Asking(talking, tree)
        for rows, options in ((READS, {}), (NO_FOLLOW_READS, NO_FOLLOW)):
            for path, expected in rows:
                found = await ask("readFile", path, **options)
                if isinstance(expected, bytes):
                    assert base64.b64decode(found["dataBase64"]) == expected, path
                else:
                    assert found == expected, path


WRITES: list[tuple[str, Any, dict[str, Any]]] = [
    ("U:/new", OK, {"new": b"hi!"}),
    ("U:/f", OK, {"f": b"hi!"}),
    ("U:/lf", OK, {"f": b"hi!", "lf": "f"}),
    ("U:/dang", OK, {"nope": b"hi!", "dang": "nope"}),
    ("U:/ld/x", OK, {"d/x": b"hi!"}),
    ("U:/d", IS_DIRECTORY, {}),
    ("U:/nope/x", NOT_FOUND, {}),
    ("U:/f/x", NO_DIRECTORY, {"f": b"hello"}),
    ("U:/loop", LOOP, {}),
    ("U:/fifo", (-32600, "path `W/fifo` is not a file"), {"fifo": "special"}),
    ("U:/sock", NO_PEER, {}),
    ("file:///dev/null", (-32600, "path `/dev/null` is not a file"), {}),
    ("file:///proc/self/mem", (-32600, "Permission denied (os error 13)"), {}),
    ("file:///", IS_DIRECTORY, {}),
]
NO_FOLLOW_WRITES: list[tuple[str, Any, dict[str, Any]]] = [
    ("U:/new", OK, {"new": b"hi!"}),
    ("U:/f", OK, {"f": b"hi!"}),
    ("U:/lf", LOOP, {"f": b"hello"}),
    ("U:/dang", LOOP, {"dang": "nope"}),
    ("U:/ld/x", NO_DIRECTORY, {}),
    ("file:///dev/null", NOT_REGULAR, {}),
    ("file:///", (-32600, "path must name an entry"), {}),
]


@pytest.mark.parametrize(
    ("path", "expected", "after", "options"),
    [(*row, {}) for row in WRITES] + [(*row, NO_FOLLOW) for row in NO_FOLLOW_WRITES],
)
async def test_a_file_is_written_in_place(
    url: str, tree: Path, path: str, expected: Any, after: dict[str, Any], options: dict[str, Any]
) -> None:
    async with client(url) as talking:
        found = await Asking(talking, tree)("writeFile", path, dataBase64="aGkh", **options)

    assert found == expected
    assert outline(tree).items() >= after.items()


async def test_writing_keeps_the_file_itself(url: str, tree: Path) -> None:
    """Mode, owner and hard links belong to the user; what is replaced is the content."""
    os.link(tree / "f", tree / "other")
    (tree / "f").chmod(0o640)

    async with client(url) as talking:
        await Asking(talking, tree)("writeFile", "U:/f", dataBase64="aGkh")

    assert (tree / "other").read_bytes() == b"hi!"
    assert (tree / "f").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("aGk", "Invalid padding"),
        ("a", "Invalid input length: 1"),
        ("aG k", "Invalid symbol 32, offset 2."),
        ("aGl=", "Invalid last symbol 108, offset 2."),
    ],
)
async def test_bad_base64_changes_nothing(url: str, tree: Path, text: str, detail: str) -> None:
    async with client(url) as talking:
        found = await Asking(talking, tree)("writeFile", "U:/f", dataBase64=text)

    assert found == (-32600, f"fs/writeFile requires valid base64 dataBase64: {detail}")
    assert (tree / "f").read_bytes() == b"hello"


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("U:/n/a/b", {}, OK),
        ("U:/d", {}, OK),
        ("U:/ld/n", {}, OK),
        ("file:///", {}, OK),
        ("U:/f", {}, EXISTS),
        ("U:/dang", {}, EXISTS),
        ("U:/dang/x", {}, EXISTS),
        ("U:/loop", {}, EXISTS),
        ("U:/fifo", {}, EXISTS),
        ("U:/f/x", {}, NO_DIRECTORY),
        ("U:/n", {"recursive": False}, OK),
        ("U:/d", {"recursive": False}, EXISTS),
        ("U:/nope/x", {"recursive": False}, NOT_FOUND),
        ("file:///", {"recursive": False}, EXISTS),
        ("U:/n/a/b", NO_FOLLOW, OK),
        ("U:/f", NO_FOLLOW, NO_DIRECTORY),
        ("U:/ld", NO_FOLLOW, NO_DIRECTORY),
        ("U:/ld/n", NO_FOLLOW, NO_DIRECTORY),
        ("U:/ld", {**NO_FOLLOW, "recursive": False}, EXISTS),
        ("file:///", {**NO_FOLLOW, "recursive": False}, (-32603, "directory already exists")),
    ],
)
async def test_directories_are_made(
    url: str, tree: Path, path: str, options: dict[str, Any], expected: Any
) -> None:
    async with client(url) as talking:
        assert await Asking(talking, tree)("createDirectory", path, **options) == expected

    if expected == OK:
        assert os.path.isdir(path.replace("U:", str(tree)).removeprefix("file://"))


async def test_metadata_is_about_what_a_link_leads_to(url: str, tree: Path) -> None:
    async with client(url) as talking:
        ask = Asking(talking, tree)
        facts = {name: await ask("getMetadata", f"U:/{name}") for name in ("f", "lf", "ld", "fifo")}
        missing = [await ask("getMetadata", f"U:/{name}") for name in ("dang", "nope")]
        no_follow = [await ask("getMetadata", f"U:/{name}", **NO_FOLLOW) for name in ("lf", "ld/a", "f")]

    kinds = {name: (fact["isDirectory"], fact["isFile"], fact["isSymlink"]) for name, fact in facts.items()}
    assert kinds == {
        "f": (False, True, False),
        "lf": (False, True, True),
        "ld": (True, False, True),
        "fifo": (False, False, False),
    }
    assert facts["lf"]["size"] == 5
    assert missing == [NOT_FOUND, NOT_FOUND]
    assert no_follow[:2] == [HAS_LINK, NO_DIRECTORY]
    for at in (facts["f"]["modifiedAtMs"], facts["f"]["createdAtMs"], no_follow[2]["createdAtMs"]):
        assert abs(at - time.time() * 1000) < 60_000


async def test_a_canonical_path_has_no_links(url: str, tree: Path) -> None:
    async with client(url) as talking:
        ask = Asking(talking, tree)
        found = [await ask("canonicalize", f"U:/{name}") for name in ("ld/up", "f/", "fifo", "dang", "loop")]
        root = await ask("canonicalize", "file:")

    assert found == [{"path": "U:/f"}, {"path": "U:/f"}, {"path": "U:/fifo"}, NOT_FOUND, LOOP]
    assert root == {"path": "file:///"}


@pytest.mark.parametrize(
    ("path", "options", "expected", "gone"),
    [
        ("U:/f", {}, OK, "f"),
        ("U:/d", {}, OK, "d"),
        ("U:/ld", {}, OK, "ld"),
        ("U:/ld/a", {}, OK, "d/a"),
        ("U:/dang", {}, OK, "dang"),
        ("U:/fifo", {}, OK, "fifo"),
        ("U:/sock", {}, OK, "sock"),
        ("U:/nope/x", {}, OK, ""),
        ("U:/f/x", {}, NO_DIRECTORY, ""),
        ("U:/loop/x", {}, LOOP, ""),
        ("U:/nope", {"force": False}, NOT_FOUND, ""),
        ("U:/d", {"recursive": False}, (-32603, "Directory not empty (os error 39)"), ""),
        ("U:/empty", {"recursive": False}, OK, "empty"),
        ("U:/f", {**NO_FOLLOW, "recursive": False}, OK, "f"),
        ("U:/lf", {**NO_FOLLOW, "recursive": False}, HAS_LINK, ""),
        ("U:/ld/a", {**NO_FOLLOW, "recursive": False}, NO_DIRECTORY, ""),
        ("U:/f", NO_FOLLOW, UNSUPPORTED, ""),
        ("file:///", {"recursive": False}, (-32603, "Resource busy (os error 16)"), ""),
        ("file:///", {}, (-32603, "Resource busy (os error 16)"), ""),
    ],
)
async def test_what_is_removed_is_the_path_itself(
    url: str, tree: Path, path: str, options: dict[str, Any], expected: Any, gone: str
) -> None:
    """A link goes, and not what it leads to.  The root stays, whatever was asked."""
    before = outline(tree)
    async with client(url) as talking:
        assert await Asking(talking, tree)("remove", path, **options) == expected

    kept = {
        name: what for name, what in before.items() if not gone or f"{name}/".startswith(f"{gone}/") is False
    }
    assert outline(tree) == kept


COPIED = {"n": None, "n/a": b"A", "n/sub": None, "n/sub/b": b"BB", "n/up": "../f"}


@pytest.mark.parametrize(
    ("source", "target", "recursive", "expected", "after"),
    [
        ("f", "n", False, OK, {"n": b"hello"}),
        ("f", "dang", False, OK, {"nope": b"hello"}),
        ("f", "f", False, OK, {"f": b"hello"}),
        ("f", "lf", False, OK, {"f": b"hello", "lf": "f"}),
        ("f", "d", True, IS_DIRECTORY, {}),
        ("f", "nope/n", False, NOT_FOUND, {}),
        ("f", "loop", False, LOOP, {}),
        ("f", "fifo", False, (-32600, "path `W/fifo` is not a file"), {"fifo": "special"}),
        ("lf", "n", False, OK, {"n": "f"}),
        ("dang", "n", True, OK, {"n": "nope"}),
        ("ld", "n", True, OK, {"n": "d"}),
        ("lf", "f", False, EXISTS, {"f": b"hello"}),
        ("d", "n", False, NEEDS_RECURSIVE, {}),
        ("d", "n", True, OK, COPIED),
        ("d", "nope/n", True, OK, {f"nope/{name}": what for name, what in COPIED.items()}),
        ("d", "f", True, EXISTS, {"f": b"hello"}),
        ("d", "dang", True, EXISTS, {}),
        ("d", "d", True, SELF_COPY, {}),
        ("d", "d/sub/y", True, SELF_COPY, {}),
        ("d", "ld/x", True, SELF_COPY, {}),
        ("d/sub", "d", True, OK, {"d/b": b"BB"}),
        ("fifo", "n", True, SPECIAL, {}),
        ("nope", "n", False, NOT_FOUND, {}),
    ],
)
async def test_a_copy_is_like_its_source(
    url: str,
    tree: Path,
    source: str,
    target: str,
    expected: Any,
    after: dict[str, Any],
    *,
    recursive: bool,
) -> None:
    """Also a file that is copied onto itself: the reference empties it."""
    params: dict[str, Any] = {
        "sourcePath": f"U:/{source}",
        "destinationPath": f"U:/{target}",
        "recursive": recursive,
    }
    async with client(url) as talking:
        assert await Asking(talking, tree)("copy", **params) == expected

    assert outline(tree).items() >= after.items()


async def test_a_copy_has_the_mode_and_leaves_special_files_out(url: str, tree: Path) -> None:
    (tree / "d" / "a").chmod(0o4751)
    os.mkfifo(tree / "d" / "pipe")
    params: dict[str, Any] = {"sourcePath": "U:/d", "destinationPath": "U:/n", "recursive": True}
    async with client(url) as talking:
        assert await Asking(talking, tree)("copy", **params) == OK

    assert (tree / "n" / "a").stat().st_mode & 0o7777 == 0o4751
    assert not (tree / "n" / "pipe").exists()
