"""What is installed on this host, as the exec dialect tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec import installed
from holdfast.dialects.exec.places import CodexPlaces
from tests.fakes.file_talk import FileScene, file_scene, uri
from tests.fakes.sandboxes import entry, policy

INCOMPLETE = ["some capability metadata could not be loaded; discovery may be incomplete"]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[FileScene]:
    async with file_scene() as made:
        made.endpoint.limits = SessionLimits()
        home = str(tmp_path / "home")
        made.endpoint.places = CodexPlaces(str(tmp_path / "etc"), home, f"{home}/.codex", "here")
        yield made


def skill(directory: Path, **more: str) -> Path:
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\nname: {directory.name}\ndescription: d\n---\n")
    for name, text in more.items():
        (directory / "agents").mkdir()
        (directory / f"agents/{name}.yaml").write_text(text)
    return directory


def plugin(tmp_path: Path, place: str, manifest: str = "{}") -> Path:
    """A plugin with one skill in the cache."""
    root = tmp_path / "home/.codex/plugins/cache" / place
    skill(root / "skills/one")
    (root / ".codex-plugin").mkdir()
    (root / ".codex-plugin/plugin.json").write_text(manifest)
    return root


async def discover(scene: FileScene, **more: Any) -> Any:
    return await scene.call("capabilities/discoverV2", {"cwd": "file:///", **more})


async def test_skills_are_found_in_three_places(scene: FileScene, tmp_path: Path) -> None:
    places = {
        "codex-home-skills": tmp_path / "home/.codex/skills",
        "user-agent-skills": tmp_path / "home/.agents/skills",
        "system-skills": tmp_path / "etc/skills",
    }
    for place in places.values():
        skill(place / "deep/sing", openai="policy:\n  products: [codex]")

    assert await discover(scene) == {
        "plugins": [],
        "skills": [
            {
                "name": "sing",
                "description": "d",
                "shortDescription": None,
                "path": uri(place / "deep/sing/SKILL.md"),
                "discoveryRoot": {"id": name, "path": uri(place)},
                "dependencies": None,
                "policy": {"allowImplicitInvocation": None, "products": ["codex"]},
            }
            for name, place in places.items()
        ],
        "warnings": [],
    }


async def test_a_plugin_is_told_with_its_skills(scene: FileScene, tmp_path: Path) -> None:
    manifest = '{"name": "choir", "interface": {"displayName": "Choir"}, "skills": "./more"}'
    root = plugin(tmp_path, "market/p/1.0", manifest)
    skill(root / "more/two")

    (found,) = (await discover(scene))["plugins"]

    names = [(each["name"], each["path"]) for each in found.pop("skills")]
    assert names == [
        ("choir:two", uri(root / "more/two/SKILL.md")),
        ("choir:one", uri(root / "skills/one/SKILL.md")),
    ]
    file = {"path": uri(root / ".codex-plugin/plugin.json"), "contents": manifest}
    assert found == {
        "id": "p@market",
        "displayName": "Choir",
        "remotePluginId": None,
        "version": "1.0",
        "root": uri(root),
        "files": {"manifest": file, "mcpConfig": None, "appsConfig": None},
    }


async def test_the_newest_version_counts(scene: FileScene, tmp_path: Path) -> None:
    for place in ("m/p/2.0.0", "m/p/10.0.0", "m/p/10.0.0-beta", "m/a/1.0", "m/a/local", "k/p/x"):
        plugin(tmp_path, place)

    found = (await discover(scene))["plugins"]

    assert [(each["id"], each["version"]) for each in found] == [
        ("a@m", "local"),
        ("p@k", "x"),
        ("p@m", "10.0.0"),
    ]


async def test_what_cannot_be_understood_is_left_out_and_said_to_be(scene: FileScene, tmp_path: Path) -> None:
    plugin(tmp_path, "m/bad/1", "{nope")
    plugin(tmp_path, "m/good/1")
    skills = tmp_path / "home/.codex/skills"
    skill(skills / "good", openai="policy: x")
    (skills / "bad").mkdir()
    (skills / "bad/SKILL.md").write_text("no front matter")

    found = await discover(scene)

    assert [each["id"] for each in found["plugins"]] == ["good@m"]
    assert [(each["name"], each["policy"]) for each in found["skills"]] == [("good", None)]
    assert found["warnings"] == INCOMPLETE


async def test_nothing_installed_is_nothing_missing(scene: FileScene) -> None:
    assert await discover(scene) == {"plugins": [], "skills": [], "warnings": []}


async def test_nothing_is_told_that_the_sandbox_hides(scene: FileScene, tmp_path: Path) -> None:
    skill(tmp_path / "home/.agents/skills/seen")
    skill(tmp_path / "home/.codex/skills/hidden")
    plugin(tmp_path, "m/p/1")
    sandbox = policy(entry(tmp_path / "home/.agents", "read"))

    found = await discover(scene, sandbox=sandbox)

    assert ([each["name"] for each in found["skills"]], found["plugins"]) == (["seen"], [])


async def test_an_answer_is_bounded(
    scene: FileScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "MOST_PLUGINS", 1)
    for name in "abc":
        plugin(tmp_path, f"m/{name}/1")
    found = await discover(scene)
    assert ([each["id"] for each in found["plugins"]], found["warnings"]) == (["a@m"], INCOMPLETE)

    scene.endpoint.limits = SessionLimits(answer_bytes=10)
    assert await discover(scene) == {"plugins": [], "skills": [], "warnings": INCOMPLETE}


async def test_a_directory_of_another_host_is_refused(scene: FileScene) -> None:
    refusal = await scene.refused("capabilities/discoverV2", {"cwd": "file://h/x"})

    assert refusal == (-32602, "'file://h/x' is invalid on 'linux'")
