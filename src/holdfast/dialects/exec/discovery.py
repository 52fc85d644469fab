"""The methods by which a client finds out what is installed on this host: capability roots.

What must hold: files are only read as any file request reads them, in its sandbox and within the directories
of its token; whatever is in a root, the answer and what is looked at for it are bounded.
"""

from __future__ import annotations

import errno
import os

import msgspec

from holdfast.dialects.dialect import Pause
from holdfast.dialects.scope import Room
from holdfast.errors import FileFailed, FileRefused, FileUnsupported, LimitReached
from holdfast.files import Files, WalkTerms
from holdfast.protocol import paths
from holdfast.protocol.discovery import (
    CapabilityRoot,
    DiscoveredPlugin,
    DiscoveredSkill,
    DiscoverRootsParams,
    TextFile,
)
from holdfast.protocol.sandbox import sandbox_of
from holdfast.sandbox import Sandbox
from holdfast.wire.jsonrpc import JsonParts, encode

from . import bundles
from .conversation import ExecConversation
from .decoding import local
from .explain import file_text

MOST_ROOTS = 128
"""The protocol's."""

OF_FILE = (FileFailed, FileRefused, FileUnsupported)


async def discover_roots(talk: ExecConversation, params: DiscoverRootsParams) -> JsonParts:
    """Return the plugin, the skills and the manifests in each of some directories."""
    if len(params.roots) > MOST_ROOTS:
        raise FileRefused(f"capability root discovery accepts at most {MOST_ROOTS} roots")
    endpoint = talk.endpoint
    sandboxes = []
    for root in params.roots:
        sandboxes.append(sandbox_of(root.sandbox, None, endpoint.sandbox_limits))
        if root.sandbox is not None:
            await Pause()  # Each may be as long as those of other requests.
    parts = JsonParts((b'{"roots":[',))
    async with talk.discovering:
        await talk.flow()  # The next large answer waits until the client has taken the last one.
        room = Room(endpoint.limits.answer_bytes, "bytes of one answer", name="session.answer_bytes")
        for number, (root, sandbox) in enumerate(zip(params.roots, sandboxes, strict=True)):
            found = RootReader(talk.backend.files, root, sandbox, room)
            await found.look(talk, endpoint.file_limits.walk_bytes)
            parts += (b"," if number else b"", *found.parts())
    parts.append(b"]}")
    return parts


