"""The configuration of this host, as the exec dialect tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.dialects.exec.places import CodexPlaces
from tests.fakes.file_talk import FileScene, file_scene, uri

METHOD = "environmentConfig/read"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[FileScene]:
    async with file_scene() as made:
        home = str(tmp_path / "home")
        made.endpoint.places = CodexPlaces(str(tmp_path / "etc"), home, f"{home}/.codex", "here")
        for name in ("etc", "home/.codex"):
            (tmp_path / name).mkdir(parents=True)
        yield made


def asked(config: list[list[str]], requirements: list[list[str]], **more: Any) -> dict[str, Any]:
    return {"cwd": "file:///", "configPaths": config, "requirementsPaths": requirements, **more}


async def test_layers_are_read_from_the_host(scene: FileScene, tmp_path: Path) -> None:
    (tmp_path / "etc/config.toml").write_text("model = 's'")
    (tmp_path / "home/.codex/config.toml").write_text("model = 'u'\nx = 1")
    (tmp_path / "etc/requirements.toml").write_text("a = 1")

    assert await scene.call(METHOD, asked([["model"]], [["a"]])) == {
        "userHomeDir": uri(tmp_path / "home"),
        "codexHomeDir": uri(tmp_path / "home/.codex"),
        "hostname": "here",
        "config": {
            "layers": [
                {
                    "source": f"system ({tmp_path}/etc/config.toml)",
                    "baseDir": uri(tmp_path / "etc"),
                    "toml": 'model = "s"\n',
                },
                {
                    "source": f"user ({tmp_path}/home/.codex/config.toml)",
                    "baseDir": uri(tmp_path / "home/.codex"),
                    "toml": 'model = "u"\n',
                },
            ],
            "cloudInsertionIndex": 1,
        },
        "requirements": {
            "layers": [
                {
                    "source": f"{tmp_path}/etc/requirements.toml",
                    "baseDir": uri(tmp_path / "etc"),
                    "toml": "a = 1\n",
                }
            ],
            "cloudInsertionIndex": 1,
        },
    }


async def test_links_on_the_way_are_followed(scene: FileScene, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "file").write_text("model = 1")
    (tmp_path / "real/config.toml").symlink_to(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    scene.endpoint.places = CodexPlaces(str(tmp_path / "etc"), None, str(tmp_path / "link"))

    found = await scene.call(METHOD, asked([["model"]], []))

    assert (found["userHomeDir"], found["codexHomeDir"]) == (None, uri(tmp_path / "real"))
    assert [layer["baseDir"] for layer in found["config"]["layers"]] == [uri(tmp_path / "real")]


async def test_a_host_without_any_has_no_layers(scene: FileScene, tmp_path: Path) -> None:
    scene.endpoint.places = CodexPlaces(str(tmp_path / "none"), None, None)

    found = await scene.call(METHOD, asked([["x"]], [["x"]]))

    nothing = {"layers": [], "cloudInsertionIndex": 0}
    assert (found["codexHomeDir"], found["config"], found["requirements"]) == (None, nothing, nothing)


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (b"model =", "Invalid value (at end of document)"),
        (b"\xff", "invalid utf-8 sequence of 1 bytes from index 0"),
        (b"#" * (256 * 1024 + 1), "the file exceeds the 262144-byte limit"),
        (None, "path `PLACE` is not a file"),
    ],
    ids=["broken", "no text", "large", "directory"],
)
async def test_a_file_that_cannot_be_read_is_named(
    scene: FileScene, tmp_path: Path, contents: bytes | None, words: str
) -> None:
    place = tmp_path / "home/.codex/config.toml"
    if contents is None:
        place.mkdir()
    else:
        place.write_bytes(contents)

    code, said = await scene.refused(METHOD, asked([], [["x"]]))

    expected = f"failed to load executor-local config: {place}: {words}".replace("PLACE", str(place))
    assert (code, said) == (-32603, expected)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (asked([], []), "at least one config or requirements path is required"),
        (asked([["a"], []], []), "TOML paths must contain at least one key segment"),
        (asked([["a"]], [[]]), "TOML paths must contain at least one key segment"),
        (asked([["a"]], [], cwd="file:///C:/x"), "'file:///C:/x' is invalid on 'linux'"),
        (asked([["a"]], [], cwd=None), "invalid type: null, expected a string"),
        ({"cwd": "file:///"}, "missing field `configPaths`"),
    ],
)
async def test_params_are_checked(scene: FileScene, params: dict[str, Any], words: str) -> None:
    assert (await scene.refused(METHOD, params))[0] == -32602
    assert words in (await scene.refused(METHOD, params))[1]
