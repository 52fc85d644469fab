"""Paths in bytes, the ways to what they name beside what the kernel makes of them, and shared directories."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.host.files import paths
from holdfast.host.files.paths import failure, follow_links, join, open_path, real_path, split
from tests.fakes.process import nothing_left_open
from tests.fakes.rules import fails, raw

Way = Callable[..., int]


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left_open():
        yield


# Paths.


@pytest.mark.parametrize(
    ("path", "directory", "name"), [(b"/a/b", b"/a", b"b"), (b"/a", b"/", b"a"), (b"/", b"/", b"")]
)
def test_a_path_is_a_directory_and_a_name(path: bytes, directory: bytes, name: bytes) -> None:
    assert split(path) == (directory, name)
    assert join(directory, name) == path


def test_an_open_file_knows_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    fd = os.open(tmp_path / "f", os.O_PATH)
    (tmp_path / "f").rename(tmp_path / "g")

    assert real_path(fd) == raw(tmp_path.resolve() / "g")

    (tmp_path / "g").unlink()
    with fails(errno.ENOENT):
        real_path(fd)
    os.close(fd)


def test_a_failure_is_the_systems() -> None:
    with fails(errno.EROFS):
        raise failure(errno.EROFS)


# Ways.


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Links of every kind."""
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "f").write_bytes(b"f")
    links = {
        "down": "d/e", "up": "d/..", "over": "d/e/../f", "far": f"{tmp_path}/d/f", "root": "/",
        "slash": "d/", "file-slash": "d/f/", "dots": "././d//f", "again": "over", "through": "slash/f",
        "dangling": "d/none", "loop": "loop", "one": "two", "two": "one", "self": ".",
        "beyond": "../../../../../../../../..",
    }  # fmt: skip
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


PATHS = [
    "", "d", "d/f", "d/e", "down", "down/../f", "up/d/f", "over", "over/x", "far", "root", "root/etc",
    "slash", "slash/e", "file-slash", "dots", "again", "through", "dangling", "loop", "loop/x", "one",
    "beyond/etc", "self/self/self/d/f", "none", "none/x", "d/f/x", "self" + "/self" * 38,
    "self" + "/self" * 41,
]  # fmt: skip


def what(opening: Callable[[], int]) -> tuple[int, int] | str:
    """What was opened, or why not."""
    try:
        fd = opening()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    try:
        facts = os.fstat(fd)
        return facts.st_dev, facts.st_ino
    finally:
        os.close(fd)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("way", [open_path, follow_links])
def test_every_path_leads_where_it_leads_for_the_kernel(place: Path, way: Way, *, last: bool) -> None:
    """From the root, and from a directory."""
    here = os.open(place, os.O_PATH)
    flags = os.O_PATH if last else os.O_PATH | os.O_NOFOLLOW
    for path in PATHS:
        full = raw(place) + b"/" + path.encode() if path else raw(place)
        assert what(partial(way, full, last=last)) == what(partial(os.open, full, flags)), path
        near = path.encode() or b"."
        found = what(partial(way, near, start=here, last=last))
        assert found == what(partial(os.open, near, flags, dir_fd=here)), path
    os.close(here)


ME = str(os.getpid())


@pytest.mark.parametrize("way", [open_path, follow_links])
@pytest.mark.parametrize(
    "path",
    [
        "/proc/PID", "/proc/PID/environ", "/proc/PID/mem", "/proc/self", "/proc/self/environ",
        "/proc/self/root/etc", "/proc/self/cwd", "/proc/self/fd/0", "/proc/self/environ/x",
        "/proc/thread-self/mem", "/proc/PID/task/PID/mem", "/proc/PID/root/proc/PID/mem", "/proc/mounts",
        "/proc/net/dev", "/dev/fd/0", "/dev/stdin",
    ],
)  # fmt: skip
def test_processes_are_not_there(path: str, way: Way) -> None:
    with fails(errno.ENOENT):
        way(path.replace("PID", ME).encode())


@pytest.mark.parametrize("way", [open_path, follow_links])
@pytest.mark.parametrize(
    "target",
    ["/proc/PID/environ", "/proc/PID/root/etc/passwd", "/proc/PID/../../etc", "/proc/PID/environ/x"],
)
def test_nor_does_a_link_lead_through_one(tmp_path: Path, target: str, way: Way) -> None:
    """Whether there is such a process can be told from nothing."""
    (tmp_path / "link").symlink_to(target.replace("PID", ME))
    (tmp_path / "none").symlink_to(target.replace("PID", "999999999"))

    for name in ("link", "none"):
        with fails(errno.ENOENT):
            way(raw(tmp_path / name))


