"""Which files of a capability root count, in what order, and where a plugin's manifest points (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from holdfast.protocol import paths

SKILL = "SKILL.md"
METADATA = "agents/openai.yaml"
MANIFESTS = tuple(f".{kind}-plugin/plugin.json" for kind in ("codex", "claude", "cursor"))
"""Where the manifest of a plugin may be; the first counts."""

DEPTH = 6
DIRECTORIES = 2_000
ENTRIES = 20_000
FILE_BYTES = 1 << 20
ROOT_BYTES = 16 << 20
"""How much of a root is looked at.  All five are the protocol's."""


def skills(files: Iterable[str]) -> list[str]:
    """Return the paths that are a skill's instructions, in the order of their URIs."""
    return sorted((path for path in files if path.endswith(f"/{SKILL}")), key=paths.to_uri)


def metadata_of(skill: str) -> str:
    """Return where the metadata of a skill would be."""
    return skill.removesuffix(SKILL) + METADATA


def manifests(files: Iterable[str]) -> dict[str, str]:
    """Return one manifest for each directory that has any, in the order of their URIs."""
    found: dict[str, tuple[int, str]] = {}
    for path in files:
        for rank, end in enumerate(MANIFESTS):
            if path.endswith(f"/{end}"):
                directory = path.removesuffix(f"/{end}")
                found[directory] = min(found.get(directory, (rank, path)), (rank, path))
    return {
        where: path for where, (_, path) in sorted(found.items(), key=lambda item: paths.to_uri(item[1][1]))
    }


class PointerFault(Enum):
    """Why a path in a manifest is not used."""

    START = "path must start with `./`"
    OUTSIDE = "path must remain below the capability root"


class _Manifest(msgspec.Struct):
    mcpServers: msgspec.Raw = msgspec.Raw(b"null")
    apps: msgspec.Raw = msgspec.Raw(b"null")


class Pointers:
    """Where the manifest of a plugin says that its other files are."""

    def __init__(self, contents: str) -> None:
        """What is no manifest points nowhere: it is the client that tells its user so."""
        self.faults: list[tuple[str, PointerFault]] = []
        """Members whose paths are not used."""
        try:
            found = msgspec.json.decode(contents.encode(), type=_Manifest)
        except (msgspec.DecodeError, RecursionError):
            found = _Manifest()
        servers = self._path("mcpServers", found.mcpServers, ".mcp.json")
        self.mcp_config = None if bytes(found.mcpServers)[:1] == b"{" else servers
        """A path below the root; None if there is no such file, because the manifest says it all itself."""
        self.apps_config = self._path("apps", found.apps, ".app.json")

    def _path(self, member: str, raw: msgspec.Raw, default: str) -> str:
        try:
            text = msgspec.json.decode(raw, type=str)
        except (msgspec.DecodeError, RecursionError):
            return default
        if not text.startswith("./"):
            self.faults.append((member, PointerFault.START))
            return default
        parts = text[2:].split("/")
        if not parts[0] or ".." in parts or "\0" in text or not set(parts) - {"", "."}:
            self.faults.append((member, PointerFault.OUTSIDE))
            return default
        return "/".join(part for part in parts if part not in ("", "."))


def not_utf8(error: UnicodeDecodeError) -> str:
    """Return what is wrong with bytes, in the reference's words."""
    if error.reason == "unexpected end of data":
        return f"incomplete utf-8 byte sequence from index {error.start}"
    return f"invalid utf-8 sequence of {error.end - error.start} bytes from index {error.start}"


# What is installed.


class _Interface(msgspec.Struct):
    displayName: str | None = None


class About(msgspec.Struct):
    """What the manifest of a plugin says of the plugin."""

    name: str | None
    display_name: str | None

    @classmethod
    def read(cls, contents: str) -> About | None:
        """Return what is said; None if it is not a manifest."""
        try:
            found = msgspec.json.decode(contents.encode(), type=_Described)
        except (msgspec.DecodeError, RecursionError):
            return None
        shown = None if found.interface is None else found.interface.displayName
        return cls(found.name, shown)


class _Described(msgspec.Struct):
    name: str | None = None
    interface: _Interface | None = None


def newest(versions: Iterable[str]) -> str | None:
    """Return the version to use: one that is called ``local``, else the highest, part by part."""
    return max(versions, key=lambda name: (name == "local", _parts(name)), default=None)


def _parts(version: str) -> list[tuple[int, int, str]]:
    """Return what a version is compared by: numbers by their size, below words; what is yet to come first."""
    release, dash, _ = version.partition("-")
    # A number has its bound, because what only looks like one takes long to read.
    parts = [
        (0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part)
        for part in release.split(".")
    ]
    return [*parts, (-1, 0, version) if dash else (-1, 1, "")]
