"""Archives of trees as tar has them: members to bytes, and bytes in any pieces back to members (pure).

What is written is POSIX tar with pax headers where a name, a target or a size needs one, so that every tar
reads it.  What is read may come from anybody.

What must hold:

1. The path of a member is a list of names, one below the other: none is empty, ``.`` or ``..``.
2. There are files, directories and symbolic links.  Hard links, devices and pipes are refused, and so is
   whatever else a tar could make of the bytes.
3. No more is held than one header with its pax records, whatever the bytes are and however they are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from holdfast.errors import FileRefused
from holdfast.value import value

BLOCK = 512
"""Bytes of a header; contents are filled up to a multiple of it."""

END = bytes(2 * BLOCK)
"""What an archive ends with."""

LONGEST = 4095
"""Bytes of a name or a target: no system takes more."""

_PAX_MOST = 4 * LONGEST
"""Bytes of the pax records of one member: room for a name, a target and what others add."""

_LARGEST = 2**63 - 1
"""The size of the largest file."""

OMITTED = b"HOLDFAST.omitted"
"""The pax record that names something which is not in the archive, because it is nothing of these kinds."""


_KEYS = {b"path", b"linkpath", b"size"}
"""The pax records that are about what is unpacked."""


class MemberKind(Enum):
    """What a member of an archive is."""

    FILE = b"0"
    LINK = b"2"
    DIRECTORY = b"5"


@value
class ArchiveMember:
    """One entry of an archive."""

    kind: MemberKind
    path: tuple[bytes, ...]
    """Its names, from the root of the tree on; the root itself has none."""
    mode: int = 0
    """The permission bits: read, write and execute, and no others."""
    size: int = 0
    """Bytes of a file."""
    target: bytes = b""
    """What a link leads to, as it stands in the link."""

    @property
    def name(self) -> bytes:
        """Its path below the root of the tree."""
        return b"/".join(self.path)


@value
class OmittedMember:
    """Something that is in the tree and not in the archive."""

    name: bytes


# Writing.


def header(member: ArchiveMember) -> bytes:
    """Return what stands before the contents of a member."""
    name = member.name or b"."
    if member.kind is MemberKind.DIRECTORY:
        name += b"/"
    records = []
    if len(name) > 100:
        records.append(_record(b"path", name))
    if len(member.target) > 100:
        records.append(_record(b"linkpath", member.target))
    if member.size >= 8**11:
        records.append(_record(b"size", b"%d" % member.size))
    size = member.size if member.size < 8**11 else 0
    block = _block(name, member.kind.value, member.mode, size, member.target)
    return _pax(records, b"x") + block if records else block


def omitted(name: bytes) -> bytes:
    """Return what tells a reader of ours that something was left out; other readers pass over it.

    A member has to follow: some readers want one behind every such header.
    """
    return _pax([_record(OMITTED, name)], b"g")


def padding(size: int) -> bytes:
    """Return what fills the contents of a member up to a whole block."""
    return bytes(-size % BLOCK)


def _pax(records: list[bytes], kind: bytes) -> bytes:
    data = b"".join(records)
    try:
        data.decode()
    except UnicodeDecodeError:
        data = _record(b"hdrcharset", b"BINARY") + data  # These are bytes, and no text.
    return _block(b"././@PaxHeader", kind, 0o644, len(data), b"") + data + padding(len(data))


def _record(key: bytes, text: bytes) -> bytes:
    body = b" " + key + b"=" + text + b"\n"
    size = len(body) + 1
    while len(b"%d" % size) + len(body) != size:
        size = len(b"%d" % size) + len(body)
    return b"%d" % size + body


def _block(name: bytes, kind: bytes, mode: int, size: int, target: bytes) -> bytes:
    parts = (
        name[:100].ljust(100, b"\0"),
        b"%07o\0" % mode,
        b"%07o\0" % 0,
        b"%07o\0" % 0,
        b"%011o\0" % size,
        b"%011o\0" % 0,
        b" " * 8,
        kind,
        target[:100].ljust(100, b"\0"),
        b"ustar\x0000",
    )
    block = b"".join(parts).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


# Reading.


class TarReader:
    """Makes members of the bytes of an archive, which may come in any pieces."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._contents = 0  # Bytes of the current file that are still to come.
        self._padding = 0
        self._records: dict[bytes, bytes] = {}
        self._sparse = False
        self._extension: tuple[bytes, int] | None = None  # A header about the next member, and its size.
        self._empty = False  # Whether the last block was one of the two at the end.
        self.done = False
        """Whether the end of the archive has come; what follows it is ignored."""

    def feed(self, data: bytes) -> Iterator[ArchiveMember | OmittedMember | bytes]:
        """Yield what these bytes complete: members, and behind each file its contents in pieces.

        Raises:
            FileRefused: It is no archive, or one that nobody should unpack.
        """
        view = memoryview(data)
        while view and not self.done:
            if self._contents and not self._held:
                piece, view = view[: self._contents], view[self._contents :]
                self._contents -= len(piece)
                yield bytes(piece)
                continue
            if self._padding:
                skipped = min(self._padding, len(view))
                self._padding -= skipped
                view = view[skipped:]
                continue
            wanted = BLOCK if self._extension is None else self._extension[1]
            taken = wanted - len(self._held)
            self._held += view[:taken]
            view = view[taken:]
            if len(self._held) == wanted:
                whole = bytes(self._held)
                self._held.clear()
                found = self._take(whole)
                if found is not None:
                    yield found

    @property
    def between(self) -> bool:
        """Whether the contents of the last file are complete."""
        return not self._contents

    def _take(self, whole: bytes) -> ArchiveMember | OmittedMember | None:
        if self._extension is not None:
            kind, size = self._extension
            self._extension = None
            self._padding = -size % BLOCK
            return self._extend(kind, whole)
        if not any(whole):
            self.done, self._empty = self._empty, True
            if self.done and self._records:
                raise FileRefused("the archive ends behind a header that is about nothing")
            return None
        if self._empty:
            raise FileRefused("the archive goes on behind its end")
        return self._header(whole)

    def _header(self, block: bytes) -> ArchiveMember | None:
        _check_sum(block)
        kind, size = block[156:157], _number(block[124:136])
        if kind in (b"x", b"g", b"L", b"K"):
            if not 0 < size <= _PAX_MOST:
                raise FileRefused(f"the archive has a header of {size} bytes")
            self._extension = kind, size
            return None
        return self._member(block, kind, size)

    def _extend(self, kind: bytes, data: bytes) -> OmittedMember | None:
        """Take a header that is about the next member, or about all."""
        if kind == b"L":
            self._records[b"path"] = data.rstrip(b"\0")
        elif kind == b"K":
            self._records[b"linkpath"] = data.rstrip(b"\0")
        elif kind == b"x":
            found = _pax_records(data)
            self._sparse |= any(key.startswith(b"GNU.sparse") for key in found)
            # No others are kept, however many headers there are.
            self._records.update({key: found[key] for key in found.keys() & _KEYS})
        else:
            found = _pax_records(data)
            if found.keys() & _KEYS:
                raise FileRefused("the archive gives all of its members the same name or size")
            if OMITTED in found:
                return OmittedMember(found[OMITTED][:LONGEST])
        return None

    def _member(self, block: bytes, kind: bytes, size: int) -> ArchiveMember:
        records, self._records = self._records, {}
        name = records.get(b"path") or _ustar_name(block)
        shown = name.decode("utf-8", "replace")
        if self._sparse:
            raise FileRefused(f"{shown!r} is a sparse file, and cannot be unpacked")
        try:
            found = MemberKind(b"0" if kind == b"\0" else kind)
        except ValueError:
            raise FileRefused(f"{shown!r} is neither a file, a directory nor a symbolic link") from None
        if b"size" in records:
            size = _decimal(records[b"size"])
        path = names(name)
        if found is MemberKind.FILE and (not path or name.endswith(b"/")):
            raise FileRefused(f"{shown!r} is no name of a file")
        if found is MemberKind.FILE:
            self._contents, self._padding = size, -size % BLOCK
        elif size:
            raise FileRefused(f"{shown!r} has contents and is no file")
        mode = _number(block[100:108]) & 0o777
        if found is not MemberKind.LINK:
            return ArchiveMember(found, path, mode, size)
        target = records.get(b"linkpath") or _text(block[157:257])
        if not path or not target or len(target) > LONGEST or b"\0" in target:
            raise FileRefused(f"{shown!r} is a link without a name or a target")
        return ArchiveMember(found, path, mode, 0, target)


