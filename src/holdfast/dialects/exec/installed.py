"""The method by which a client finds what is installed for Codex on this host: plugins and skills.

What must hold is said in ``discovery``, by whose means all of it is read.
"""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.dialects.scope import Room
from holdfast.errors import BadRequest, FileRefused, Forbidden, LimitReached, TooManyEntries
from holdfast.files import Files
from holdfast.protocol import paths
from holdfast.protocol.discovery import (
    CapabilityRoot,
    DiscoverInstalledParams,
    DiscoverInstalledResult,
    InstalledPlugin,
    InstalledSkill,
    PluginSkill,
    SkillRoot,
)
from holdfast.protocol.sandbox import sandbox_of
from holdfast.sandbox import Sandbox
from holdfast.wire.jsonrpc import encode

from . import bundles, skills
from .conversation import ExecConversation
from .decoding import local
from .discovery import OF_FILE, RootReader

MOST_PLUGINS = 128
"""More are left out, as more roots than this are refused."""

_INCOMPLETE = "some capability metadata could not be loaded; discovery may be incomplete"


async def discover_installed(
    talk: ExecConversation, params: DiscoverInstalledParams
) -> DiscoverInstalledResult:
    """Return the plugins and the skills that the server's user, or everybody on this host, has installed."""
    endpoint = talk.endpoint
    sandbox = sandbox_of(params.sandbox, None, endpoint.sandbox_limits)
    try:
        local(paths.parse(params.cwd))
    except FileRefused as error:
        raise BadRequest(str(error)) from None
    async with talk.discovering:
        await talk.flow()  # The next large answer waits until the client has taken the last one.
        room = Room(endpoint.limits.answer_bytes, "bytes of one answer", name="session.answer_bytes")
        search = _Inventory(talk.backend.files, sandbox, room, endpoint.file_limits.walk_bytes)
        places = endpoint.places
        roots = {
            "codex-home-skills": places.codex_home and f"{places.codex_home}/skills",
            "user-agent-skills": places.home and f"{places.home}/.agents/skills",
            "system-skills": f"{places.system}/skills",
        }
        try:
            if places.codex_home is not None:
                await search.find_plugins(f"{places.codex_home}/plugins/cache")
            for name, path in roots.items():
                if path:
                    await search.find_skills(name, path)
        except LimitReached:
            search.complete = False
    return search.found()


class _Inventory:
    """What was found so far, within the room of one answer."""

    def __init__(self, files: Files, sandbox: Sandbox | None, room: Room, walk_bytes: int) -> None:
        self._files = files
        self._sandbox = sandbox
        self._room = room
        self._walk_bytes = walk_bytes
        self._plugins: list[InstalledPlugin] = []
        self._skills: list[InstalledSkill] = []
        self.complete = True

    def found(self) -> DiscoverInstalledResult:
        return DiscoverInstalledResult(self._plugins, self._skills, [] if self.complete else [_INCOMPLETE])

    async def find_skills(self, name: str, path: str) -> None:
        """Add the skills below a directory, if there is one."""
        if (reader := await self._reader(path)) is None:
            return
        root = SkillRoot(name, paths.to_uri(path))
        for skill in bundles.skills(await reader.walk(path, self._walk_bytes)):
            if (found := await self._skill(reader, skill)) is not None:
                whole = InstalledSkill(**msgspec.structs.asdict(found), discovery_root=root)
                self._room.take(len(encode(whole)))
                self._skills.append(whole)
        self.complete = self.complete and not reader.warned

    async def find_plugins(self, cache: str) -> None:
        """Add the plugins of all marketplaces, each in its newest version."""
        found = [
            (plugin, market, f"{cache}/{market}/{plugin}")
            for market in await self._names(cache)
            for plugin in await self._names(f"{cache}/{market}")
        ]
        if len(found) > MOST_PLUGINS:
            self.complete = False
        for plugin, market, path in sorted(found)[:MOST_PLUGINS]:
            if version := bundles.newest(await self._names(path)):
                await self._find_plugin(f"{plugin}@{market}", version, f"{path}/{version}")

    async def _find_plugin(self, identifier: str, version: str, path: str) -> None:
        if (reader := await self._reader(path)) is None:
            return
        manifest = await reader.find_plugin(path)
        about = None if manifest is None else bundles.About.read(manifest.contents)
        if about is None or reader.plugin is None:
            self.complete = False
            return
        name = about.name or paths.printable(version)
        files = await reader.walk(path, self._walk_bytes)
        found = [await self._skill(reader, skill, f"{name}:") for skill in bundles.skills(files)]
        whole = InstalledPlugin(
            id=paths.printable(identifier),
            display_name=about.display_name or name,
            remote_plugin_id=None,
            version=paths.printable(version),
            root=paths.to_uri(path),
            files=reader.plugin,
            skills=[skill for skill in found if skill is not None],
        )
        self._room.take(len(encode(whole)))
        self._plugins.append(whole)
        self.complete = self.complete and not reader.warned

    async def _skill(self, reader: RootReader, path: str, prefix: str = "") -> PluginSkill | None:
        text = await reader.text(path)
        if text is None:
            return None
        metadata = await reader.text(bundles.metadata_of(path))
        default = paths.printable(path.split("/")[-2])
        loop = asyncio.get_running_loop()

        def work() -> tuple[PluginSkill | None, bool]:
            try:
                skill = skills.described(text.contents, default=default, uri=text.path, prefix=prefix)
            except ValueError:
                return None, False
            try:
                if metadata is not None:
                    skills.add_metadata(skill, metadata.contents)
            except ValueError:
                return skill, False
            return skill, True

        # In a thread: a front matter may be long, and its reader is written in Python.
        found, whole = await loop.run_in_executor(None, work)
        self.complete = self.complete and whole
        return found

    async def _reader(self, path: str) -> RootReader | None:
        """Return a reader of a directory; None if there is none that this client may read."""
        root = CapabilityRoot("", paths.to_uri(path))
        try:
            facts = await self._files.metadata(path, sandbox=self._sandbox)
        except (Forbidden, *OF_FILE):
            return None
        return RootReader(self._files, root, self._sandbox, self._room) if facts.directory else None

    async def _names(self, path: str) -> list[str]:
        """Return the directories in a directory; none if it cannot be listed."""
        try:
            entries = await self._files.list(path, sandbox=self._sandbox)
        except (Forbidden, *OF_FILE):
            return []
        except TooManyEntries:
            self.complete = False
            return []
        return sorted(entry.name for entry in entries if entry.directory)
