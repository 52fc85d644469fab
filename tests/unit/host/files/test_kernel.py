"""System calls that Python does not have, against the kernel."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from holdfast.host.files import kernel

HERE = -100  # AT_FDCWD
DIRECTORY = os.O_PATH | os.O_DIRECTORY


def test_a_way_without_links_is_opened(tmp_path: Path) -> None:
    fd = kernel.open_resolved(HERE, os.fsencode(tmp_path.resolve()), DIRECTORY, kernel.NO_SYMLINKS)

    assert os.path.samestat(os.fstat(fd), tmp_path.stat())
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_a_link_anywhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to(".")

    with pytest.raises(OSError) as refused:  # noqa: PT011  (the number is looked at)
        kernel.open_resolved(HERE, os.fsencode(tmp_path / "link" / "d"), DIRECTORY, kernel.NO_SYMLINKS)

    assert refused.value.errno == errno.ELOOP


def test_nothing_above_is_reached(tmp_path: Path) -> None:
    fd = os.open(tmp_path, DIRECTORY)

    with pytest.raises(OSError) as refused:  # noqa: PT011  (the number is looked at)
        kernel.open_resolved(fd, b"..", DIRECTORY, kernel.BENEATH)

    assert refused.value.errno == errno.EXDEV
    os.close(fd)


@pytest.mark.parametrize(("number", "missing"), [(errno.ENOSYS, True), (errno.EPERM, True), (2, False)])
def test_a_kernel_without_it_is_told_from_a_failure(number: int, *, missing: bool) -> None:
    """A filter of system calls says that it is not permitted, instead of not there."""
    assert kernel.is_missing(OSError(number, "")) is missing


def test_a_file_has_a_time_of_birth(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    os.utime(tmp_path / "f", (1, 1))
    fd = os.open(tmp_path / "f", os.O_PATH)

    assert abs(kernel.birth_time(fd) - time.time_ns()) < 60 * 10**9
    os.close(fd)


def test_what_is_nowhere_has_none() -> None:
    assert kernel.birth_time(-1) == 0


def test_news_of_a_directory_and_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    news = kernel.Inotify()
    fds = [os.open(path, os.O_PATH) for path in (tmp_path, tmp_path / "f", tmp_path)]
    directory = news.add(fds[0], kernel.IN_CREATE)
    file = news.add(fds[1], kernel.IN_MODIFY)
    assert news.add(fds[2], kernel.IN_DELETE_SELF) == directory
    assert news.read() == []

    (tmp_path / "new").touch()
    (tmp_path / "f").write_bytes(b"x")
    events = news.read()
    news.remove(directory)
    news.remove(directory)
    ignored = news.read()

    assert events[0] == kernel.Event(directory, kernel.IN_CREATE, b"new")
    assert events[1] == kernel.Event(file, kernel.IN_MODIFY, b"")
    assert ignored == [kernel.Event(directory, kernel.IN_IGNORED, b"")]
    for fd in fds:
        os.close(fd)
    news.close()


def test_what_is_not_open_cannot_be_watched() -> None:
    news = kernel.Inotify()

    with pytest.raises(OSError, match="No such file"):
        news.add(10**6, kernel.IN_CREATE)

    news.close()
