"""How far a request may reach: rules are asked about what was opened, and about nothing else."""

from __future__ import annotations

import errno
import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.errors import FileRefused
from holdfast.host.files import making, paths, trees
from holdfast.host.files import resolver as module
from holdfast.host.files.paths import open_beneath, real_path, step_by_step
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access, Rule, Rules
from tests.fakes.rules import fails, raw, rules

RACES = 5000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """``in`` with a file, ``out`` with a secret, and links from one to the other."""
    place = tmp_path.resolve()
    (place / "in" / "deep").mkdir(parents=True)
    (place / "in" / "f").write_bytes(b"inside")
    (place / "out").mkdir()
    (place / "out" / "secret").write_bytes(b"secret")
    (place / "in" / "link").symlink_to("../out/secret")
    (place / "in" / "dir").symlink_to("../out")
    (place / "in" / "back").symlink_to("../in/deep")
    (place / "in" / "dang").symlink_to("../out/none")
    return place


def where(resolver: Resolver, path: Path, *, last: bool = True) -> Path:
    with resolver.find(raw(path), last=last) as fd:
        return Path(os.fsdecode(real_path(fd)))


def test_without_rules_everything_is_found(place: Path) -> None:
    resolver = Resolver()

    assert where(resolver, place / "in" / "link") == place / "out" / "secret"
    assert where(resolver, place / "in" / "link", last=False) == place / "in" / "link"
    assert where(Resolver(follow=False), place / "in" / "link") == place / "in" / "link"
    assert not resolver.ruled
    with fails(errno.ENOENT):
        where(resolver, place / "in" / "dang")
    with fails(errno.ENOTDIR):
        where(Resolver(follow=False), place / "in" / "dir" / "secret")


@pytest.mark.parametrize(("before", "after"), [(0o4755, 0o755), (0o6777, 0o777), (0o1700, 0o1700)])
def test_under_rules_what_is_written_to_no_longer_runs_as_its_owner(
    place: Path, before: int, after: int
) -> None:
    """The kernel sees to that, but not if it is root who writes: the bytes are a client's nevertheless."""
    (place / "in" / "f").chmod(before)
    resolver = Resolver(rules(("/", Access.READ), (place / "in", Access.WRITE)))

    os.close(resolver.create(raw(place / "in" / "f"), flags=0))

    assert (place / "in" / "f").stat().st_mode & 0o7777 == after


def test_the_root_is_found_without_links() -> None:
    assert where(Resolver(follow=False), Path("/")) == Path("/")


def test_the_place_counts_and_not_the_path(place: Path) -> None:
    resolver = Resolver(rules((place / "in", Access.READ)))

    assert where(resolver, place / "in" / "back") == place / "in" / "deep"
    for name in ("in/link", "in/dir/secret", "out/secret", "out/none", "in/dang", "in/none"):
        with fails(errno.ENOENT):
            where(resolver, place / name)


def test_what_is_denied_by_name_is_refused_whether_it_is_there_or_not(place: Path) -> None:
    resolver = Resolver(rules(("/", Access.READ), (place / "out", Access.DENY)))

    for name in ("in/link", "in/dir/none", "out", "out/secret", "out/none", "out/none/x"):
        with fails(errno.EACCES):
            where(resolver, place / name)


def test_a_way_through_what_is_denied_is_refused(place: Path) -> None:
    (place / "out" / "back").symlink_to("../in/f")
    resolver = Resolver(rules(("/", Access.READ), (place / "out", Access.DENY)))

    with fails(errno.EACCES):
        where(resolver, place / "out" / "back")


def test_directories_above_what_can_be_read_are_seen_and_nothing_else_in_them(place: Path) -> None:
    resolver = Resolver(rules((place / "in" / "deep", Access.READ), (place / "out", Access.DENY)))

    assert where(resolver, place / "in") == place / "in"
    assert resolver.shows(raw(place / "in"))
    assert not resolver.shows(raw(place / "in" / "f"))
    assert not resolver.shows(raw(place / "out"))
    with fails(errno.ENOENT):
        resolver.check(raw(place / "in"), Access.WRITE)


def test_a_link_that_the_policy_names_is_seen(place: Path) -> None:
    alias = Rules([Rule(str(place / "out"), Access.READ, aliases=(str(place / "in" / "dir"),))])

    assert Resolver(alias).shows(raw(place / "in" / "dir"))


