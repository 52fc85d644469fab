"""Archives: what is written is read, by others too, and what is hostile is refused before it is a member."""

from __future__ import annotations

import io
import tarfile
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import FileRefused
from holdfast.host.files import tar
from holdfast.host.files.tar import ArchiveMember, MemberKind, OmittedMember, TarReader

NAME = st.binary(min_size=1, max_size=120).filter(
    lambda name: name not in (b".", b"..") and not {0, 0x2F} & set(name)
)
PATH = st.lists(NAME, min_size=1, max_size=4).map(tuple)
MODE = st.integers(0, 0o777)
MEMBERS = st.one_of(
    st.builds(ArchiveMember, st.just(MemberKind.DIRECTORY), st.one_of(st.just(()), PATH), MODE),
    st.builds(ArchiveMember, st.just(MemberKind.FILE), PATH, MODE, st.integers(0, 3 * tar.BLOCK)),
    st.builds(
        lambda path, target: ArchiveMember(MemberKind.LINK, path, 0o777, 0, target),
        PATH,
        st.binary(min_size=1, max_size=300).filter(lambda target: 0 not in target),
    ),
)


def archive(*members: ArchiveMember) -> bytes:
    """An archive of these members; the contents of files are filled with the letter x."""
    pieces = [tar.header(each) + b"x" * each.size + tar.padding(each.size) for each in members]
    return b"".join(pieces) + tar.END


def read(data: bytes, *cuts: int) -> tuple[list[ArchiveMember], bytes, bool]:
    """Members, all contents and whether the end has come, of an archive that arrives in these pieces."""
    reader, members, contents = TarReader(), [], b""
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        for found in reader.feed(data[start:end]):
            if isinstance(found, ArchiveMember):
                members.append(found)
            elif isinstance(found, bytes):
                contents += found
    return members, contents, reader.done


def other(**facts: object) -> bytes:
    """An archive of one member as the standard library writes it, with these facts."""
    info = tarfile.TarInfo("name")
    for name, fact in facts.items():
        setattr(info, name, fact)
    return info.tobuf(tarfile.PAX_FORMAT) + tar.END


@given(members=st.lists(MEMBERS, max_size=5), cuts=st.lists(st.integers(0, 9000), max_size=9))
def test_what_is_written_is_read_however_it_is_cut(members: list[ArchiveMember], cuts: list[int]) -> None:
    found, contents, done = read(archive(*members), *cuts)

    assert (found, done) == (members, True)
    assert contents == b"x" * sum(member.size for member in members)


@given(members=st.lists(MEMBERS, min_size=1, max_size=5))
def test_others_read_the_same(members: list[ArchiveMember]) -> None:
    """An archive is of use without us, too."""
    with tarfile.open(fileobj=io.BytesIO(archive(*members))) as opened:
        found = [
            (os_bytes(each.name), each.mode, each.size, os_bytes(each.linkname), each.type) for each in opened
        ]

    assert found == [
        (each.name or b".", each.mode, each.size, each.target, each.kind.value) for each in members
    ]


def os_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@given(members=st.lists(MEMBERS, max_size=4))
def test_what_others_write_is_read(members: list[ArchiveMember]) -> None:
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as opened:
            for each in members:
                info = tarfile.TarInfo((each.name or b".").decode("utf-8", "surrogateescape"))
                info.type, info.mode, info.size = each.kind.value, each.mode, each.size
                info.linkname = each.target.decode("utf-8", "surrogateescape")
                opened.addfile(info, io.BytesIO(b"x" * each.size))

        found, contents, done = read(buffer.getvalue())

        assert (found, done) == (members, True)
        assert len(contents) == sum(member.size for member in members)


