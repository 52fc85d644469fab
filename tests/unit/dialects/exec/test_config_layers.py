"""The layers of Codex's configuration: what is taken from each file."""

from __future__ import annotations

import tomllib

import pytest

from holdfast.dialects.exec.config_layers import ConfigFiles, ConfigTexts, chosen, layers, picked, read_table
from holdfast.errors import ConfigBroken
from holdfast.protocol.environment import ConfigLayer, ConfigLayers

FILES = ConfigFiles("/e/config.toml", "/h/config.toml", "/e/managed_config.toml", "/e/requirements.toml")
NONE = ConfigTexts(None, None, None, None)
TABLE = tomllib.loads(
    'model = "m"\n[tools]\nweb = true\nlist = [1]\n[tools.sub]\nd = 1\n[[many]]\nx = 1\ny = 2\n[empty]\n'
)


def told(texts: ConfigTexts, config: list[str], requirements: list[str]) -> tuple[ConfigLayers, ConfigLayers]:
    """The layers with keys that are given as words with dots."""
    return layers(FILES, texts, [key.split(".") for key in config], [key.split(".") for key in requirements])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([["tools", "web"], ["model"]], {"model": "m", "tools": {"web": True}}),
        ([["tools"], ["tools", "web"]], {"tools": TABLE["tools"]}),
        ([["tools", "web"], ["tools"]], {"tools": TABLE["tools"]}),
        ([["tools", "sub", "d"], ["tools", "none"]], {"tools": {"sub": {"d": 1}}}),
        ([["model", "deeper"], ["many", "x"]], {"model": "m", "many": TABLE["many"]}),
        ([["empty"]], {"empty": {}}),
        ([["empty", "x"], ["tools", "none"], ["none"], [""]], {}),
    ],
)
def test_keys_are_taken_in_the_order_of_the_file(keys: list[list[str]], expected: object) -> None:
    found = picked(TABLE, chosen(keys))

    assert (found, list(found)) == (expected, list(expected))  # type: ignore[call-overload]


def test_layers_are_told_the_weakest_first() -> None:
    texts = ConfigTexts('model = "s"', 'model = "u"\nx = 1', 'model = "m"', "a = 1")

    assert told(texts, ["model"], ["a", "b"]) == (
        ConfigLayers(
            [
                ConfigLayer("system (/e/config.toml)", "file:///e", 'model = "s"\n'),
                ConfigLayer("user (/h/config.toml)", "file:///h", 'model = "u"\n'),
                ConfigLayer(
                    "legacy managed_config.toml (/e/managed_config.toml)", "file:///e", 'model = "m"\n'
                ),
            ],
            1,
        ),
        ConfigLayers([ConfigLayer("/e/requirements.toml", "file:///e", "a = 1\n")], 1),
    )


def test_a_layer_without_the_keys_is_left_out() -> None:
    """A layer of the cloud is the first then."""
    texts = ConfigTexts("y = 1", "x = 1", None, None)

    config, requirements = told(texts, ["x"], ["x"])

    assert [layer.toml for layer in config.layers] == ["x = 1\n"]
    assert (config.cloud_insertion_index, requirements) == (0, ConfigLayers([], 0))


def test_a_managed_configuration_requires_what_it_sets() -> None:
    texts = ConfigTexts(None, None, 'approval_policy = "never"\nsandbox_mode = "workspace-write"', None)

    config, requirements = told(
        texts, ["approval_policy"], ["allowed_approval_policies", "allowed_sandbox_modes"]
    )

    assert [layer.toml for layer in config.layers] == ['approval_policy = "never"\n']
    assert requirements == ConfigLayers(
        [
            ConfigLayer(
                "/e/managed_config.toml",
                "file:///e",
                'allowed_approval_policies = ["never"]\n'
                'allowed_sandbox_modes = ["read-only", "workspace-write"]\n',
            )
        ],
        0,
    )


@pytest.mark.parametrize(
    "text",
    ["model =", "a = 1\na = 2", "x = " + "[" * 5000 + "]" * 5000, "a." * 50_000 + "a = 1", "\0", "x = '"],
    ids=["no value", "twice", "deep", "dots", "null", "open"],
)
@pytest.mark.parametrize("which", ["system", "user", "managed", "requirements"])
def test_a_broken_file_is_an_error_also_if_nothing_of_it_is_wanted(text: str, which: str) -> None:
    texts = ConfigTexts(**{**dict.fromkeys(NONE.__match_args__), which: text})

    with pytest.raises(
        ConfigBroken, match=f"failed to load executor-local config: {getattr(FILES, which)}: "
    ):
        told(texts, ["none"], [])


@pytest.mark.parametrize("text", ['approval_policy = "often"', "sandbox_mode = 5", "approval_policy = {}"])
def test_a_requirement_that_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(ConfigBroken, match="must be one of"):
        told(ConfigTexts(None, None, text, None), [], ["x"])


def test_tables_deep_in_each_other_are_read_or_refused() -> None:
    """A text that can be read may still be nested too deeply to be written."""
    deep = ".".join("a" * 900)
    text = f"[{deep}]\n{deep} = 1"

    with pytest.raises(ConfigBroken, match="too deeply"):
        told(ConfigTexts(text, None, None, None), ["a"], [])
    assert read_table("f", ".".join("a" * 9) + " = 1")
