"""Capability roots, as the exec dialect has them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec import bundles
from holdfast.dialects.exec.conversation import ExecEndpoint
from holdfast.dialects.exec.methods import METHODS
from tests.fakes.file_talk import FileScene, file_scene, uri
from tests.fakes.sandboxes import entry, policy

MIB = 1 << 20


@pytest.fixture
async def scene() -> AsyncIterator[FileScene]:
    async with file_scene() as made:
        made.endpoint = ExecEndpoint(
            made.backend, METHODS, loop=made.loop.loop, limits=SessionLimits(detached_seconds=30.0)
        )
        made.talk = made.endpoint.greet(made.client)
        await made.shake_hands()
        yield made


def write(path: Path, contents: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return path


def skill(directory: Path, contents: str | bytes = "s") -> Path:
    return write(directory / "SKILL.md", contents)


def manifest(directory: Path, contents: str | bytes = "{}", *, kind: str = "codex") -> Path:
    return write(directory / f".{kind}-plugin/plugin.json", contents)


async def discover(scene: FileScene, path: Path, **more: Any) -> Any:
    """The answer about one root."""
    params = {"roots": [{"id": "r", "path": uri(path), **more}]}
    (root,) = (await scene.call("capabilityRoots/discoverV1", params))["roots"]
    assert (root["id"], root["path"]) == ("r", uri(path))
    return root


def places(root: Any, top: Path, *, of: str = "skills") -> list[str]:
    """Where the files of an answer are, from the root."""
    files = [each["instructions"] if of == "skills" else each for each in root[of]]
    return [file["path"].removeprefix(uri(top)).strip("/") for file in files]


def file(path: Path, contents: str) -> dict[str, str]:
    return {"path": uri(path), "contents": contents}


async def test_a_plugin_is_told_with_all_its_files(scene: FileScene, tmp_path: Path) -> None:
    one = skill(tmp_path / "skills/one", "one\n")
    notes = write(tmp_path / "skills/one/agents/openai.yaml", "interface:\n")
    plugin = manifest(tmp_path, '{"apps": "./my.json", "mcpServers": "../x"}')
    servers = write(tmp_path / ".mcp.json", "{}")
    apps = write(tmp_path / "my.json", "apps")

    assert await discover(scene, tmp_path) == {
        "id": "r",
        "path": uri(tmp_path),
        "plugin": {
            "manifest": file(plugin, plugin.read_text()),
            "mcpConfig": file(servers, "{}"),
            "appsConfig": file(apps, "apps"),
        },
        "skills": [{"instructions": file(one, "one\n"), "metadata": file(notes, "interface:\n")}],
        "namespaceManifests": [file(plugin, plugin.read_text())],
        "warnings": [f"ignoring mcpServers in {uri(plugin)}: path must start with `./`"],
        "error": None,
    }


async def test_hidden_and_linked_directories_are_entered_once(scene: FileScene, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for directory in (root / ".git", root / "a/deep", outside / "o", root):
        skill(directory)
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root)
    (root / "f").mkdir()
    (root / "f/SKILL.md").symlink_to(root / "SKILL.md")
    (root / "d/SKILL.md").mkdir(parents=True)
    (root / "p").mkdir()
    os.mkfifo(root / "p/SKILL.md")

    found = await discover(scene, root)

    assert places(found, root) == [".git/SKILL.md", "SKILL.md", "a/deep/SKILL.md", "link/o/SKILL.md"]
    assert (found["warnings"], found["error"]) == ([], None)


async def test_six_levels_are_looked_at(scene: FileScene, tmp_path: Path) -> None:
    directory = tmp_path
    for _ in range(8):
        directory /= "d"
        skill(directory)

    found = await discover(scene, tmp_path)

    assert places(found, tmp_path)[-1] == "d/" * 6 + "SKILL.md"
    assert (len(found["skills"]), found["warnings"]) == (6, [])


async def test_the_first_manifest_that_can_be_read_counts(scene: FileScene, tmp_path: Path) -> None:
    bad = manifest(tmp_path, b"\xff")
    good = manifest(tmp_path, "{}", kind="claude")
    manifest(tmp_path, "{}", kind="cursor")
    inner = manifest(tmp_path / "in", kind="cursor")

    found = await discover(scene, tmp_path)

    assert found["plugin"]["manifest"] == file(good, "{}")
    assert found["namespaceManifests"] == [file(good, "{}"), file(inner, "{}")]
    words = "is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"
    assert found["warnings"] == [f"capability file {uri(bad)} {words}"]


async def test_what_cannot_be_told_is_left_out_with_a_warning(scene: FileScene, tmp_path: Path) -> None:
    big, bad = skill(tmp_path / "big", bytes(MIB + 1)), skill(tmp_path / "bad", b"\xe2")
    skill(tmp_path / "exact", "x" * MIB)
    good = skill(tmp_path / "good", "\ufeffgood")
    notes = write(tmp_path / "good/agents/openai.yaml", b"\xff")

    found = await discover(scene, tmp_path)

    assert places(found, tmp_path) == ["exact/SKILL.md", "good/SKILL.md"]
    assert found["skills"][1] == {"instructions": file(good, "\ufeffgood"), "metadata": None}
    assert found["warnings"] == [
        f"capability file {uri(bad)} is not UTF-8: incomplete utf-8 byte sequence from index 0",
        f"capability file {uri(big)} exceeds the 1048576-byte limit",
        f"capability file {uri(notes)} is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
    ]


async def test_a_root_gives_so_many_bytes(scene: FileScene, tmp_path: Path) -> None:
    """Smaller files still fit when a larger one does not."""
    for number in range(15):
        skill(tmp_path / f"s{number:02}", "x" * MIB)
    for name, size in (("s15", MIB - 9), ("s16", 10), ("s17", 9), ("s18", 1), ("s19", 0)):
        skill(tmp_path / name, "x" * size)

    found = await discover(scene, tmp_path)

    names = [place.split("/")[0] for place in places(found, tmp_path)]
    assert names == [f"s{number:02}" for number in range(20) if number not in {16, 18}]
    assert found["warnings"] == ["capability root bundle exceeds the 16777216-byte limit"] * 2


@pytest.mark.parametrize("bound", ["DIRECTORIES", "ENTRIES"])
async def test_a_walk_that_reaches_a_bound_says_so(
    scene: FileScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(bundles, bound, 3)
    for name in "abcd":
        skill(tmp_path / name)

    found = await discover(scene, tmp_path)

    assert found["warnings"] == [f"capability scan reached its traversal limit (root: {uri(tmp_path)})"]
    assert len(found["skills"]) == (2 if bound == "DIRECTORIES" else 0)


async def test_an_answer_is_bounded_over_all_roots(scene: FileScene, tmp_path: Path) -> None:
    """Control characters take six times the room in JSON that they take on a disk."""
    scene.endpoint.limits = SessionLimits(answer_bytes=100_000)
    skill(tmp_path / "a", bytes(10_000))
    skill(tmp_path / "b", bytes(10_000))

    roots = [{"id": name, "path": uri(tmp_path)} for name in "xyz"]
    first, *others = (await scene.call("capabilityRoots/discoverV1", {"roots": roots}))["roots"]

    words = "the answer is limited to 100000 bytes: ask for this root alone, or for fewer files"
    assert (places(first, tmp_path), first["warnings"], first["error"]) == (["a/SKILL.md"], [words], None)
    assert [(root["skills"], root["error"]) for root in others] == [([], words)] * 2


async def test_each_root_has_its_own_error(scene: FileScene, tmp_path: Path) -> None:
    skill(tmp_path)
    told = {
        f"{uri(tmp_path)}/none": "failed to inspect capability root URI: No such file or directory"
        " (os error 2)",
        f"{uri(tmp_path)}/SKILL.md": "capability root URI is not a directory",
        "file:///C:/x": "failed to inspect capability root URI: 'URI' is invalid on 'linux'",
        f"{uri(tmp_path)}/x/../": None,
    }
    asked = {"roots": [{"id": "", "path": path} for path in told]}

    roots = (await scene.call("capabilityRoots/discoverV1", asked))["roots"]

    assert [root["error"] for root in roots] == [
        words and words.replace("URI", path) for path, words in told.items()
    ]
    assert [root["path"] for root in roots] == [*list(told)[:3], uri(tmp_path)]
    assert [len(root["skills"]) for root in roots] == [0, 0, 0, 1]


async def test_nothing_is_told_that_the_sandbox_hides(scene: FileScene, tmp_path: Path) -> None:
    """Neither below the root, nor where links and manifests lead."""
    root, secret = tmp_path / "root", write(tmp_path / "secret", "hush")
    manifest(root, '{"mcpServers": "./link", "apps": "./denied"}')
    (root / "link").symlink_to(secret)
    write(root / "denied", "hush")
    hidden = skill(tmp_path / "outside/o", "hush").parent.parent
    (root / "elsewhere").symlink_to(hidden)
    skill(root / "seen")
    skill(root / "dark", "hush")
    denied = (entry(root / name, "deny") for name in ("denied", "dark"))
    sandbox = policy(entry(root, "read"), *denied)

    found = await discover(scene, root, sandbox=sandbox)

    assert places(found, root) == ["seen/SKILL.md"]
    assert (found["plugin"]["mcpConfig"], found["plugin"]["appsConfig"]) == (None, None)
    assert "hush" not in str(found)


async def test_a_root_that_the_sandbox_hides_is_not_there(scene: FileScene, tmp_path: Path) -> None:
    skill(tmp_path / "a")
    (tmp_path / "b").mkdir()

    found = await discover(scene, tmp_path / "a", sandbox=policy(entry(tmp_path / "b", "read")))

    assert found["error"].endswith(": No such file or directory (os error 2)")
    assert found["skills"] == []


async def test_too_many_roots_are_refused(scene: FileScene, tmp_path: Path) -> None:
    root = {"id": "", "path": uri(tmp_path)}

    refusal = await scene.refused("capabilityRoots/discoverV1", {"roots": [root] * 129})

    assert refusal == (-32600, "capability root discovery accepts at most 128 roots")
    assert len((await scene.call("capabilityRoots/discoverV1", {"roots": [root] * 128}))["roots"]) == 128


async def test_discoveries_of_a_client_are_made_one_after_the_other(scene: FileScene, tmp_path: Path) -> None:
    """Each may fill an answer."""
    skill(tmp_path)
    async with scene.talk.discovering:
        asked = asyncio.ensure_future(discover(scene, tmp_path))
        await scene.call("fs/getMetadata", {"path": uri(tmp_path)})
        assert not asked.done()

    assert len((await asked)["skills"]) == 1
