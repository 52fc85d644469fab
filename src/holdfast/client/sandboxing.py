"""What a sandboxed command may do, from the values of ``holdfast.sandbox`` to the wire (pure).

The inverse of ``dialects.exec.sandboxing``: what is told means exactly what was asked for, or
nothing is told.
"""

from __future__ import annotations

from typing import Any

from holdfast.errors import BadRequest
from holdfast.sandbox import Access, Entry, Named, Pattern, Protection, Sandbox, Where
from holdfast.web import is_unicode

from .uris import uri_of

_ACCESS = {Access.READ: "read", Access.WRITE: "write", Access.DENY: "deny"}
_LEAST = {Protection.HARD: "hard", Protection.SOFT: "soft", Protection.NONE: "none"}
_DEEPEST = 2**64
"""The protocol counts with 64 bits."""


def context_of(sandbox: Sandbox) -> dict[str, Any]:
    """The sandbox as a request tells it.

    Raises:
        BadRequest: The protocol has no words for it.
    """
    if not sandbox.confines:
        # Also on the wire this is the same as no sandbox.
        return {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"}
    context: dict[str, Any] = {
        "permissions": {
            "type": "managed",
            "file_system": _file_system(sandbox),
            "network": "enabled" if sandbox.network else "restricted",
        },
        # Required, and means nothing where it is told.
        "windowsSandboxLevel": "disabled",
        "cwd": uri_of(sandbox.cwd),
        "workspaceRoots": [uri_of(root) for root in sandbox.roots],
    }
    if sandbox.least is not Protection.SOFT:
        # Soft is what a server gives without being asked; others than ours do not know the word.
        context["protectsSubpaths"] = _LEAST[sandbox.least]
    return context


def _file_system(sandbox: Sandbox) -> dict[str, Any]:
    if sandbox.entries is None:
        return {"type": "unrestricted"}  # Without entries the depth of patterns means nothing.
    told: dict[str, Any] = {"type": "restricted", "entries": [_entry(entry) for entry in sandbox.entries]}
    if sandbox.pattern_depth is not None:
        if not 1 <= sandbox.pattern_depth < _DEEPEST:
            raise BadRequest("a sandbox looks at least one directory deep for patterns", field="sandbox")
        told["glob_scan_max_depth"] = sandbox.pattern_depth
    return told


def _entry(entry: Entry) -> dict[str, Any]:
    told: dict[str, Any] = {"path": _place(entry.place), "access": _ACCESS[entry.access]}
    if entry.if_there:
        told["missing_path_behavior"] = "skip"
    return told


def _place(place: str | Named | Pattern) -> dict[str, Any]:
    match place:
        case str():
            return {"type": "path", "path": uri_of(place)}
        case Pattern(text):
            return {"type": "glob_pattern", "pattern": _told(text)}
        case Named(Where.PROJECT_ROOTS, below) if below:
            return {"type": "special", "value": {"kind": "project_roots", "subpath": _told(below)}}
        case Named(where, "") if where in Where:
            return {"type": "special", "value": {"kind": where.value}}
        case Named(where, below):
            raise BadRequest(f"the protocol has no word for {below!r} below {where.value!r}", field="sandbox")


def _told(text: str) -> str:
    if not is_unicode(text):
        raise BadRequest(f"{text!r} has bytes that are not UTF-8", field="sandbox")
    return text
