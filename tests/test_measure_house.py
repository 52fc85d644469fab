"""The figures of the house: what counts is counted, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import measure_house as measure


def test_modules_that_need_each_other_are_one_group() -> None:
    """Also by a way around, and two circles that touch are one."""
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": {"g"}}

    groups = sorted(sorted(group) for group in measure.components(edges) if len(group) > 1)

    assert groups == [["a", "b", "c"], ["d", "e"]]


def test_a_class_name_with_two_meanings_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "src"
    package.mkdir()
    for name, text in {
        "one.py": "class A: ...",
        "two.py": "class A: ...\nclass B: ...",
        "sync.py": "class B: ...",
        "synchronous.py": "class C: ...",
        "three.py": "class C: ...",
    }.items():
        (package / name).write_text(text)
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    monkeypatch.setattr(measure, "SOURCES", sorted(package.rglob("*.py")))
    monkeypatch.setattr(measure, "TWINS", (package / "sync.py",))

    assert measure.repeated_classes() == ["A: src/one.py, src/two.py", "C: src/synchronous.py, src/three.py"]


def test_the_twins_are_the_synchronous_modules_of_the_library() -> None:
    """Elsewhere a name that repeats is one too many."""
    assert [path.name for path in measure.TWINS] == [
        "sync.py",
        "sync_commands.py",
        "sync_events.py",
        "sync_files.py",
        "sync_handle.py",
        "sync_http.py",
        "sync_verbs.py",
    ]


def test_lines_of_c_functions_are_those_between_their_braces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.c").write_text(
        "struct s {\n    int a;\n};\n\nstatic int f(int a)\n{\n    if (a) {\n    }\n    return a;\n}\n"
    )
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    monkeypatch.setattr(measure, "PACKAGE", tmp_path)

    assert list(measure.c_functions()) == [("x.c f", 3)]


def test_reasons_are_counted_and_marks_for_tools_are_not(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        '"""What it is."""\n\nA = 1\n"""Because."""\n# Why.\nB = 2  # noqa: E1\nC = 3\nD = 4\n'
    )

    assert measure.comments_per_100(tmp_path) == round(100 * 2 / 7, 1)


def test_the_house_is_as_it_should_be() -> None:
    """What is only looked at now and then is lost now and then."""
    assert [(figure.name, figure.value) for figure in measure.figures() if not figure.good] == []
