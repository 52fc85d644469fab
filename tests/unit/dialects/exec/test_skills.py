"""What a skill says of itself."""

from __future__ import annotations

import pytest

from holdfast.dialects.exec.skills import add_metadata, described
from holdfast.protocol.discovery import PluginSkill, SkillDependencies, SkillPolicy, SkillTool


def skill(front: str) -> PluginSkill:
    return described(f"---\n{front}\n---\nbody\n", default="folder", uri="file:///s")


def test_a_front_matter_describes_a_skill() -> None:
    found = described(
        "--- \r\nname: sing\r\ndescription: >\r\n  two\r\n  lines\r\n"
        "metadata:\r\n  short-description: s\r\n---\r\n",
        default="folder",
        uri="file:///s",
        prefix="choir:",
    )

    assert found == PluginSkill("choir:sing", "two lines", "s", "file:///s", None, None)


def test_a_skill_without_a_name_is_called_by_its_directory() -> None:
    assert skill("description: d").name == "folder"
    assert skill("name:\ndescription: d").name == "folder"


@pytest.mark.parametrize(
    "contents",
    [
        "",
        "no front matter",
        "---\nname: open\ndescription: d\n",
        "\n---\nname: late\ndescription: d\n---\n",
        "---\nname: x\n---\n",
        "---\nname: x\ndescription:\n---\n",
        f"---\nname: {'x' * 65}\ndescription: d\n---\n",
        "---\nname: [x]\ndescription: d\n---\n",
        "---\nname: x\ndescription: d\nmetadata: x\n---\n",
        "---\n- name\n---\n",
        f"---\nname: x\n{'#' * 70_000}\ndescription: d\n---\n",
    ],
)
def test_what_does_not_describe_a_skill_is_none(contents: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        described(contents, default="folder", uri="file:///s")


def test_metadata_say_what_a_skill_needs_and_who_may_use_it() -> None:
    found = skill("description: d")

    add_metadata(
        found,
        "dependencies:\n  tools:\n    - type: mcp\n      value: github\n      url: http://x\n    - value: y\n"
        "policy:\n  allow_implicit_invocation: false\n  products: [codex, CHATGPT]\n",
    )

    tool = SkillTool("mcp", "github", url="http://x")
    assert found.dependencies == SkillDependencies([tool])
    assert found.policy == SkillPolicy(allow_implicit_invocation=False, products=["codex", "chatgpt"])


@pytest.mark.parametrize(
    ("contents", "policy"),
    [("", None), ("interface:\n  x: y", None), ("policy: {}", SkillPolicy(None, []))],
)
def test_metadata_need_not_say_anything(contents: str, policy: SkillPolicy | None) -> None:
    found = skill("description: d")

    add_metadata(found, contents)

    assert (found.policy, found.dependencies) == (policy, None)


@pytest.mark.parametrize(
    "contents",
    [
        "dependencies: 5",
        "policy:\n  products: [bogus]",
        "policy:\n  products: codex",
        "policy:\n  allow_implicit_invocation: perhaps",
        "- x",
        "#" * 70_000,
    ],
)
def test_metadata_that_are_wrong_change_nothing(contents: str) -> None:
    found = skill("description: d")

    with pytest.raises(ValueError, match=r"."):
        add_metadata(found, contents)

    assert (found.policy, found.dependencies) == (None, None)