def test_rules_further_below_ask_for_more_care(place: Path) -> None:
    resolver = Resolver(rules((place / "in", Access.WRITE), (place / "in" / "deep", Access.READ)))

    assert not resolver.allows_below(raw(place / "in"), Access.WRITE)
    assert resolver.allows_below(raw(place / "in" / "deep"), Access.WRITE)
    assert Resolver().allows_below(b"/", Access.WRITE)
    assert Resolver().shows(b"/")


def test_an_open_file_that_was_removed_is_nowhere(place: Path) -> None:
    fd = os.open(place / "in" / "f", os.O_RDONLY)
    (place / "in" / "f").unlink()

    with fails(errno.ENOENT):
        Resolver(rules(("/", Access.READ))).admit(fd)  # Closes it.
    with fails(errno.EBADF):
        os.fstat(fd)


def write(resolver: Resolver, path: Path) -> None:
    os.close(resolver.create(raw(path)))


def test_files_are_made_where_it_is_allowed(place: Path) -> None:
    resolver = Resolver(rules(("/", Access.READ), (place / "in", Access.WRITE)))
    (place / "in" / "chain").symlink_to("deep/link")
    (place / "in" / "deep" / "link").symlink_to(place / "in" / "made")

    write(resolver, place / "in" / "new")
    write(resolver, place / "in" / "f")
    write(resolver, place / "in" / "chain")

    assert (place / "in" / "new").read_bytes() == (place / "in" / "f").read_bytes() == b""
    assert (place / "in" / "made").exists()
    for name in ("in/link", "in/dang", "in/dir/new", "out/new"):
        with fails(errno.EROFS):
            write(resolver, place / name)
    assert sorted(os.listdir(place / "out")) == ["secret"]


def test_what_cannot_be_written_says_why(place: Path) -> None:
    resolver = Resolver(rules((place, Access.WRITE)))
    (place / "loop").symlink_to("loop")
    (place / "up").symlink_to("in/..")
    (place / "root").symlink_to("/")

    for path, number in (
        (place / "loop", errno.ELOOP),
        (place / "up", errno.EISDIR),
        (place / "root", errno.EISDIR),
        (place / "in", errno.EISDIR),
        (Path("/"), errno.EISDIR),
        (place / "none" / "x", errno.ENOENT),
        (place / "in" / "f" / "x", errno.ENOTDIR),
    ):
        with fails(number):
            write(resolver, path)


def test_without_following_no_link_is_written_through(place: Path) -> None:
    resolver = Resolver(rules((place, Access.WRITE)), follow=False)

    write(resolver, place / "in" / "new")

    with fails(errno.ELOOP):
        write(resolver, place / "in" / "link")
    with fails(errno.ENOTDIR):
        write(resolver, place / "in" / "dir" / "new")


def test_nothing_is_in_the_place_of_the_root() -> None:
    with fails(errno.EBUSY), Resolver().spot(b"/"):
        pass


def test_a_directory_that_is_missing_has_no_place(place: Path) -> None:
    resolver = Resolver(rules((place / "in", Access.WRITE)))

    with fails(errno.ENOENT), resolver.spot(raw(place / "out" / "none" / "x")):
        pass
    with fails(errno.ENOENT), resolver.spot(raw(place / "in" / "none" / "x")):
        pass


@pytest.mark.parametrize("opens", [open_beneath, step_by_step])
def test_directories_below_one_are_opened_without_links(
    place: Path, opens: Callable[[int | None, bytes], int]
) -> None:
    """At once, and on kernels that cannot do that."""
    root = os.open(place, os.O_PATH)

    deep = opens(root, b"in/deep")
    assert real_path(deep) == raw(place / "in" / "deep")
    absolute = opens(None, raw(place / "in"))
    assert real_path(absolute) == raw(place / "in")
    with fails(errno.ENOTDIR):
        opens(root, b"in/dir")
    with fails(errno.ENOENT):
        opens(root, b"in/none")
    for fd in (root, deep, absolute):
        os.close(fd)


