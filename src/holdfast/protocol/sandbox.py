"""What a sandboxed command may do, on the wire and as values of ``holdfast.sandbox``, both ways (pure).

The outer shape is in camelCase, the permissions in it are not.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast import sandbox as model
from holdfast.config import SandboxLimits
from holdfast.errors import BadRequest, LimitReached
from holdfast.model import is_unicode, utf8_size

from . import paths
from .paths import uri_of
from .shapes import Params, PathText, checked, within_u64


class SandboxLevel(Enum):
    """How clients sandbox commands on Windows.  The server checks it and does not use it."""

    DISABLED = "disabled"
    RESTRICTED_TOKEN = "restricted-token"  # noqa: S105  (no password)
    ELEVATED = "elevated"
    MXC = "mxc"


class ProxySettingsMode(Enum):
    """How clients set proxies on Windows.  The server checks it and does not use it."""

    RECONCILE = "reconcile"
    PRESERVE_DURING_BOOTSTRAP = "preserve-during-bootstrap"


class SandboxOverride(Enum):
    """Whether a client has overridden its own sandbox.  The server checks it and does not use it."""

    NO_OVERRIDE = "noOverride"
    ESCALATED = "escalatedSandboxWithRestrictions"
    BYPASS = "bypassSandboxFirstAttempt"


class NetworkAccess(Enum):
    RESTRICTED = "restricted"
    ENABLED = "enabled"


class EntryAccess(Enum):
    READ = "read"
    WRITE = "write"
    DENY = "deny"
    NONE = "none"
    """An older word for ``deny``."""


class MissingPath(Enum):
    SKIP = "skip"


class LeastProtection(Enum):
    """How well something inside a writable place must be kept from being written."""

    HARD = "hard"
    """The kernel has to protect it."""
    SOFT = "soft"
    """The server at least has to: it makes the calls of the command that change files, or refuses them."""
    NONE = "none"


class _Place(msgspec.Struct, tag_field="kind", omit_defaults=True):
    """A place that has a name of its own; ``kind`` says which."""

    wire_union: ClassVar[str] = "FileSystemSpecialPath"


class RootPlace(_Place, tag="root"):
    """``/``."""


class Minimal(_Place, tag="minimal"):
    """What programs need to run at all."""


class ProjectRoots(_Place, tag="project_roots"):
    subpath: str | None = None


class WorkingDirectory(_Place, tag="current_working_directory"):
    """The former name of ``project_roots``."""

    subpath: str | None = None


class TmpdirPlace(_Place, tag="tmpdir"):
    """The directory that ``TMPDIR`` of the command names."""


class SlashTmp(_Place, tag="slash_tmp"):
    """``/tmp``."""


class UnknownPlace(_Place, tag="unknown"):
    """A place of a kind that this version does not know.  The entry is ignored."""

    path: str
    subpath: str | None = None


SpecialPlace = RootPlace | Minimal | WorkingDirectory | ProjectRoots | TmpdirPlace | SlashTmp | UnknownPlace


def _read_path(uri: str) -> str:
    found = paths.parse(uri)
    if found.path is None:
        raise BadRequest(f"invalid sandbox permission path URI: '{found.uri}' is invalid on 'linux'")
    return found.path


PermissionPath = Annotated[str, checked(_read_path)]


class _Typed(msgspec.Struct, tag_field="type", omit_defaults=True):
    """One of several shapes; ``type`` says which."""


class PathEntry(_Typed, tag="path"):
    wire_union: ClassVar[str] = "ExecFileSystemPath"

    path: PermissionPath
    """A ``file:`` URI or a native absolute path."""


class PatternEntry(_Typed, tag="glob_pattern"):
    pattern: str
    """``*`` and ``?`` stay inside a directory, ``**`` does not; relative to ``cwd``."""


class SpecialEntry(_Typed, tag="special"):
    value: SpecialPlace


class PermissionEntry(msgspec.Struct, omit_defaults=True):
    wire_name: ClassVar[str] = "ExecFileSystemSandboxEntry"

    path: PathEntry | PatternEntry | SpecialEntry
    access: EntryAccess
    missing_path_behavior: MissingPath | None = None


class Restricted(_Typed, tag="restricted"):
    wire_union: ClassVar[str] = "ExecManagedFileSystemPermissions"

    entries: list[PermissionEntry]
    glob_scan_max_depth: Annotated[int, Meta(ge=1, title="usize")] | None = None
    """How many directories deep ``**`` looks."""

    def __post_init__(self) -> None:
        within_u64(self.glob_scan_max_depth)


class Unrestricted(_Typed, tag="unrestricted"):
    pass


class Managed(_Typed, tag="managed"):
    wire_union: ClassVar[str] = "ExecPermissionProfile"

    file_system: Restricted | Unrestricted
    network: NetworkAccess


class Disabled(_Typed, tag="disabled"):
    """No sandbox."""


class External(_Typed, tag="external"):
    """The client says that another sandbox protects the files already."""

    network: NetworkAccess


class SandboxContext(Params):
    wire_name = "WireFileSystemSandboxContext"

    permissions: Managed | Disabled | External
    windows_sandbox_level: SandboxLevel
    """Required, and means nothing here."""
    cwd: PathText | None = None
    """What relative patterns are relative to; that of the process if there is one."""
    workspace_roots: list[PathText] | UnsetType = UNSET
    """What ``project_roots`` stands for.  Absent: nothing; but ``cwd``, if that is a native path."""
    windows_sandbox_private_desktop: bool = False
    windows_sandbox_proxy_settings_mode: ProxySettingsMode | None = None
    use_legacy_landlock: bool = False
    """Means nothing here: what keeps the sandbox is chosen when the server starts."""
    sandbox_override: SandboxOverride | None = None
    user_home_dir: PathText | None = None
    temporary_directories: list[PathText] | None = None
    protects_subpaths: LeastProtection | None = None
    """The least that is good enough; null is ``soft``."""


# From the wire.

_ACCESS = {
    EntryAccess.READ: model.Access.READ,
    EntryAccess.WRITE: model.Access.WRITE,
    EntryAccess.DENY: model.Access.DENY,
    EntryAccess.NONE: model.Access.DENY,
}
_LEAST = {
    None: model.Protection.SOFT,
    LeastProtection.HARD: model.Protection.HARD,
    LeastProtection.SOFT: model.Protection.SOFT,
    LeastProtection.NONE: model.Protection.NONE,
}
_DYNAMIC = (ProjectRoots, WorkingDirectory)


def sandbox_of(
    context: SandboxContext | None,
    cwd: str | None,
    limits: SandboxLimits = SandboxLimits(),  # noqa: B008  (a value that never changes)
) -> model.Sandbox | None:
    """Return the sandbox that a request asks for; None if it forbids nothing.

    Args:
        cwd: The directory of the process, if there is one.

    Raises:
        BadRequest: A path is not one of this host, or the directory is missing.
        LimitReached: There is too much of it to be read on the loop.
    """
    if context is None:
        return None
    _check_size(context, limits)
    directory = cwd
    if context.cwd is not None:
        directory = _local(context.cwd, "sandbox cwd")
    roots = tuple(_local(uri, "sandbox workspace root") for uri in _roots(context))
    permissions = context.permissions
    if isinstance(permissions, Disabled):
        return None
    network = permissions.network is NetworkAccess.ENABLED
    entries: tuple[model.SandboxEntry, ...] | None = None
    depth = None
    if isinstance(permissions, Managed) and isinstance(permissions.file_system, Restricted):
        if directory is None and any(_needs_directory(entry) for entry in permissions.file_system.entries):
            raise BadRequest("file system sandbox context with dynamic permissions requires cwd")
        entries = tuple(
            model.SandboxEntry(place, _ACCESS[entry.access], if_there=entry.missing_path_behavior is not None)
            for entry in permissions.file_system.entries
            if (place := _place(entry.path)) is not None
        )
        depth = permissions.file_system.glob_scan_max_depth
    wanted = model.Sandbox(
        entries, network, directory or "/", roots, depth, least=_LEAST[context.protects_subpaths]
    )
    return wanted if wanted.confines else None


def _check_size(context: SandboxContext, limits: SandboxLimits) -> None:
    """Look at how much there is before any of it is read: reading a path takes microseconds."""
    # Temporary directories mean nothing here, but there is no reason to take more of them.
    roots = [*(context.workspace_roots or ()), *(context.temporary_directories or ())]
    if len(roots) > limits.roots:
        raise LimitReached("roots of a sandbox", limits.roots, name="sandbox.roots")
    entries: list[PermissionEntry] = []
    permissions = context.permissions
    if isinstance(permissions, Managed) and isinstance(permissions.file_system, Restricted):
        entries = permissions.file_system.entries
    if len(entries) > limits.entries:
        raise LimitReached("entries of a sandbox", limits.entries, name="sandbox.entries")
    size = sum(map(utf8_size, (context.cwd or "", *roots, *(_text(entry.path) for entry in entries))))
    if size > limits.text_bytes:
        raise LimitReached("bytes of all paths of a sandbox", limits.text_bytes, name="sandbox.text_bytes")


def _text(path: PathEntry | PatternEntry | SpecialEntry) -> str:
    """What of a place has to be read."""
    match path:
        case PathEntry(path=text) | PatternEntry(pattern=text):
            return text
        case SpecialEntry(value=ProjectRoots(subpath=below) | WorkingDirectory(subpath=below)):
            return below or ""
    return ""


def _roots(context: SandboxContext) -> list[str]:
    """What was sent as the roots of the workspace.

    Clients up to 0.130 do not know the member and mean the directory; later ones
    mean that there are none.  Only the former send that directory as a native path.
    """
    if context.workspace_roots is not UNSET:
        return context.workspace_roots
    return [context.cwd] if context.cwd is not None and context.cwd.startswith("/") else []


def _needs_directory(entry: PermissionEntry) -> bool:
    match entry.path:
        case SpecialEntry(value=value):
            return isinstance(value, _DYNAMIC)
        case PatternEntry(pattern=pattern):
            return not pattern.startswith("/")
    return False


def _place(path: PathEntry | PatternEntry | SpecialEntry) -> str | model.Named | model.Pattern | None:
    match path:
        case PathEntry(path=uri):
            return _read_path(uri)
        case PatternEntry(pattern=pattern):
            return model.Pattern(pattern)
        case SpecialEntry(value=ProjectRoots(subpath=below) | WorkingDirectory(subpath=below)):
            return model.Named(model.Where.PROJECT_ROOTS, below or "")
        case SpecialEntry(value=RootPlace()):
            return model.Named(model.Where.ROOT)
        case SpecialEntry(value=Minimal()):
            return model.Named(model.Where.MINIMAL)
        case SpecialEntry(value=TmpdirPlace()):
            return model.Named(model.Where.TMPDIR)
        case SpecialEntry(value=SlashTmp()):
            return model.Named(model.Where.SLASH_TMP)
    return None


def _local(uri: str, what: str) -> str:
    found = paths.parse(uri)
    if found.path is None:
        uri, host = found.uri, "this exec-server host"
        raise BadRequest(f"{what} URI `{uri}` is not valid on {host}: '{uri}' is invalid on 'linux'")
    return found.path


# To the wire.  What is told means exactly what was asked for, or nothing is told.

_ACCESS_WORDS = {access: word for word, access in _ACCESS.items() if word is not EntryAccess.NONE}
_LEAST_WORDS = {least: word for word, least in _LEAST.items() if word is not None}
_NAMED_PLACES: dict[model.Where, type[RootPlace | Minimal | TmpdirPlace | SlashTmp | ProjectRoots]] = {
    model.Where.ROOT: RootPlace,
    model.Where.MINIMAL: Minimal,
    model.Where.PROJECT_ROOTS: ProjectRoots,
    model.Where.TMPDIR: TmpdirPlace,
    model.Where.SLASH_TMP: SlashTmp,
}
_DEEPEST = 2**64
"""The protocol counts with 64 bits."""


def context_of(sandbox: model.Sandbox) -> SandboxContext:
    """The sandbox as a request tells it.

    Raises:
        BadRequest: The protocol has no words for it.
    """
    if not sandbox.confines:
        # Also on the wire this is the same as no sandbox.
        return SandboxContext(Disabled(), SandboxLevel.DISABLED)
    if not sandbox.is_placed:
        raise BadRequest("a sandbox with relative paths needs a directory: Sandbox.at gives it one")
    network = NetworkAccess.ENABLED if sandbox.network else NetworkAccess.RESTRICTED
    return SandboxContext(
        Managed(_file_system(sandbox), network),
        SandboxLevel.DISABLED,
        cwd=uri_of(sandbox.cwd) if sandbox.cwd else None,
        workspace_roots=[uri_of(root) for root in sandbox.roots],
        # Soft is what a server gives without being asked; others than ours do not know the word.
        protects_subpaths=None if sandbox.least is model.Protection.SOFT else _LEAST_WORDS[sandbox.least],
    )


def _file_system(sandbox: model.Sandbox) -> Restricted | Unrestricted:
    if sandbox.entries is None:
        return Unrestricted()  # Without entries the depth of patterns means nothing.
    depth = sandbox.pattern_depth
    if depth is not None and not 1 <= depth < _DEEPEST:
        raise BadRequest("a sandbox looks at least one directory deep for patterns", field="sandbox")
    return Restricted([_entry(entry) for entry in sandbox.entries], depth)


def _entry(entry: model.SandboxEntry) -> PermissionEntry:
    missing = MissingPath.SKIP if entry.if_there else None
    return PermissionEntry(_place_told(entry.place), _ACCESS_WORDS[entry.access], missing)


def _place_told(place: str | model.Named | model.Pattern) -> PathEntry | PatternEntry | SpecialEntry:
    match place:
        case str():
            return PathEntry(uri_of(place))
        case model.Pattern(text):
            return PatternEntry(_unicode(text))
        case model.Named(model.Where.PROJECT_ROOTS, below) if below:
            return SpecialEntry(ProjectRoots(_unicode(below)))
        case model.Named(where, "") if where in _NAMED_PLACES:
            return SpecialEntry(_NAMED_PLACES[where]())
        case model.Named(where, below):
            raise BadRequest(f"the protocol has no word for {below!r} below {where.value!r}", field="sandbox")


def _unicode(text: str) -> str:
    if not is_unicode(text):
        raise BadRequest(f"{text!r} has bytes that are not UTF-8", field="sandbox")
    return text
