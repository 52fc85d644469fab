"""Files of a host that anybody may have written: what skills, manifests and configuration say."""

from __future__ import annotations

import contextlib
import math
import tomllib
from typing import Any

import msgspec

from holdfast.dialects.exec.bundles import About, Pointers
from holdfast.dialects.exec.config_layers import read_table
from holdfast.dialects.exec.skills import add_metadata, described
from holdfast.errors import ConfigBroken
from holdfast.wire.toml import written

SKILL_SEEDS = (
    b"---\nname: sing\ndescription: >\n  two\n  lines\nmetadata:\n  short-description: 's'\n---\nbody",
    b'dependencies:\n  tools:\n    - type: mcp\n      value: x\npolicy:\n  products: [codex, "atlas"]\n',
)
WORDS = ("---\n", ": ", "- ", "  ", "|-\n", '"\\ud800"', "name: ", "description: ", "tools:", "[", "{a: b}")
MANIFEST_SEEDS = (b'{"name":"p","interface":{"displayName":"P"},"mcpServers":"./m.json","apps":{"x":1}}',)
CONFIG_SEEDS = (b'a = 1\n[t."x y"]\nb = [1.5, {c = "d"}, 1979-05-27T07:32:00Z]\n[[l]]\nx = 1\n[l.s]\n',)


def check_skill(data: bytes) -> None:
    """What is no skill is refused, and what is told of one can be sent."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        msgspec.json.encode(described(text, default="x", uri="file:///x"))
    skill = described("---\ndescription: d\n---\n", default="x", uri="file:///x")
    with contextlib.suppress(ValueError):
        add_metadata(skill, text)
    msgspec.json.encode(skill)


def check_manifest(data: bytes) -> None:
    """It points below its root, whatever it is."""
    text = data.decode("utf-8", "replace")
    msgspec.json.encode(About.read(text))
    pointers = Pointers(text)
    for path in (pointers.mcp_config, pointers.apps_config):
        assert path is None or not {"", ".", ".."} & set(path.split("/")), path


def check_config(data: bytes) -> None:
    """What is written reads the same."""
    try:
        table = read_table("/f", data.decode("utf-8", "replace"))
    except ConfigBroken:
        return
    assert _comparable(tomllib.loads(written(table))) == _comparable(table)


def _comparable(value: Any) -> Any:
    """A value that is equal to itself, also if a number of it is none."""
    match value:
        case dict():
            return {name: _comparable(each) for name, each in value.items()}
        case list():
            return [_comparable(each) for each in value]
        case float() if math.isnan(value):
            return "nan"
    return value