def test_a_kernel_that_cannot_do_it_at_once_is_helped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "")

    monkeypatch.setattr(paths, "open_resolved", refuse)

    assert where(Resolver(follow=False), place / "in" / "f") == place / "in" / "f"


# What is written to.


@pytest.mark.parametrize("follow", [False, True])
def test_nothing_but_regular_files_is_opened_for_writing(place: Path, *, follow: bool) -> None:
    """A device may do anything when it is opened, and a pipe wakes up whoever reads it."""
    os.mkfifo(place / "in" / "pipe")
    reader = os.open(place / "in" / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for resolver in (Resolver(follow=follow), Resolver(rules(("/", Access.WRITE)), follow=follow)):
        for path in (place / "in" / "pipe", Path("/dev/null")):
            with pytest.raises(FileRefused, match="is not a file" if follow else "not a regular file"):
                resolver.create(raw(path))
        with resolver.spot(raw(place / "in" / "pipe")) as spot, pytest.raises(FileRefused):
            resolver.create_at(spot)

    # Nobody has had it open: otherwise its end would be seen.
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    assert poll.poll(0) == []
    os.close(reader)


def test_what_was_put_into_a_shared_directory_by_others_is_left_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel would refuse, too, if it was asked to make the file."""
    (place / "in" / "near").symlink_to("f")
    with monkeypatch.context() as patched:
        patched.setattr(module, "may_write", lambda directory, file: False)
        with fails(errno.EACCES):
            Resolver().create(raw(place / "in" / "f"))
    with monkeypatch.context() as patched:
        patched.setattr(module, "may_follow", lambda directory, link: False)
        with fails(errno.EACCES):
            Resolver().create(raw(place / "in" / "near"))

    assert (place / "in" / "f").read_bytes() == b"inside"


def test_a_name_in_a_directory_is_made_or_opened_and_no_link_is_followed(place: Path) -> None:
    resolver = Resolver()
    for name in ("f", "new"):
        with resolver.spot(raw(place / "in" / name)) as spot:
            os.close(resolver.create_at(spot))
    with resolver.spot(raw(place / "in" / "link")) as spot, fails(errno.ELOOP):
        resolver.create_at(spot)

    assert [(place / "in" / name).read_bytes() for name in ("f", "new")] == [b"", b""]
    assert (place / "out" / "secret").read_bytes() == b"secret"


@pytest.mark.parametrize(
    "resolver", [Resolver(), Resolver(rules(("/", Access.WRITE))), Resolver(follow=False)]
)
def test_a_path_that_is_too_long_is_not_looked_for(resolver: Resolver) -> None:
    """Not even by those who go up from it directory by directory."""
    path = b"/a" * 5_000_000

    for ask in (resolver.take, resolver.create, lambda path: making.make_all(resolver, path)):
        with fails(errno.ENAMETOOLONG):
            ask(path)
    with fails(errno.ENAMETOOLONG):
        trees.copy(resolver, b"/etc", path, recursive=True)


# Races.


@contextmanager
def swapped(place: Path, name: str, *targets: str) -> Iterator[None]:
    """Somebody who makes ``name`` a link to one target and another, as fast as can be."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for target in targets:
                (place / "spare").symlink_to(target)
                (place / "spare").replace(place / name)

    (place / name).symlink_to(targets[0])
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "path"), [("way", "way/secret"), ("last", "last")])
def test_a_swapped_link_never_leads_outside(place: Path, name: str, path: str) -> None:
    inside = place / "in"
    (inside / "deep" / "secret").write_bytes(b"inside")
    targets = ("deep", "../out") if name == "way" else ("deep/secret", "../out/secret")
    resolver = Resolver(rules((inside, Access.WRITE)))
    read: set[bytes] = set()
    refused = 0
    with swapped(inside, name, *targets):
        for _ in range(RACES):
            try:
                with resolver.find(raw(inside / path)) as found:
                    fd = resolver.reopen(found, os.O_RDONLY)
                read.add(os.read(fd, 99))
                os.close(fd)
                os.close(resolver.create(raw(inside / path), flags=0))
                os.close(
                    resolver.create(raw(inside / "way" / "new"), flags=0) if name == "way" else os.dup(0)
                )
            except OSError:
                refused += 1

    assert read == {b"inside"}
    assert 0 < refused < RACES
    assert os.listdir(place / "out") == ["secret"]
