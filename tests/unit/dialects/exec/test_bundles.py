"""What belongs to a capability root."""

from __future__ import annotations

import pytest

from holdfast.dialects.exec.bundles import (
    About,
    PointerFault,
    Pointers,
    manifests,
    metadata_of,
    newest,
    not_utf8,
    skills,
)


def test_skills_are_in_the_order_of_their_uris() -> None:
    """So a client sees the same order wherever it looks from."""
    names = ("a", "a-b", "a b", "a0", "a\u00e9")

    found = skills([*(f"/r/{name}/SKILL.md" for name in names), "/r/skill.md", "/r/xSKILL.md"])

    assert [path.split("/")[2] for path in found] == ["a b", "a\u00e9", "a-b", "a", "a0"]


def test_metadata_are_beside_a_skill() -> None:
    assert metadata_of("/r/SKILL.md.d/SKILL.md") == "/r/SKILL.md.d/agents/openai.yaml"


def test_a_directory_has_one_manifest() -> None:
    kinds = ("cursor", "claude", "codex")
    files = [f"/r/x/.{kind}-plugin/plugin.json" for kind in kinds]
    files += [f"/r/.{kind}-plugin/plugin.json" for kind in kinds[:2]]

    assert list(manifests([*files, "/r/plugin.json"]).items()) == [
        ("/r", "/r/.claude-plugin/plugin.json"),
        ("/r/x", "/r/x/.codex-plugin/plugin.json"),
    ]


@pytest.mark.parametrize(
    ("written", "path", "fault"),
    [
        ('"./y.json"', "y.json", None),
        ('"././x//y.json/"', "x/y.json", None),
        ('"./y%20y.json"', "y%20y.json", None),
        ('"y.json"', ".app.json", PointerFault.START),
        ('"/etc/hostname"', ".app.json", PointerFault.START),
        ('""', ".app.json", PointerFault.START),
        ('"./"', ".app.json", PointerFault.OUTSIDE),
        ('".//y.json"', ".app.json", PointerFault.OUTSIDE),
        ('"./../y.json"', ".app.json", PointerFault.OUTSIDE),
        ('"./x/../y.json"', ".app.json", PointerFault.OUTSIDE),
        ('"./a\\u0000b"', ".app.json", PointerFault.OUTSIDE),
        ("5", ".app.json", None),
        ("null", ".app.json", None),
        ('["./y.json"]', ".app.json", None),
        ('{"x": 1}', ".app.json", None),
    ],
)
def test_a_manifest_points_below_its_root_only(written: str, path: str, fault: PointerFault | None) -> None:
    pointers = Pointers(f'{{"apps": {written}}}')

    assert (pointers.apps_config, pointers.mcp_config) == (path, ".mcp.json")
    assert pointers.faults == ([] if fault is None else [("apps", fault)])


def test_servers_may_stand_in_the_manifest_itself() -> None:
    pointers = Pointers('{"mcpServers": {"m": {"command": "x"}}}')

    assert (pointers.mcp_config, pointers.apps_config) == (None, ".app.json")


@pytest.mark.parametrize("contents", ["", "{nope", "[1]", "\ufeff{}", "[" * 100_000, '{"x":' * 100_000])
def test_what_is_no_manifest_points_nowhere(contents: str) -> None:
    pointers = Pointers(contents)

    assert (pointers.mcp_config, pointers.apps_config, pointers.faults) == (".mcp.json", ".app.json", [])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\xff\xfe", "invalid utf-8 sequence of 1 bytes from index 1"),
        (b"\xe2\x82", "incomplete utf-8 byte sequence from index 0"),
    ],
)
def test_bytes_that_are_no_text_are_told(data: bytes, words: str) -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        data.decode()

    assert not_utf8(caught.value) == words


@pytest.mark.parametrize(
    ("contents", "about"),
    [
        ("{}", About(None, None)),
        ('{"name": "p", "interface": {"displayName": "P", "x": 1}, "skills": 5}', About("p", "P")),
        ("{nope", None),
        ("[]", None),
        ('{"name": 7}', None),
    ],
)
def test_a_manifest_says_what_its_plugin_is_called(contents: str, about: About | None) -> None:
    assert About.read(contents) == about


@pytest.mark.parametrize(
    "versions",
    [
        ["local", "9.0"],
        ["10.0.0", "2.0.0", "1"],
        ["1.0.0", "1.0.0-b", "1.0.0-a"],
        ["abc", "0.1"],
        ["1.0.1", "1.0"],
        ["1." + "9" * 19, "1.1"],
        ["1." + "9" * 5000, "1.2"],
    ],
)
def test_the_newest_version_is_the_first_of_these(versions: list[str]) -> None:
    assert newest(reversed(versions)) == versions[0]


def test_of_no_versions_none_is_the_newest() -> None:
    assert newest([]) is None
