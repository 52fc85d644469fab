"""Patterns of paths, and what they match on a real disk."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import SandboxLimits
from holdfast.errors import BadRequest, LimitReached, SandboxUnavailable
from holdfast.host.sandbox.rules import Parts, PolicySearch, expand

FILES = ["a.env", "b.env", "ab.txt", ".env", "x/a.env", "x/y/a.env", "x/y/z/a.env", "-", "]", "^"]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Some files, a link to a file and a link to a directory."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link.env").symlink_to("a.env")
    (tmp_path / "loop").symlink_to(".")
    return tmp_path


def found(top: Path, pattern: str, depth: int | None = None) -> set[str]:
    """What matches below the top, seen from there."""
    matches = list(expand(f"{top}/{pattern}", "/", depth))
    assert len(matches) == len(set(matches))
    return {os.path.relpath(match, top) for match in matches}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.env", {"a.env", "b.env", ".env", "link.env"}),
        ("?.env", {"a.env", "b.env"}),
        ("a*", {"a.env", "ab.txt"}),
        ("*/a.env", {"x/a.env"}),
        ("x/*", {"x/a.env", "x/y"}),
        ("**/a.env", {"a.env", "x/a.env", "x/y/a.env", "x/y/z/a.env"}),
        ("x/**", {"x/a.env", "x/y", "x/y/a.env", "x/y/z", "x/y/z/a.env"}),
        ("x/**/z/*", {"x/y/z/a.env"}),
        ("**/y/**", {"x/y/a.env", "x/y/z", "x/y/z/a.env"}),
        ("[ab].env", {"a.env", "b.env"}),
        ("[!a].env", {"b.env"}),
        ("[^a]", {"^"}),
        ("[a-c].env", {"a.env", "b.env"}),
        ("[]]", {"]"}),
        ("[!]]", {"-", "^", "x"}),
        ("[", set()),
        ("a.[", set()),
        ("nothing*", set()),
        ("none/*", set()),
        ("./x//*.env", {"x/a.env"}),
    ],
)
def test_a_pattern_matches_what_it_says(top: Path, pattern: str, names: set[str]) -> None:
    """`*` and `?` stay inside a directory, `**` does not; links are names like any other."""
    assert found(top, pattern) == names


def test_a_dot_in_a_pattern_is_a_dot(tmp_path: Path) -> None:
    """What is special in a regular expression is not special here."""
    for name in ("a.b", "axb", "a+b", "(x)", "a\nb", os.fsdecode(b"\xff.b")):
        (tmp_path / name).touch()

    assert found(tmp_path, "?.b") == {"a.b", os.fsdecode(b"\xff.b")}
    assert found(tmp_path, "(*)") == {"(x)"}
    assert found(tmp_path, "a+?") == {"a+b"}
    assert found(tmp_path, "a?b") == {"a.b", "axb", "a+b", "a\nb"}


@pytest.mark.parametrize(
    ("pattern", "depth", "names"),
    [
        ("**/a.env", 1, {"a.env"}),
        ("**/a.env", 2, {"a.env", "x/a.env"}),
        ("**/a.env", 4, {"a.env", "x/a.env", "x/y/a.env", "x/y/z/a.env"}),
        ("x/**", 1, {"x/a.env", "x/y"}),
        ("*/*/*", 1, set()),
        ("*/*/*", 2, set()),
        ("*/*/*", 3, {"x/y/a.env", "x/y/z"}),
        ("*/*/*", 9, {"x/y/a.env", "x/y/z"}),
    ],
)
def test_it_is_looked_for_no_deeper_than_asked(top: Path, pattern: str, depth: int, names: set[str]) -> None:
    """The depth is counted from the part without special characters."""
    assert found(top, pattern, depth) == names


def test_a_pattern_without_anything_special_is_a_path(top: Path) -> None:
    """Whether or not there is anything: a rule can be about what is not there."""
    assert list(expand(f"{top}/x/./none", "/", None)) == [f"{top}/x/none"]
    assert list(expand("none", str(top), 1)) == [f"{top}/none"]


def test_a_relative_pattern_is_relative_to_the_directory(top: Path) -> None:
    assert set(expand("?.env", str(top), None)) == set(expand(f"{top}/?.env", "/elsewhere", None))
    assert set(expand("?.env", str(top / "x"), None)) == {f"{top}/x/a.env"}


@pytest.mark.parametrize(
    "pattern", ["/**", "/*", "/?", "/**/x", "//**", "/./*", "/[a]/b", "/tmp/{a,b}", "/tmp/*{", "/tmp/x}*"]
)
def test_what_would_have_to_be_looked_for_everywhere_is_refused(pattern: str) -> None:
    """And so is what we do not understand: a deny that matches nothing protects nothing."""
    with pytest.raises(BadRequest) as caught:
        list(expand(pattern, "/", None))

    assert str(caught.value) == (
        f"unreadable glob `{pattern}` cannot be safely expanded;"
        " use a pattern with a non-root directory prefix"
    )


def test_a_relative_pattern_in_the_root_is_refused_too() -> None:
    with pytest.raises(BadRequest):
        list(expand("**", "/", None))


def test_too_many_matches_are_refused_and_not_cut_short(tmp_path: Path) -> None:
    """The one that was left out could be the secret."""
    for number in range(9):
        (tmp_path / f"{number}").touch()
    limits = SandboxLimits(matches=9)
    at_most = list(expand(f"{tmp_path}/*", "/", None, PolicySearch(limits)))
    (tmp_path / "one more").touch()

    with pytest.raises(LimitReached, match="paths that match"):
        list(expand(f"{tmp_path}/*", "/", None, PolicySearch(limits)))

    assert len(at_most) == 9
    assert len(list(expand(f"{tmp_path}/one*", "/", None, PolicySearch(limits)))) == 1


def test_too_much_to_look_at_is_refused(top: Path) -> None:
    """Somebody's home has millions of names; a start must not take minutes."""
    with pytest.raises(LimitReached, match="names looked at"):
        list(expand(f"{top}/**/none", "/", None, PolicySearch(SandboxLimits(names=5))))


