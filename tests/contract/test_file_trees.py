"""Trees as archives: the same on this host and on another one, and never beside the target."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import tarfile
from pathlib import Path

import pytest

from holdfast.backend import Backend
from holdfast.config import MIB
from holdfast.errors import FileFailed, FileRefused
from holdfast.files import Files, OpenFile
from holdfast.sandbox import Access, Sandbox, SandboxEntry
from tests.fakes.server import eventually
from tests.fakes.tree import grow, outline

ODD = os.fsdecode(b"odd \xff%41\n\xe2\x98\x83")
STEP = 1 << 20


async def packed(files: Files, path: Path, *, step: int = STEP, sandbox: Sandbox | None = None) -> bytes:
    """The archive of a directory, read in blocks of this size."""
    pieces, offset = [], 0
    archive = await files.archive(str(path), sandbox=sandbox)
    try:
        while data := await archive.read(offset, step):
            pieces.append(data)
            offset += len(data)
    finally:
        archive.close()
    return b"".join(pieces)


async def unpack(
    files: Files,
    path: Path,
    data: bytes,
    *,
    step: int = STEP,
    outside_links: bool = False,
    sandbox: Sandbox | None = None,
) -> None:
    """Unpack an archive below a directory, in blocks of this size."""
    sink = await files.extract(str(path), outside_links=outside_links, sandbox=sandbox)
    try:
        for offset in range(0, len(data), step):
            await sink.write(offset, data[offset : offset + step])
    finally:
        sink.close()


def modes(root: Path) -> dict[str, int]:
    return {
        path.relative_to(root).as_posix(): path.lstat().st_mode & 0o7777 for path in sorted(root.rglob("*"))
    }


def tar(*members: tuple[str, bytes, str]) -> bytes:
    """An archive of members that have a name, a type and the target of a link, or contents."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as opened:
        for name, kind, text in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(text)
                opened.addfile(info, io.BytesIO(text.encode()))
            else:
                info.linkname = text
                opened.addfile(info)
    return buffer.getvalue()


