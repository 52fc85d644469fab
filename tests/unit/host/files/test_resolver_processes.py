"""How far a request may reach on procfs: no further than a few files about the host, if there are rules."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.host.files import making, trees
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import fails, rules

ABOUT = ["{}", "{}/environ", "{}/mem", "{}/root/etc", "{}/fd/0", "{}/environ/x", "{}/none", "{}/task/{}/mem"]


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("path", ABOUT)
def test_with_rules_processes_are_not_there(path: str, *, follow: bool) -> None:
    """Whatever is asked, the answer is the same as for a process that never was."""
    resolver = Resolver(rules(("/", Access.WRITE)), follow=follow)

    def answers(pid: int) -> list[object]:
        full = f"/proc/{path.replace('{}', str(pid))}".encode()
        asked: list[Callable[[], object]] = [
            lambda: resolver.take(full),
            lambda: resolver.take(full, last=False),
            lambda: resolver.take(full, Access.WRITE),
            lambda: resolver.create(full),
            lambda: trees.remove(resolver, full, recursive=False, force=False),
            lambda: making.make_directory(resolver, full, recursive=False),
            lambda: making.make_directory(resolver, full, recursive=True),
            lambda: trees.copy(resolver, full, b"/none/such", recursive=False),
            lambda: trees.copy(resolver, b"/proc/version", full, recursive=False),
        ]
        return [number_of(each) for each in asked]

    assert answers(os.getpid()) == answers(999_999_999) == [errno.ENOENT] * 9


def number_of(asked: Callable[[], object]) -> object:
    try:
        return asked()
    except OSError as error:
        return error.errno


@pytest.mark.parametrize("way", ["/proc/self", "/proc/thread-self", "/dev/fd/0", "/proc/mounts"])
def test_nor_are_the_links_that_lead_to_them(way: str) -> None:
    resolver = Resolver(rules(("/", Access.READ)))

    for last in (True, False) if way.startswith("/proc") else (True,):
        with fails(errno.ENOENT):
            resolver.take(way.encode(), last=last)


def test_with_rules_what_is_about_the_host_can_be_read_and_not_written() -> None:
    resolver = Resolver(rules(("/", Access.WRITE)))
    fd = resolver.take(b"/proc/version")
    os.close(resolver.reopen(fd, os.O_RDONLY))
    os.close(fd)

    for path in (b"/proc/version", b"/proc/uptime"):
        with fails(errno.EROFS):
            resolver.create(path)
        with fails(errno.EROFS):
            resolver.take(path, Access.WRITE)
    with fails(errno.EACCES):
        Resolver(rules(("/", Access.READ), ("/proc", Access.DENY))).take(b"/proc/version")


def test_without_rules_everything_of_a_process_is_there_but_its_memory() -> None:
    resolver = Resolver()
    with resolver.find(b"/proc/self/environ") as fd:
        os.close(resolver.reopen(fd, os.O_RDONLY))

    for path in (b"self/mem", b"%d/mem" % os.getpid(), b"thread-self/mem", b"self/root/proc/1/mem"):
        with resolver.find(b"/proc/" + path) as fd, fails(errno.EACCES):
            resolver.reopen(fd, os.O_RDONLY)
        with fails(errno.EACCES):
            resolver.create(b"/proc/" + path)


def test_without_rules_a_link_of_procfs_leads_where_it_does_for_the_kernel(tmp_path: Path) -> None:
    """Its text looks like a path, and is none: the file may have been removed."""
    (tmp_path / "f").write_bytes(b"inside")
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    (tmp_path / "f").unlink()

    os.close(Resolver().create(b"/proc/self/fd/%d" % fd))

    assert os.fstat(fd).st_size == 0
    assert os.listdir(tmp_path) == []
    os.close(fd)