def test_where_nothing_can_match_nobody_looks(top: Path) -> None:
    """A large directory beside what is looked for costs nothing."""
    for number in range(50):
        (top / "x" / f"{number}").touch()

    found = list(expand(f"{top}/y*/**", "/", None, PolicySearch(SandboxLimits(names=len(os.listdir(top))))))

    assert found == []


def test_what_may_be_there_and_cannot_be_seen_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a descriptor to look with, a secret would have been passed over in silence."""
    name = "d" * 250
    monkeypatch.chdir(tmp_path)
    for _ in range(20):  # Deeper than any path can tell.
        os.mkdir(name)
        os.chdir(name)

    with pytest.raises(SandboxUnavailable, match="cannot be listed: File name too long"):
        list(expand(f"{tmp_path}/**/secret", "/", None))


@pytest.mark.skipif(os.getuid() == 0, reason="root can list everything")
def test_a_directory_that_cannot_be_listed_is_passed_over(top: Path) -> None:
    """The command cannot read it, either."""
    (top / "x" / "y").chmod(0)

    names = found(top, "**/a.env")

    (top / "x" / "y").chmod(0o700)
    assert names == {"a.env", "x/a.env"}


def test_links_to_directories_are_not_followed(top: Path) -> None:
    """They may lead in circles."""
    assert "loop/a.env" not in found(top, "**/a.env")
    assert found(top, "loop*") == {"loop"}


BRACKETS = [
    "[!]",
    "[^]",
    "[!]]",
    "[b-a]",
    "[a-]",
    "[-a]",
    "[\\]",
    "[[:alpha:]]",
    "[a&&b]",
    "[a--b]",
    "[a||b]",
]
PARTS = st.lists(st.sampled_from([*"ab*?[]!^-.\\&|~(){+$", *BRACKETS]), min_size=1, max_size=6).map("".join)


@pytest.mark.parametrize("part", BRACKETS)
def test_a_strange_set_of_characters_is_refused_or_understood(top: Path, part: str) -> None:
    """Nothing that a client writes may fail in a way that nobody expects."""
    with contextlib.suppress(BadRequest):
        list(expand(f"{top}/{part}", "/", None))


def matches(names: list[str], parts: list[str]) -> bool:
    """Whether a path of these names is what the parts say."""
    wanted = Parts(parts)
    bits = wanted.start
    for name in names:
        bits = wanted.after(bits, name)
    return bool(bits & wanted.end)


@given(PARTS, PARTS)
def test_any_part_is_understood(part: str, name: str) -> None:
    """What has nothing special in it matches itself and nothing else."""
    found = matches([name], [part])

    if not re.search(r"[*?\[]", part):
        assert found == (part == name)
    elif set(part) == {"*"}:
        assert found


NAMES = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5)
WISHES = st.lists(st.sampled_from(["a", "?", "*", "**", "a*"]), min_size=1, max_size=4)


@given(NAMES, WISHES)
def test_any_pattern_matches_what_a_regular_expression_for_it_matches(
    names: list[str], parts: list[str]
) -> None:
    words = {"a": "a", "?": "[^/]", "*": "[^/]*", "a*": "a[^/]*"}
    *upper, last = parts
    text = "".join("(?:[^/]+/)*" if part == "**" else words[part] + "/" for part in upper)
    text += ".+" if last == "**" else words[last]

    assert matches(names, parts) == bool(re.fullmatch(text, "/".join(names)))


def test_a_pattern_that_goes_deeper_often_takes_no_longer(tmp_path: Path) -> None:
    """The ways to divide the path among the parts once were as many as the fourth power of its depth."""
    deep = tmp_path.joinpath(*"a" * 300)
    deep.mkdir(parents=True)
    (deep / "zzz").touch()

    assert list(expand(f"{tmp_path}" + "/**/?" * 40 + "/**/zzz", "/", None)) == [f"{deep}/zzz"]
    assert not list(expand(f"{tmp_path}" + "/**/?" * 40 + "/**/none", "/", None))
    assert matches(["a"] * 3000, ["**", "a"] * 1000)


@pytest.mark.parametrize("pattern", ["/tmp/\0", "/tmp/\0/*", "/tmp/*\0"])
def test_a_pattern_with_a_nul_byte_is_refused(pattern: str) -> None:
    with pytest.raises(BadRequest, match="NUL byte"):
        list(expand(pattern, "/", None))