@pytest.mark.parametrize("step", [512, 100_000, STEP])
async def test_a_tree_arrives_as_it_was(backend: Backend, tmp_path: Path, step: int) -> None:
    """Contents, names that are no text, links wherever they lead, and permission bits."""
    source, target = tmp_path / "source", tmp_path / "a" / "target"
    source.mkdir()
    grow(source)
    (source / ODD).mkdir()
    (source / ODD / ("long" * 60)).write_bytes(os.urandom(3 * MIB // 2) if step > 512 else b"short")
    (source / "d" / "a").chmod(0o755)
    (source / "f").chmod(0o4600)
    (source / "empty").chmod(0o711)
    closed = source / "closed"
    closed.mkdir()
    (closed / "file").write_bytes(b"x")
    (closed / "file").chmod(0o400)
    closed.chmod(0o555)

    await unpack(
        backend.files, target, await packed(backend.files, source, step=step), step=step, outside_links=True
    )

    expected = {name: what for name, what in outline(source).items() if what != "special"}
    assert outline(target) == expected
    wanted = {name: bits & 0o777 for name, bits in modes(source).items() if name in expected}
    assert modes(target) == wanted
    closed.chmod(0o755)
    (target / "closed").chmod(0o755)


async def test_an_archive_is_one_that_others_read(backend: Backend, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    grow(source)

    data = await packed(backend.files, source)
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        names = sorted(opened.getnames())

    expected = sorted(name for name, what in outline(source).items() if what != "special")
    assert [name for name in names if name != "."] == expected


async def test_blocks_may_be_asked_for_together_and_in_order_only(backend: Backend, tmp_path: Path) -> None:
    """Whoever does so waits once for a distant server, not for each block."""
    (tmp_path / "file").write_bytes(os.urandom(3 * STEP))
    archive = await backend.files.archive(str(tmp_path))

    blocks = await asyncio.gather(*(archive.read(n * STEP, STEP) for n in range(6)))
    with pytest.raises(FileFailed) as caught:
        await archive.read(0, STEP)
    archive.close()

    found = tarfile.open(fileobj=io.BytesIO(b"".join(blocks)))  # noqa: SIM115
    assert found.extractfile("file").read() == (tmp_path / "file").read_bytes()  # type: ignore[union-attr]
    assert caught.value.number == errno.ESPIPE


async def test_a_file_of_the_kernel_is_packed_though_it_says_that_it_is_empty(backend: Backend) -> None:
    data = await packed(backend.files, Path("/proc/sys/kernel/random"))
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        found = opened.extractfile("boot_id")

        assert found is not None
        assert found.read() == Path("/proc/sys/kernel/random/boot_id").read_bytes()


async def test_what_is_in_the_way_is_replaced_and_never_written_through(
    backend: Backend, tmp_path: Path
) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    (outside / "file").write_bytes(b"untouched")
    target.mkdir()
    (target / "file").symlink_to(outside / "file")
    (target / "link").write_bytes(b"a file")
    os.link(outside / "file", target / "hard")
    (target / "dir").mkdir(mode=0o700)
    (target / "dir" / "kept").touch()

    data = tar(
        ("file", tarfile.REGTYPE, "new"),
        ("hard", tarfile.REGTYPE, "new"),
        ("link", tarfile.SYMTYPE, "file"),
        ("dir", tarfile.DIRTYPE, ""),
        ("dir/more", tarfile.REGTYPE, "x"),
    )
    await unpack(backend.files, target, data)

    assert outline(outside) == {"file": b"untouched"}
    assert outline(target) == {
        "dir": None,
        "dir/kept": b"",
        "dir/more": b"x",
        "file": b"new",
        "hard": b"new",
        "link": "file",
    }
    assert (target / "dir").stat().st_mode & 0o777 == 0o700


HOSTILE = {
    "absolute": (("/etc/holdfast-evil", tarfile.REGTYPE, "x"),),
    "dots": (("../outside/evil", tarfile.REGTYPE, "x"),),
    "dots inside": (("a/../../outside/evil", tarfile.REGTYPE, "x"),),
    "absolute link": (("l", tarfile.SYMTYPE, "/etc/passwd"),),
    "link up": (("l", tarfile.SYMTYPE, "../outside"),),
    "link up behind a name": (("l", tarfile.SYMTYPE, "a/../../outside"),),
    "link out of a directory": (("a/l", tarfile.SYMTYPE, "../../outside"),),
    "hard link": (("l", tarfile.LNKTYPE, "../outside/file"),),
    "device": (("d", tarfile.CHRTYPE, ""),),
    "pipe": (("p", tarfile.FIFOTYPE, ""),),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_is_refused(backend: Backend, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    good = ("good", tarfile.REGTYPE, "good")

    with pytest.raises(FileRefused):
        await unpack(backend.files, tmp_path / "target", tar(good, *HOSTILE[name]))

    below = outline(tmp_path)
    below.pop("target/a", None)
    assert below == {"outside": None, "target": None, "target/good": b"good"}


@pytest.mark.parametrize(
    "members",
    [
        (("l", tarfile.SYMTYPE, "../outside"), ("l/evil", tarfile.REGTYPE, "x")),
        (("l", tarfile.SYMTYPE, "../outside"), ("l/evil", tarfile.DIRTYPE, "")),
        (("l", tarfile.SYMTYPE, "../outside"), ("l/evil", tarfile.SYMTYPE, "x")),
        (("l", tarfile.SYMTYPE, "../outside"), ("l", tarfile.DIRTYPE, "")),
        (("there/evil", tarfile.REGTYPE, "x"),),
        (("there/a/b/evil", tarfile.REGTYPE, "x"),),
    ],
)
async def test_no_member_goes_through_a_link(
    backend: Backend, tmp_path: Path, members: tuple[tuple[str, bytes, str], ...]
) -> None:
    """Neither one of the archive, though links out of the tree are allowed, nor one that was there."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "there").symlink_to("../outside")

    with pytest.raises(NotADirectoryError) as caught:
        await unpack(backend.files, tmp_path / "target", tar(*members), outside_links=True)

    assert str(caught.value.filename).startswith(f"{tmp_path}/target/")
    assert outline(tmp_path / "outside") == {}


async def test_a_directory_is_not_replaced(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()

    for kind in (tarfile.REGTYPE, tarfile.SYMTYPE):
        with pytest.raises(IsADirectoryError) as caught:
            await unpack(backend.files, tmp_path, tar(("name", kind, "x")))
        assert caught.value.filename == f"{tmp_path}/name"


async def test_what_arrived_in_part_is_not_left(backend: Backend, tmp_path: Path) -> None:
    """And before that nobody else can read it, whatever its mode is going to be."""
    data = tar(("whole", tarfile.REGTYPE, "x"), ("part", tarfile.REGTYPE, "y" * 5000))
    sink = await backend.files.extract(str(tmp_path))
    await sink.write(0, data[: 4 * 512])

    assert (tmp_path / "part").stat().st_mode & 0o777 == 0o600
    sink.close()

    await eventually(lambda: not (tmp_path / "part").exists())
    assert outline(tmp_path) == {"whole": b"x"}
    with pytest.raises(FileFailed):
        await sink.write(4 * 512, data[4 * 512 :])


async def test_an_archive_is_written_in_order(backend: Backend, tmp_path: Path) -> None:
    data = tar(("file", tarfile.REGTYPE, "x" * 9000))
    sink = await backend.files.extract(str(tmp_path))
    blocks = [data[at : at + 4096] for at in range(0, len(data), 4096)]

    await asyncio.gather(*(sink.write(n * 4096, block) for n, block in enumerate(blocks)))
    with pytest.raises(FileFailed) as caught:
        await sink.write(0, data)
    sink.close()

    assert (tmp_path / "file").read_bytes() == b"x" * 9000
    assert caught.value.number == errno.ESPIPE


async def test_a_sandbox_packs_what_it_shows_and_unpacks_where_it_may_write(
    backend: Backend, tmp_path: Path
) -> None:
    for name in ("tree/open", "tree/secret", "tree/fixed"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x")
    sandbox = Sandbox(
        (
            SandboxEntry("/", Access.READ),
            SandboxEntry(str(tmp_path / "tree"), Access.WRITE),
            SandboxEntry(str(tmp_path / "tree/secret"), Access.DENY),
            SandboxEntry(str(tmp_path / "tree/fixed"), Access.READ),
        ),
        network=True,
        cwd="/",
    )

    data = await packed(backend.files, tmp_path / "tree", sandbox=sandbox)
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        assert sorted(opened.getnames()) == [".", "fixed", "fixed/file", "open", "open/file"]
    await unpack(backend.files, tmp_path / "tree" / "new", data, sandbox=sandbox)
    assert (tmp_path / "tree/new/fixed/file").read_bytes() == b"x"
    for place in ("tree/fixed", "other"):
        with pytest.raises(FileFailed) as caught:
            await unpack(backend.files, tmp_path / place, data, sandbox=sandbox)
        assert caught.value.number == errno.EROFS
    hidden = tar(("secret/more", tarfile.REGTYPE, "x"))
    with pytest.raises(FileFailed) as caught:
        await unpack(backend.files, tmp_path / "tree", hidden, sandbox=sandbox)
    assert caught.value.number == errno.EACCES
    assert outline(tmp_path / "tree/secret") == {"file": b"x"}


async def test_what_is_opened_for_one_thing_is_not_used_for_the_other(
    backend: Backend, tmp_path: Path
) -> None:
    reading: OpenFile = await backend.files.archive(str(tmp_path))
    writing: OpenFile = await backend.files.extract(str(tmp_path))

    for call in (reading.write(0, b"x" * 512), writing.read(0, 1)):
        with pytest.raises(FileFailed) as caught:
            await call
        assert caught.value.number == errno.EBADF
    reading.close()
    writing.close()


async def test_what_is_no_directory_is_no_tree(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError):
        await backend.files.archive(str(tmp_path / "file"))
    with pytest.raises(FileExistsError):
        await backend.files.extract(str(tmp_path / "file"))
    with pytest.raises(FileNotFoundError):
        await backend.files.archive(str(tmp_path / "none"))
