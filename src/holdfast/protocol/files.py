"""Files on the wire: the requests, answers and notifications of ``fs/...`` (pure)."""

from __future__ import annotations

from enum import Enum

from msgspec import UNSET, UnsetType

from .sandbox import SandboxContext
from .shapes import U16, U64, Base64Text, Nothing, Params, PathText, Shape, Signature, Usize, within_u64


def _check_permissions(bits: int | None) -> None:
    """Raises ``ValueError``, as the decoder wants it."""
    if bits is not None and bits > 0o777:
        raise ValueError("permissions are 511 (0o777) at most")


class ReadFileParams(Params):
    wire_name = "WireFsReadFileParams"

    path: PathText
    follow_symlinks: bool | None = None
    """False: no part of the path may be a symbolic link."""
    sandbox: SandboxContext | None = None
    """Read it as a command inside of this could."""


class ReadFileResult(Shape):
    data_base64: Base64Text
    """The bytes, in base64."""


class WriteFileParams(Params):
    wire_name = "WireFsWriteFileParams"

    path: PathText
    data_base64: str
    """The bytes, in base64 with padding."""
    follow_symlinks: bool | None = None
    sandbox: SandboxContext | None = None
    permissions: U16 | None = None
    """Of a file that is made, whatever the umask is; 420 is 0o644.  One that is there keeps its own."""

    def __post_init__(self) -> None:
        _check_permissions(self.permissions)


class CreateDirectoryParams(Params):
    wire_name = "WireFsCreateDirectoryParams"

    path: PathText
    recursive: bool | None = None
    """With all above it, and it may be there already; null is true."""
    follow_symlinks: bool | None = None
    sandbox: SandboxContext | None = None


class GetMetadataParams(Params):
    wire_name = "WireFsGetMetadataParams"

    path: PathText
    follow_symlinks: bool | None = None
    sandbox: SandboxContext | None = None


class GetMetadataResult(Shape):
    is_directory: bool
    is_file: bool
    """A regular file."""
    is_symlink: bool
    """Whether the path itself is a link; the rest is about what it leads to."""
    size: U64
    created_at_ms: U64
    """In milliseconds since 1970; 0 if the file system does not tell."""
    modified_at_ms: U64
    permissions: int | UnsetType = UNSET
    """The permission bits, as 420 for 0o644; told to clients that know the extensions."""


class CanonicalizeParams(Params):
    wire_name = "WireFsCanonicalizeParams"

    path: PathText
    sandbox: SandboxContext | None = None


class CanonicalizeResult(Shape):
    path: str
    """URI."""


class ReadDirectoryParams(Params):
    wire_name = "WireFsReadDirectoryParams"

    path: PathText
    dangling_links: bool = False
    """List links that lead nowhere, too, and say of every entry whether it is a link."""
    sandbox: SandboxContext | None = None


class DirectoryEntry(Shape):
    """A name in a directory, with the kind of what it leads to."""

    file_name: str
    """With U+FFFD for bytes that are not UTF-8."""
    is_directory: bool
    is_file: bool
    path: str | UnsetType = UNSET
    """Told if the name is not UTF-8: the URI that names it exactly."""
    is_symlink: bool | UnsetType = UNSET
    """Told if ``danglingLinks`` was asked for."""


class ReadDirectoryResult(Shape):
    entries: list[DirectoryEntry]
    """In the directory's own order; links that lead nowhere are left out, unless they were asked for."""


class WalkOptions(Params):
    wire_name = "WalkOptions"

    max_depth: Usize
    """Directories so many levels below ``path`` are entered, those further below are not; at most 64."""
    max_directories: Usize
    """Directories to enter, at most 10,000."""
    max_entries: Usize
    """Names to look at, at most 50,000."""
    follow_directory_symlinks: bool
    """Enter directories through links, each directory once."""
    prune_hidden_directories: bool = False
    """Name hidden directories, and do not enter them."""

    def __post_init__(self) -> None:
        within_u64(self.max_depth, self.max_directories, self.max_entries)


class WalkParams(Params):
    wire_name = "WireFsWalkParams"

    path: PathText
    options: WalkOptions
    sandbox: SandboxContext | None = None


class WalkKind(Enum):
    DIRECTORY = "directory"
    FILE = "file"


class FoundEntry(Shape):
    path: str
    """URI."""
    kind: WalkKind


class FoundError(Shape):
    """Something that could not be looked at."""

    path: str
    """URI."""
    message: str


class WalkResult(Shape):
    entries: list[FoundEntry]
    """Level by level, in the order of the names; links to files and special files are left out."""
    errors: list[FoundError]
    truncated: bool
    """Whether there was more than the options, or one message of about 4 MiB, let through."""


