"""The layers of Codex's configuration on this host: what is taken from each file (pure)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.errors import ConfigBroken
from holdfast.protocol import paths
from holdfast.protocol.environment import ConfigLayer, ConfigLayers
from holdfast.value import value
from holdfast.wire.toml import Table, written

FILE_BYTES = 256 * 1024
"""A configuration file.  The interpreter reads about a megabyte of TOML a second."""

_DOTS = 1000
"""In one line: the reader's time grows with the square of the parts of a key."""

_POLICIES = ("untrusted", "on-failure", "on-request", "never")
_MODES = ("read-only", "workspace-write", "danger-full-access")

Chosen = dict[str, "Chosen | None"]
"""The keys that are wanted of a table; None: all that is there."""


@value
class ConfigTexts:
    """The files of a host, as far as they are there."""

    system: str | None
    user: str | None
    managed: str | None
    requirements: str | None


@value
class ConfigFiles:
    """Where they are."""

    system: str
    user: str
    managed: str
    requirements: str


def broken(place: str, reason: str) -> ConfigBroken:
    """Return the error about a file."""
    return ConfigBroken(f"failed to load executor-local config: {place}: {reason}")


def chosen(key_paths: Iterable[Sequence[str]]) -> Chosen:
    """Return what keys are wanted, each given by its way from the top, which is not empty."""
    top: Chosen = {}
    for path in key_paths:
        here: Chosen | None = top
        for name in path[:-1]:
            if here is not None:
                here = here.setdefault(name, {})
        if here is not None:
            here[path[-1]] = None
    return top


def picked(table: Table, wanted: Mapping[str, Any]) -> Table:
    """Return what is wanted of a table, in its own order.  What is no table is taken as a whole."""
    found: Table = {}
    for name, each in table.items():
        if name not in wanted:
            continue
        below = wanted[name]
        if below is None or not isinstance(each, dict):
            found[name] = each
        elif part := picked(each, below):
            found[name] = part
    return found


def read_table(place: str, text: str | None) -> Table:
    """Return the table in a file; an empty one if there is no file.

    Raises:
        ConfigBroken: It is not TOML, or nested too deeply.
    """
    if text is None:
        return {}
    if any(line.count(".") > _DOTS for line in text.splitlines()):
        raise broken(place, f"a line has more than {_DOTS} dots")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise broken(place, str(error)) from None
    except RecursionError:
        raise broken(place, "values are nested too deeply") from None


def layers(
    files: ConfigFiles,
    texts: ConfigTexts,
    config_paths: Iterable[Sequence[str]],
    requirements_paths: Iterable[Sequence[str]],
) -> tuple[ConfigLayers, ConfigLayers]:
    """Return what is wanted of the configuration and of the requirements; the weakest layer first.

    Raises:
        ConfigBroken: A file cannot be understood, also if nothing of it is wanted.
    """
    config, requirements = chosen(config_paths), chosen(requirements_paths)
    system, user = read_table(files.system, texts.system), read_table(files.user, texts.user)
    managed = read_table(files.managed, texts.managed)
    required = read_table(files.requirements, texts.requirements)
    return (
        _told(
            config,
            (f"system ({files.system})", files.system, system),
            (f"user ({files.user})", files.user, user),
            (f"legacy managed_config.toml ({files.managed})", files.managed, managed),
        ),
        _told(
            requirements,
            (files.requirements, files.requirements, required),
            (files.managed, files.managed, _implied(files.managed, managed)),
        ),
    )


def _told(wanted: Chosen, *found: tuple[str, str, Table]) -> ConfigLayers:
    """Return the layers in which there is something.  A cloud's belong behind the first, the system's."""
    told: list[ConfigLayer] = []
    for source, place, table in found:
        if part := picked(table, wanted):
            try:
                told.append(ConfigLayer(source, paths.to_uri(place.rpartition("/")[0]), written(part)))
            except RecursionError:
                raise broken(place, "values are nested too deeply") from None
    return ConfigLayers(told, sum(layer.source == found[0][0] for layer in told))


def _implied(place: str, managed: Table) -> Table:
    """Return what a managed configuration of the old kind requires."""
    required: Table = {}
    if "approval_policy" in managed:
        required["allowed_approval_policies"] = [_word(place, managed, "approval_policy", _POLICIES)]
    if "sandbox_mode" in managed:
        mode = _word(place, managed, "sandbox_mode", _MODES)
        required["allowed_sandbox_modes"] = list(dict.fromkeys(("read-only", mode)))
    return required


def _word(place: str, table: Table, name: str, words: tuple[str, ...]) -> str:
    """Return a value that must be understood: what is passed over would not be required."""
    if (word := table[name]) not in words:
        raise broken(place, f"{name} must be one of {', '.join(words)}")
    return str(word)