def test_what_was_left_out_is_told_to_us_and_passed_over_by_others() -> None:
    member = ArchiveMember(MemberKind.DIRECTORY, (), 0o755)
    data = tar.omitted(b"pipe\xff") + archive(member)

    assert list(TarReader().feed(data)) == [OmittedMember(b"pipe\xff"), member]
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        assert opened.getnames() == ["."]


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "..", "../x", "a/../../x", "a/..", "./..", "a/../b", "/", "//x", "a/" + "x" * 4096],
)
def test_a_name_that_could_lead_out_is_refused(name: str) -> None:
    with pytest.raises(FileRefused, match=r"leads out of the tree|archive has a header"):
        read(other(name=name))


@pytest.mark.parametrize(
    "kind",
    [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"S", b"D", b"V"],
)
def test_what_is_neither_file_nor_directory_nor_link_is_refused(kind: bytes) -> None:
    with pytest.raises(FileRefused, match="neither a file, a directory nor a symbolic link"):
        read(other(type=kind, linkname="x"))


def test_a_set_uid_bit_is_not_unpacked() -> None:
    assert read(other(mode=0o6755))[0] == [ArchiveMember(MemberKind.FILE, (b"name",), 0o755)]


@pytest.mark.parametrize(
    "data",
    [
        b"x" * tar.BLOCK,
        other(type=tarfile.SYMTYPE, linkname=""),
        other(type=tarfile.DIRTYPE, size=5),
        other(pax_headers={"GNU.sparse.major": "1"}),
        other(pax_headers={"size": "-1"}),
        other(pax_headers={"size": str(2**63)}),
        other(name="x/", type=tarfile.REGTYPE)[:99] + b"\0" * 2000,
        tar.END[: tar.BLOCK] + other(),
        tar._pax([tar._record(b"path", b"x")], b"g") + other(),
        tar._pax([tar._record(b"path", b"x")], b"x") + tar.END,
        tar._block(b"p", b"x", 0, 5, b"") + b"9 a=b".ljust(tar.BLOCK, b"\0"),
        tar._block(b"p", b"x", 0, 5, b"") + b"hello".ljust(tar.BLOCK, b"\0"),
        tar._block(b"p", b"x", 0, 10**6, b""),
        tar._block(b"p", b"x", 0, 0, b""),
        tar._block(b"dir/", b"0", 0, 0, b""),
    ],
)
def test_what_makes_no_sense_is_refused(data: bytes) -> None:
    with pytest.raises(FileRefused):
        read(data)


def test_records_of_many_headers_are_not_kept() -> None:
    """Or an archive of nothing but headers would fill the memory."""
    reader = TarReader()
    for number in range(50):
        assert not list(reader.feed(tar._pax([tar._record(b"k%d" % number, b"v")], b"x")))

    assert not reader._records


def test_large_numbers_are_read_as_others_write_them() -> None:
    large = 9 * 8**11
    (ours,) = TarReader().feed(tar.header(ArchiveMember(MemberKind.FILE, (b"f",), 0, large)))
    info = tarfile.TarInfo("f")
    info.size = large
    (gnu,) = TarReader().feed(info.tobuf(tarfile.GNU_FORMAT))

    assert isinstance(ours, ArchiveMember)
    assert isinstance(gnu, ArchiveMember)
    assert ours.size == gnu.size == large


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        (b"l", b"x", True),
        (b"l", b"a/b/./c", True),
        (b"a/l", b"../x", True),
        (b"a/b/l", b"../../x", True),
        (b"l", b"..", False),
        (b"a/l", b"../..", False),
        (b"a/l", b"x/../..", False),
        (b"l", b"x/../y", False),
        (b"l", b"/x", False),
        (b"l", b"./..//x", False),
    ],
)
def test_a_link_is_known_to_stay_inside_by_its_text_alone(
    path: bytes, target: bytes, *, inside: bool
) -> None:
    member = ArchiveMember(MemberKind.LINK, tar.names(path), 0, 0, target)

    assert tar.stays_inside(member) is inside


@given(data=st.binary(max_size=2000))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    try:
        members, _, _ = read(data)
    except FileRefused:
        return
    assert all(member.name == b"/".join(member.path) for member in members)