class RemoveParams(Params):
    wire_name = "WireFsRemoveParams"

    path: PathText
    recursive: bool | None = None
    """A directory with all that is in it; null is true."""
    force: bool | None = None
    """There need not be anything; null is true."""
    follow_symlinks: bool | None = None
    """A link at the end of the path is removed, not what it leads to; with false it is refused."""
    sandbox: SandboxContext | None = None


class CopyParams(Params):
    wire_name = "WireFsCopyParams"

    source_path: PathText
    destination_path: PathText
    recursive: bool
    """Needed for a directory."""
    sandbox: SandboxContext | None = None


class RenameParams(Params):
    wire_name = "RenameParams"

    source_path: PathText
    destination_path: PathText
    """On the same file system; a file that is there is replaced."""
    sandbox: SandboxContext | None = None


class OpenMode(Enum):
    READ = "read"
    REPLACE = "replace"
    """To write it from its beginning: it is made, or emptied, at once."""


class OpenFileParams(Params):
    wire_name = "WireFsOpenParams"

    handle_id: str
    """The client's name for the open file, on this connection; at most 32 bytes."""
    path: PathText
    mode: OpenMode = OpenMode.READ
    sandbox: SandboxContext | None = None
    permissions: U16 | None = None
    """With ``replace``, as in ``fs/writeFile``."""

    def __post_init__(self) -> None:
        _check_permissions(self.permissions)


class OpenFileResult(Shape):
    handle_id: str = ""


class ArchiveParams(Params):
    wire_name = "ArchiveParams"

    handle_id: str
    """As in ``fs/open``."""
    path: PathText
    """A directory."""
    sandbox: SandboxContext | None = None


class ExtractParams(Params):
    wire_name = "ExtractParams"

    handle_id: str
    """As in ``fs/open``."""
    path: PathText
    """The directory to unpack to; it is made, with all above it, if it is not there."""
    outside_links: bool = False
    """Make links that lead out of the tree, too, instead of refusing them."""
    sandbox: SandboxContext | None = None


class ReadBlockParams(Params):
    wire_name = "FsReadBlockParams"

    handle_id: str
    offset: U64
    len: Usize
    """1 to 1,048,576 bytes."""

    def __post_init__(self) -> None:
        within_u64(self.offset, self.len)


class ReadBlockResult(Shape):
    chunk: Base64Text
    """The bytes, in base64."""
    eof: bool
    """Whether they are fewer than was asked for."""


class WriteBlockParams(Params):
    wire_name = "FsWriteBlockParams"

    handle_id: str
    offset: U64
    chunk: Base64Text
    """1 to 1,048,576 bytes, in base64 with padding."""

    def __post_init__(self) -> None:
        within_u64(self.offset)


class CloseFileParams(Params):
    wire_name = "FsCloseParams"

    handle_id: str


class WatchMissingParams(Params):
    wire_name = "FsWatchMissingParams"

    watch_id: U64
    """Larger than that of every watch before it on this connection; it takes the place of the last one."""
    missing: list[PathText]
    """At most 64 paths."""
    present: PathText | None = None
    """Something that is there, and whose end is to be told too."""

    def __post_init__(self) -> None:
        within_u64(self.watch_id)


class WatchMissingResult(Shape):
    watching: bool
    """False if there is nothing to wait for, or no way to hear of it."""


class MissingChanged(Shape):
    """A path of ``fs/watchMissing`` has appeared or gone.  Sent once per watch."""

    watch_id: U64


READ_FILE = Signature("fs/readFile", ReadFileParams, ReadFileResult)
WRITE_FILE = Signature("fs/writeFile", WriteFileParams, Nothing)
CREATE_DIRECTORY = Signature("fs/createDirectory", CreateDirectoryParams, Nothing)
GET_METADATA = Signature("fs/getMetadata", GetMetadataParams, GetMetadataResult)
CANONICALIZE = Signature("fs/canonicalize", CanonicalizeParams, CanonicalizeResult)
READ_DIRECTORY = Signature("fs/readDirectory", ReadDirectoryParams, ReadDirectoryResult)
WALK = Signature("fs/walk", WalkParams, WalkResult)
REMOVE = Signature("fs/remove", RemoveParams, Nothing)
COPY = Signature("fs/copy", CopyParams, Nothing)
RENAME = Signature("fs/rename", RenameParams, Nothing)
ARCHIVE = Signature("fs/archive", ArchiveParams, OpenFileResult)
EXTRACT = Signature("fs/extract", ExtractParams, OpenFileResult)
OPEN_FILE = Signature("fs/open", OpenFileParams, OpenFileResult)
READ_BLOCK = Signature("fs/readBlock", ReadBlockParams, ReadBlockResult)
WRITE_BLOCK = Signature("fs/writeBlock", WriteBlockParams, Nothing)
CLOSE_FILE = Signature("fs/close", CloseFileParams, Nothing)
WATCH_MISSING = Signature("fs/watchMissing", WatchMissingParams, WatchMissingResult)
