"""Shapes of what a host offers to agents: capability roots, with their plugins and skills (pure)."""

from __future__ import annotations

from .sandbox import SandboxContext
from .shapes import U16, Params, PathText, Shape, Signature

# Capability roots.


class CapabilityRoot(Params):
    wire_name = "WireCapabilityRootDiscoverParams"

    id: str
    """A name of the client's choice, which is in the answer."""
    path: PathText
    """URI of the directory."""
    sandbox: SandboxContext | None = None
    """Nothing is told of the directory that a command in this sandbox could not read."""


class DiscoverRootsParams(Params):
    wire_name = "WireCapabilityRootsDiscoverParams"

    roots: list[CapabilityRoot]
    """At most 128."""


class TextFile(Shape):
    path: str
    """URI."""
    contents: str


class DiscoveredSkill(Shape):
    instructions: TextFile
    """A ``SKILL.md``."""
    metadata: TextFile | None
    """``agents/openai.yaml`` beside it."""


class DiscoveredPlugin(Shape):
    manifest: TextFile
    """``plugin.json`` in ``.codex-plugin``, ``.claude-plugin`` or ``.cursor-plugin``; the first that can be
    read."""
    mcp_config: TextFile | None
    """The file that ``mcpServers`` of the manifest names, else ``.mcp.json``; null if the manifest has an
    object there."""
    apps_config: TextFile | None
    """The file that ``apps`` of the manifest names, else ``.app.json``."""


class DiscoveredRoot(Shape):
    id: str
    path: str
    """URI, without dots."""
    plugin: DiscoveredPlugin | None
    """If the directory itself is a plugin's."""
    skills: list[DiscoveredSkill]
    """In the order of their URIs."""
    namespace_manifests: list[TextFile]
    """Manifests of the directory and of those below it, in the order of their URIs."""
    warnings: list[str]
    """What could not be looked at, and what was left out."""
    error: str | None
    """Why there is nothing else."""


class DiscoverRootsResult(Shape):
    roots: list[DiscoveredRoot]
    """In the order of the request."""


DISCOVER_ROOTS = Signature("capabilityRoots/discoverV1", DiscoverRootsParams, DiscoverRootsResult)


# What is installed.


class DiscoverInstalledParams(Params):
    wire_name = "DiscoverV2CapabilitiesRequest"

    cwd: PathText
    """URI of a directory of this host; what is installed does not depend on it."""
    sandbox: SandboxContext | None = None
    """Nothing is told of what a command in this sandbox could not read."""


class SkillTool(Shape):
    type: str
    value: str
    description: str | None = None
    transport: str | None = None
    command: str | None = None
    url: str | None = None
    oauth_callback_port: U16 | None = None
    """Null."""


class SkillDependencies(Shape):
    tools: list[SkillTool]


class SkillPolicy(Shape):
    allow_implicit_invocation: bool | None
    products: list[str]


class PluginSkill(Shape):
    name: str
    """With the name of its plugin, if it belongs to one: ``choir:sing``."""
    description: str
    short_description: str | None
    path: str
    """URI of its ``SKILL.md``."""
    dependencies: SkillDependencies | None
    policy: SkillPolicy | None


class SkillRoot(Shape):
    id: str
    """``codex-home-skills``, ``user-agent-skills`` or ``system-skills``."""
    path: str
    """URI."""


class InstalledSkill(PluginSkill):
    discovery_root: SkillRoot


class InstalledPlugin(Shape):
    id: str
    """``NAME@MARKETPLACE``."""
    display_name: str
    remote_plugin_id: str | None
    """Null."""
    version: str
    root: str
    """URI."""
    files: DiscoveredPlugin
    skills: list[PluginSkill]


class DiscoverInstalledResult(Shape):
    plugins: list[InstalledPlugin]
    """In the order of their names."""
    skills: list[InstalledSkill]
    """Root by root, in the order of their URIs."""
    warnings: list[str]


DISCOVER_INSTALLED = Signature("capabilities/discoverV2", DiscoverInstalledParams, DiscoverInstalledResult)
