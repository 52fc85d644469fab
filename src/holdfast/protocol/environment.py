"""Shapes of what is configured on a host for Codex (pure)."""

from __future__ import annotations

from .shapes import Params, PathText, Shape, Signature, Usize


class ReadConfigParams(Params):
    wire_name = "EnvironmentConfigReadParams"

    cwd: PathText
    """URI of a directory of this host; which layers there are does not depend on it."""
    config_paths: list[list[str]]
    """Keys of the configuration, each as its way from the top: ``["tools", "web"]``."""
    requirements_paths: list[list[str]]
    """Keys of the requirements."""


class ConfigLayer(Shape):
    source: str
    """What the layer is, in words for people."""
    base_dir: str
    """URI of the directory that relative paths in it are relative to."""
    toml: str
    """The keys that were asked for, as far as the layer has them."""


class ConfigLayers(Shape):
    layers: list[ConfigLayer]
    """The weakest first; without those that have none of the keys."""
    cloud_insertion_index: Usize
    """Where a layer that the client has from elsewhere belongs among them."""


class ReadConfigResult(Shape):
    user_home_dir: str | None
    """URI."""
    codex_home_dir: str | None
    """URI: ``CODEX_HOME`` of the server, or ``.codex`` in the home."""
    hostname: str
    config: ConfigLayers
    requirements: ConfigLayers


READ_CONFIG = Signature("environmentConfig/read", ReadConfigParams, ReadConfigResult)