class RootReader:
    """A directory with capabilities, as far as it has been looked at.  What is told of it is JSON already."""

    def __init__(self, files: Files, root: CapabilityRoot, sandbox: Sandbox | None, room: Room) -> None:
        self._files = files
        self._sandbox = sandbox
        self._room = room
        self._left = bundles.ROOT_BYTES
        self._identifier = root.id
        self._uri = paths.parse(root.path)
        self._told = self._uri.uri
        self.plugin: DiscoveredPlugin | None = None
        self._plugin = b"null"
        self._skills: list[bytes] = []
        self._manifests: list[bytes] = []
        self._warnings: list[bytes] = []
        self._error: str | None = None

    @property
    def warned(self) -> bool:
        """Whether anything could not be looked at."""
        return bool(self._warnings)

    def parts(self) -> list[bytes]:
        """Return the answer about it."""
        head = b'{"id":%b,"path":%b,"plugin":' % (encode(self._identifier), encode(self._told))
        parts = [head, self._plugin]
        for name, items in (
            (b"skills", self._skills),
            (b"namespaceManifests", self._manifests),
            (b"warnings", self._warnings),
        ):
            parts += (b',"%b":[' % name, *_joined(items), b"]")
        return [*parts, b',"error":%b}' % encode(self._error)]

    async def look(self, talk: ExecConversation, walk_bytes: int) -> None:
        """Find out what it offers."""
        try:
            path = local(self._uri)
            self._told = paths.to_uri(path)
            async with talk.files.locks.hold(path):
                if not (await self._files.metadata(path, sandbox=self._sandbox)).directory:
                    self._error = f"capability root {self._told} is not a directory"
                    return
                await self._scan(path, walk_bytes)
        except OF_FILE as error:
            self._error = f"failed to inspect capability root {self._told}: {_words(error)}"
        except LimitReached as error:
            self._left_out(error)

    async def _scan(self, path: str, walk_bytes: int) -> None:
        files = await self.walk(path, walk_bytes)
        plugin = await self.find_plugin(path)
        if self.plugin is not None:
            text = encode(self.plugin)
            self._room.take(len(text))
            self._plugin = text
        for directory, manifest in bundles.manifests(files).items():
            if plugin is None or directory != path.rstrip("/"):
                self._add(self._manifests, await self.text(manifest))
        if plugin is not None:
            # It is listed where its URI puts it, and may have been reached by a link that no walk follows.
            self._add(self._manifests, plugin)
            self._manifests.sort(key=_path_of)
        for skill in bundles.skills(files):
            instructions = await self.text(skill)
            if instructions is not None:
                metadata = await self.text(bundles.metadata_of(skill))
                self._add(self._skills, DiscoveredSkill(instructions, metadata))

    async def walk(self, path: str, walk_bytes: int) -> list[str]:
        """Return the files below a directory."""
        terms = WalkTerms(
            depth=bundles.DEPTH,
            directories=bundles.DIRECTORIES,
            entries=bundles.ENTRIES,
            follow=True,
            prune=False,
            budget=walk_bytes,
            spell=str,
        )
        walk = await self._files.walk(path, terms, sandbox=self._sandbox)
        for failed in walk.errors:
            self._warn(
                f"failed to scan capability path {paths.to_uri(failed.path)}: {file_text(failed.number)}"
            )
        if walk.truncated:
            self._warn(f"capability scan reached its traversal limit (root: {self._told})")
        return [entry.path for entry in walk.entries if not entry.directory]

    async def find_plugin(self, path: str) -> TextFile | None:
        """Return the manifest of the plugin that a directory is, and keep its other files."""
        for each in bundles.MANIFESTS:
            manifest = await self.text(os.path.join(path, each))
            if manifest is None:
                continue
            pointers = bundles.Pointers(manifest.contents)
            for member, fault in pointers.faults:
                self._warn(f"ignoring {member} in {manifest.path}: {fault.value}")
            wanted = (pointers.mcp_config, pointers.apps_config)
            others = [(each and await self.text(os.path.join(path, each))) or None for each in wanted]
            self.plugin = DiscoveredPlugin(manifest, *others)
            return manifest
        return None

    async def text(self, path: str) -> TextFile | None:
        """Return a file of text; None if there is none, or, with a warning, if it cannot be had."""
        told, doing = f"capability file {paths.to_uri(path)}", "inspect"
        try:
            facts = await self._files.metadata(path, sandbox=self._sandbox)
            if not facts.file or not self._fits(facts.size, told):
                return None
            doing = "read"
            data = await self._files.read(path, at_once=bundles.FILE_BYTES, sandbox=self._sandbox)
        except OF_FILE as error:
            if getattr(error, "number", 0) != errno.ENOENT:
                self._warn(f"failed to {doing} {told}: {_words(error)}")
            return None
        if not isinstance(data, bytes):
            data.close()  # It has grown meanwhile.
            self._fits(bundles.FILE_BYTES + 1, told)
            return None
        if not self._fits(len(data), told):
            return None
        try:
            contents = data.decode()
        except UnicodeDecodeError as error:
            self._warn(f"{told} is not UTF-8: {bundles.not_utf8(error)}")
            return None
        self._left -= len(data)
        return TextFile(paths.to_uri(path), contents)

    def _fits(self, size: int, told: str) -> bool:
        """Return whether a file of this size may be read, or warn."""
        if size > bundles.FILE_BYTES:
            self._warn(f"{told} exceeds the {bundles.FILE_BYTES}-byte limit")
        elif size > self._left:
            self._warn(f"capability root bundle exceeds the {bundles.ROOT_BYTES}-byte limit")
        else:
            return True
        return False

    def _add(self, items: list[bytes], item: object) -> None:
        if item is not None:
            text = encode(item)
            self._room.take(len(text))
            items.append(text)

    def _warn(self, words: str) -> None:
        self._add(self._warnings, words)

    def _left_out(self, error: LimitReached) -> None:
        """Say that the answer is full.  A root of which nothing is told yet has that as its error."""
        words = f"the answer is limited to {error.value} bytes: ask for this root alone, or for fewer files"
        if self._skills or self._manifests or self._warnings or self._plugin != b"null":
            self._warnings.append(encode(words))
        else:
            self._error = words


def _joined(items: list[bytes]) -> list[bytes]:
    return [part for item in items for part in (b",", item)][1:]


def _path_of(text: bytes) -> str:
    return msgspec.json.decode(text, type=TextFile).path


def _words(error: Exception) -> str:
    return file_text(error.number) if isinstance(error, FileFailed) else str(error)
