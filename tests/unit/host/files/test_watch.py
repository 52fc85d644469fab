"""The kernel's news of files, and what has to be watched so that nothing goes unnoticed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.host.files import watch
from tests.fakes.rules import raw

GONE = watch.IN_MOVE_SELF | watch.IN_DELETE_SELF


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
    assert found[str(root / "f")][0] == GONE | watch.IN_MODIFY | watch.IN_ATTRIB
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
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_mistake_leaves_nothing_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))

    with pytest.raises(ValueError, match="embedded null"):
        watch.plan([raw(tmp_path / "n"), b"/\0"], None)
    assert set(os.listdir("/proc/self/fd")) <= before


def test_what_has_appeared_is_seen(tmp_path: Path) -> None:
    (tmp_path / "dang").symlink_to("nowhere")

    assert watch.appeared([raw(tmp_path / "n"), raw(tmp_path / "dang")])
    assert not watch.appeared([raw(tmp_path / "n")])


# The kernel's news.


def test_news_of_a_directory_and_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    news = watch.Inotify()
    fds = [os.open(path, os.O_PATH) for path in (tmp_path, tmp_path / "f", tmp_path)]
    directory = news.add(fds[0], watch.IN_CREATE)
    file = news.add(fds[1], watch.IN_MODIFY)
    assert news.add(fds[2], watch.IN_DELETE_SELF) == directory
    assert news.read() == []

    (tmp_path / "new").touch()
    (tmp_path / "f").write_bytes(b"x")
    events = news.read()
    news.remove(directory)
    news.remove(directory)
    ignored = news.read()

    assert events[0] == watch.Event(directory, watch.IN_CREATE, b"new")
    assert events[1] == watch.Event(file, watch.IN_MODIFY, b"")
    assert ignored == [watch.Event(directory, watch.IN_IGNORED, b"")]
    for fd in fds:
        os.close(fd)
    news.close()


def test_what_is_not_open_cannot_be_watched() -> None:
    news = watch.Inotify()

    with pytest.raises(OSError, match="No such file"):
        news.add(10**6, watch.IN_CREATE)

    news.close()