def test_what_is_about_the_host_is_there() -> None:
    for path in (b"/proc", b"/proc/meminfo", b"/proc/uptime"):
        os.close(open_path(path))


def test_a_kernel_that_cannot_do_it_at_once_is_helped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "")

    monkeypatch.setattr(paths, "open_resolved", refuse)

    assert what(lambda: open_path(raw(place / "d" / "f"))) == what(
        lambda: os.open(place / "d" / "f", os.O_PATH)
    )
    with fails(errno.ENOENT):
        open_path(b"/proc/self/environ")


def test_a_link_that_the_kernel_would_not_follow_is_not_followed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "may_follow", lambda directory, link: False)

    with fails(errno.EACCES):
        open_path(raw(place / "far"))
    os.close(open_path(raw(place / "far"), last=False))


# The call that walks a path at once.

HERE = -100  # AT_FDCWD
DIRECTORY = os.O_PATH | os.O_DIRECTORY


def test_a_way_without_links_is_opened(tmp_path: Path) -> None:
    fd = paths.open_resolved(HERE, os.fsencode(tmp_path.resolve()), DIRECTORY, paths.NO_SYMLINKS)

    assert os.path.samestat(os.fstat(fd), tmp_path.stat())
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_a_link_anywhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to(".")

    with pytest.raises(OSError) as refused:  # noqa: PT011  (the number is looked at)
        paths.open_resolved(HERE, os.fsencode(tmp_path / "link" / "d"), DIRECTORY, paths.NO_SYMLINKS)

    assert refused.value.errno == errno.ELOOP


def test_nothing_above_is_reached(tmp_path: Path) -> None:
    fd = os.open(tmp_path, DIRECTORY)

    with pytest.raises(OSError) as refused:  # noqa: PT011  (the number is looked at)
        paths.open_resolved(fd, b"..", DIRECTORY, paths.BENEATH)

    assert refused.value.errno == errno.EXDEV
    os.close(fd)


@pytest.mark.parametrize(("number", "missing"), [(errno.ENOSYS, True), (errno.EPERM, True), (2, False)])
def test_a_kernel_without_it_is_told_from_a_failure(number: int, *, missing: bool) -> None:
    """A filter of system calls says that it is not permitted, instead of not there."""
    assert paths.is_missing(OSError(number, "")) is missing


# Directories that everybody may write to.

US, BOB, EVE = os.geteuid(), 4711, 4712
SHARED, GROUP, OURS, NOT_STICKY = 0o41777, 0o41775, 0o41755, 0o40777


def facts(mode: int, uid: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 0, uid, 0, 0, 0, 0, 0))


def strict(monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    monkeypatch.setattr(paths, "strictness", lambda setting: level)


@pytest.mark.parametrize(
    ("level", "mode", "owner", "link", "expected"),
    [
        (1, SHARED, EVE, BOB, False),
        (1, SHARED, EVE, US, True),
        (1, SHARED, BOB, BOB, True),
        (1, GROUP, EVE, BOB, True),
        (1, NOT_STICKY, EVE, BOB, True),
        (0, SHARED, EVE, BOB, True),
    ],
)
def test_nobody_falls_into_a_link_that_somebody_else_has_put_there(
    monkeypatch: pytest.MonkeyPatch, level: int, mode: int, owner: int, link: int, *, expected: bool
) -> None:
    strict(monkeypatch, level)

    assert paths.may_follow(facts(mode, owner), facts(0o120777, link)) is expected


@pytest.mark.parametrize(
    ("level", "mode", "owner", "file", "expected"),
    [
        (1, SHARED, EVE, BOB, False),
        (1, SHARED, EVE, US, True),
        (1, SHARED, BOB, BOB, True),
        (1, GROUP, EVE, BOB, True),
        (2, GROUP, EVE, BOB, False),
        (2, OURS, EVE, BOB, True),
        (1, NOT_STICKY, EVE, BOB, True),
        (0, SHARED, EVE, BOB, True),
    ],
)
def test_nobody_writes_to_a_file_that_somebody_else_has_put_there(
    monkeypatch: pytest.MonkeyPatch, level: int, mode: int, owner: int, file: int, *, expected: bool
) -> None:
    strict(monkeypatch, level)

    assert paths.may_write(facts(mode, owner), facts(0o100666, file)) is expected


def test_the_kernel_is_asked_how_strict_it_is() -> None:
    with open("/proc/sys/fs/protected_symlinks") as file:
        assert paths.strictness("protected_symlinks") == int(file.read())
    assert paths.strictness("no_such_setting") == 2
