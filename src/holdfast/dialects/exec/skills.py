"""What a skill says of itself: in the front matter of its instructions, and in its metadata (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.protocol.discovery import PluginSkill, SkillDependencies, SkillPolicy, SkillTool
from holdfast.wire import yaml

MOST = 64 * 1024
"""Characters of a front matter, and of metadata."""

_LONGEST_NAME = 64
_LONGEST_TEXT = 4096
_PRODUCTS = frozenset({"chatgpt", "codex", "atlas"})


def described(contents: str, *, default: str, uri: str, prefix: str = "") -> PluginSkill:
    """Return a skill by its instructions.

    Args:
        default: The name of one that does not say it.

    Raises:
        ValueError: It does not say what it has to, or not as it has to.
    """
    front = _front(contents)
    name = _text(front, "name") or default
    description = _text(front, "description")
    if len(name) > _LONGEST_NAME or not description:
        raise ValueError("a skill needs a name of up to 64 characters, and a description")
    return PluginSkill(
        name=prefix + name,
        description=description,
        short_description=_text(_below(front, "metadata"), "short-description"),
        path=uri,
        dependencies=None,
        policy=None,
    )


def _front(contents: str) -> Mapping[str, Any]:
    """Return what stands between the first line, of three dashes, and the next one like it."""
    lines = contents[:MOST].split("\n")
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"][:2]
    if len(ends) < 2 or ends[0] != 0:
        raise ValueError("no front matter")
    return _map(yaml.read("\n".join(lines[1 : ends[1]])))


def add_metadata(skill: PluginSkill, contents: str) -> None:
    """Put into a skill what its metadata say.

    Raises:
        ValueError: They are not what they have to be.
    """
    if len(contents) > MOST:
        raise ValueError("too long")
    said = _map(yaml.read(contents))
    policy = None
    if said.get("policy") is not None:
        policy = _policy(_map(said["policy"]))
    tools = _below(said, "dependencies").get("tools") or []
    found = [tool for each in _list(tools) if (tool := _tool(_map(each))) is not None]
    skill.policy = policy
    skill.dependencies = SkillDependencies(found) if found else None


def _policy(said: Mapping[str, Any]) -> SkillPolicy:
    allowed = said.get("allow_implicit_invocation")
    if allowed not in (None, "true", "false"):
        raise ValueError("allow_implicit_invocation is neither true nor false")
    products = [str(each).lower() for each in _list(said.get("products") or [])]
    if not _PRODUCTS.issuperset(products):
        raise ValueError("an unknown product")
    return SkillPolicy(None if allowed is None else allowed == "true", products)


def _tool(said: Mapping[str, Any]) -> SkillTool | None:
    """Return a tool that a skill needs; None if it does not say which."""
    kind, value = _text(said, "type"), _text(said, "value")
    if kind is None or value is None:
        return None
    return SkillTool(
        kind,
        value,
        description=_text(said, "description"),
        transport=_text(said, "transport"),
        command=_text(said, "command"),
        url=_text(said, "url"),
    )


def _text(said: Mapping[str, Any], name: str) -> str | None:
    """Return a text in one line; None if there is none."""
    found = said.get(name)
    if found is None:
        return None
    if not isinstance(found, str) or len(found) > _LONGEST_TEXT:
        raise ValueError(f"{name} is no text, or too long")
    return " ".join(found.split()) or None


def _below(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _map(said.get(name) or {})


def _map(found: object) -> Mapping[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError("not a map")
    return found


def _list(found: object) -> list[Any]:
    if not isinstance(found, list):
        raise ValueError("not a list")
    return found