def names(name: bytes) -> tuple[bytes, ...]:
    """Return the names of a path below the root of a tree.

    Raises:
        FileRefused: It could lead elsewhere.
    """
    parts = tuple(part for part in name.split(b"/") if part not in (b"", b"."))
    if name.startswith(b"/") or b".." in parts or b"\0" in name or not 0 < len(name) <= LONGEST:
        raise FileRefused(f"{name[:LONGEST].decode('utf-8', 'replace')!r} leads out of the tree")
    return parts


def stays_inside(member: ArchiveMember) -> bool:
    """Whether a link cannot lead out of its tree, whatever other such links there are in the tree.

    It may go up only at its beginning, and not above the root: there it goes through the directories that it
    is in itself.  Behind a name it may not go up, because that name may be a link to somewhere less deep.
    """
    if member.target.startswith(b"/"):
        return False
    parts = [part for part in member.target.split(b"/") if part not in (b"", b".")]
    ups = next((index for index, part in enumerate(parts) if part != b".."), len(parts))
    return ups < len(member.path) and b".." not in parts[ups:]


def _check_sum(block: bytes) -> None:
    given = _number(block[148:156])
    plain = block[:148] + b" " * 8 + block[156:]
    total = sum(plain)
    # Some old programs have added up signed bytes.
    if given != total and given != total - 256 * sum(byte > 127 for byte in plain):
        raise FileRefused("this is no tar archive, or a broken one")


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _ustar_name(block: bytes) -> bytes:
    name = _text(block[:100])
    prefix = _text(block[345:500]) if block[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _number(field: bytes) -> int:
    """Read a number in octal, or in binary as GNU tar writes large ones."""
    if field[0] == 0x80:
        number = int.from_bytes(field[1:], "big")
    else:
        digits = _text(field).strip(b" ")
        if digits.strip(b"01234567"):
            raise FileRefused("this is no tar archive, or a broken one")
        number = int(digits or b"0", 8)
    if number > _LARGEST:
        raise FileRefused("the archive has a file that is larger than any")
    return number


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 19 or int(text) > _LARGEST:
        raise FileRefused("the archive has a file of an impossible size")
    return int(text)


def _pax_records(data: bytes) -> dict[bytes, bytes]:
    """Read pax records: each is its length, a blank, a key, an equals sign, a value and a newline."""
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        digits, blank, _ = data[at : at + 8].partition(b" ")
        if not blank or not digits.isdigit():
            raise FileRefused("the archive has a broken pax header")
        end = at + int(digits)
        key, equals, text = data[at + len(digits) + 1 : end].partition(b"=")
        if not at < end <= len(data) or not equals or not text.endswith(b"\n"):
            raise FileRefused("the archive has a broken pax header")
        records[key] = text[:-1]
        at = end
    return records
