"""Archives: no member leads out of the tree, whatever the bytes are and however they were cut."""

from __future__ import annotations

import os

from holdfast.errors import FileRefused
from holdfast.host.files import tar
from holdfast.host.files.tar import ArchiveMember, MemberKind, OmittedMember, TarReader

_FILE = ArchiveMember(MemberKind.FILE, (b"dir", b"file"), 0o755, 5)
_LINK = ArchiveMember(MemberKind.LINK, (b"dir", b"link"), 0o777, 0, b"../dir/file")
_LONG = ArchiveMember(MemberKind.LINK, (b"n" * 200, b"\xff"), 0o777, 0, b"t" * 200)
SEEDS = (
    tar.header(ArchiveMember(MemberKind.DIRECTORY, (), 0o755)) + tar.END,
    tar.header(_FILE) + b"hello" + tar.padding(5) + tar.header(_LINK) + tar.END,
    tar.omitted(b"pipe") + tar.header(_LONG) + tar.END,
    # One block with no sum that fits, and the header of a longer one.
    bytes(range(256)) * 2,
    tar.header(_LONG)[:700],
)
WORDS = ("ustar\x0000", "path=", "linkpath=", "size=", "../", "GNU.sparse", "hdrcharset=BINARY")
_Found = list[ArchiveMember | OmittedMember | bytes | str]


def _read(data: bytes, step: int) -> _Found:
    """Members, contents joined, and the complaint at the end if there is one."""
    reader, found = TarReader(), _Found()
    try:
        for start in range(0, len(data), step):
            for each in reader.feed(data[start : start + step]):
                if isinstance(each, bytes) and found and isinstance(found[-1], bytes):
                    found[-1] += each
                else:
                    found.append(each)
    except FileRefused as refused:
        found.append(refused.reason)
    return found


def _with_sums(data: bytes) -> bytes:
    """The same with every block's sum as a header has it: few changes would get past it otherwise."""
    blocks = []
    for start in range(0, len(data), tar.BLOCK):
        block = data[start : start + tar.BLOCK]
        if len(block) == tar.BLOCK and any(block):
            plain = block[:148] + b" " * 8 + block[156:]
            block = block[:148] + b"%06o\0 " % sum(plain) + block[156:]
        blocks.append(block)
    return b"".join(blocks)


def check(data: bytes) -> None:
    for text in (data, _with_sums(data)):
        found = _read(text, len(text) or 1)
        assert found == _read(text, 1) == _read(text, 100)
        for member in found:
            if isinstance(member, ArchiveMember):
                _check_member(member)


def _check_member(member: ArchiveMember) -> None:
    assert not {b"", b".", b".."} & set(member.path)
    assert not any(b"/" in name or b"\0" in name for name in member.path)
    assert len(member.name) <= tar.LONGEST
    assert 0 <= member.mode <= 0o777
    assert 0 <= member.size < 2**63
    if member.kind is MemberKind.LINK and tar.stays_inside(member):
        # As the system would resolve it, if no part of it were another link.
        place = os.path.join(b"/", b"x" * 8, *member.path[:-1], member.target)
        assert os.path.normpath(place).startswith(b"/" + b"x" * 8)
    assert next(TarReader().feed(tar.header(member))) == member
