"""What a server says of files, as shapes (pure)."""

from __future__ import annotations

from holdfast.dialects.shapes import Shape


class ReadFileResult(Shape):
    data_base64: str


class GetMetadataResult(Shape):
    is_directory: bool
    is_file: bool
    is_symlink: bool
    size: int
    created_at_ms: int
    modified_at_ms: int


class CanonicalizeResult(Shape):
    path: str


class DirectoryEntry(Shape):
    file_name: str
    is_directory: bool
    is_file: bool
    path: str | None = None


class ReadDirectoryResult(Shape):
    entries: list[DirectoryEntry]


class FoundEntry(Shape):
    path: str
    kind: str


class FoundError(Shape):
    path: str
    message: str


class WalkResult(Shape):
    entries: list[FoundEntry]
    errors: list[FoundError]
    truncated: bool


class ReadBlockResult(Shape):
    chunk: str
    eof: bool


class WatchMissingResult(Shape):
    watching: bool


class MissingChanged(Shape):
    watch_id: int
