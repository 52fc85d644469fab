"""What has to be watched so that nothing can appear, or go, unnoticed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.host.files import kernel, watch
from tests.fakes.rules import raw

GONE = kernel.IN_MOVE_SELF | kernel.IN_DELETE_SELF


def planned(missing: Sequence[Path], present: Path | None = None) -> dict[str, tuple[int, set[bytes]]] | None:
    """What is watched, by path, with the names that are waited for."""
    made = watch.plan([raw(path) for path in missing], None if present is None else raw(present))
    if made is None:
        return None
    found = {os.fsdecode(path): (target.mask, target.names) for path, target in made.targets.items()}
    made.close()
    return found


def test_the_last_directory_is_watched_for_names_and_those_above_for_their_end(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "d").mkdir()

    found = planned([root / "d" / "n" / "m", root / "d" / "o", root / "p"])

    assert found is not None
    assert found[str(root / "d")] == (GONE | watch.APPEARS, {b"n", b"o"})
    assert found[str(root)] == (GONE | watch.APPEARS, {b"p"})
    assert found[str(root.parent)] == (GONE, set())
    assert found["/"] == (GONE, set())


def test_a_file_that_is_there_is_watched_for_changes(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "f").touch()

    found = planned([root / "n"], root / "f")
    directory = planned([root / "n"], root)

    assert found is not None
    assert found[str(root / "f")][0] == GONE | kernel.IN_MODIFY | kernel.IN_ATTRIB
    assert directory is not None
    assert directory[str(root)] == (GONE | watch.APPEARS, {b"n"})


def test_what_cannot_be_watched(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "f").touch()
    (root / "link").symlink_to(".")
    before = set(os.listdir("/proc/self/fd"))

    for missing, present in (
        ([], None),
        ([root / "f"], None),
        ([root], None),
        ([root / "f" / "n"], None),
        ([root / "link" / "n"], None),
        ([root / "n"], root / "none"),
        ([root / "n"], root / "link"),
        ([Path("/proc/n")], None),
        ([Path("/sys/n")], None),
        ([root / "n"] * 65, None),
        ([root.joinpath(*["n"] * 64)], None),
    ):
        assert planned(missing, present) is None, missing
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_mistake_leaves_nothing_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))

    with pytest.raises(ValueError, match="embedded null"):
        watch.plan([raw(tmp_path / "n"), b"/\0"], None)
    assert set(os.listdir("/proc/self/fd")) == before


def test_what_has_appeared_is_seen(tmp_path: Path) -> None:
    (tmp_path / "dang").symlink_to("nowhere")

    assert watch.appeared([raw(tmp_path / "n"), raw(tmp_path / "dang")])
    assert not watch.appeared([raw(tmp_path / "n")])
