"""Shapes of what a host offers to agents: capability roots, with their plugins and skills (pure)."""

from __future__ import annotations

from .sandbox import SandboxContext
from .shapes import Params, PathText, Shape, Signature

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
