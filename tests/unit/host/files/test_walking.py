"""Ways to a path, beside what the kernel makes of the same path."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.host.files import kernel, sticky
from holdfast.host.files.walking import follow_links, open_path
from tests.fakes.process import nothing_left_open
from tests.fakes.rules import fails, raw

Way = Callable[..., int]


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left_open():
        yield


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

    monkeypatch.setattr(kernel, "open_resolved", refuse)

    assert what(lambda: open_path(raw(place / "d" / "f"))) == what(
        lambda: os.open(place / "d" / "f", os.O_PATH)
    )
    with fails(errno.ENOENT):
        open_path(b"/proc/self/environ")


def test_a_link_that_the_kernel_would_not_follow_is_not_followed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sticky, "may_follow", lambda directory, link: False)

    with fails(errno.EACCES):
        open_path(raw(place / "far"))
    os.close(open_path(raw(place / "far"), last=False))
