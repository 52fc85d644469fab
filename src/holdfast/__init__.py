"""holdfast runs processes for programs.

``connect`` and ``local`` return a ``Host``, which starts processes; ``run`` runs a single command to its end.
``holdfast.sync`` has ``connect`` and ``local`` for programs without an event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import DEVNULL, PIPE, STDOUT

    from . import sync
    from .api.capture import HeadTail
    from .api.completed import CommandExited, CommandFailed, CommandTimedOut, Completed, Omitted, TimedOut
    from .api.handle import Handle
    from .api.host import Host, connect, local
    from .api.sync import run
    from .api.waiting import ProcessEnded, WaitTimedOut
    from .conditions import Waited, WaitEnd
    from .errors import (
        HoldfastError,
        LimitReached,
        LinkFault,
        LinkLost,
        NameAmbiguous,
        NameTaken,
        OutcomeUnknown,
        OutOfTurn,
        OutputGap,
        ProcessLost,
        SpawnFailed,
        StillRunning,
        UnknownProcess,
    )
    from .inspection import Inspection
    from .model import Chunk, CurrentUsage, Ended, Kind, Limits, Listing, Outcome, Size, Stream, Usage
    from .process_events import EventKind, ProcessEvent
    from .ranges import OutputRange
    from .recordings import HostRecording
    from .sandbox import Denial, Sandbox

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(
        ("CommandExited", "CommandFailed", "CommandTimedOut", "Completed", "Omitted", "TimedOut"),
        "api.completed",
    ),
    "Handle": "api.handle",
    "HeadTail": "api.capture",
    "Host": "api.host",
    "connect": "api.host",
    "local": "api.host",
    "run": "api.sync",
    "Inspection": "inspection",
    "OutputRange": "ranges",
    "HostRecording": "recordings",
    "ProcessEnded": "api.waiting",
    "WaitTimedOut": "api.waiting",
    "WaitEnd": "conditions",
    "Waited": "conditions",
    **dict.fromkeys(
        (
            "HoldfastError",
            "LimitReached",
            "LinkFault",
            "LinkLost",
            "NameAmbiguous",
            "NameAmbiguous",
            "NameTaken",
            "OutOfTurn",
            "OutcomeUnknown",
            "OutputGap",
            "ProcessLost",
            "SpawnFailed",
            "StillRunning",
            "UnknownProcess",
        ),
        "errors",
    ),
    **dict.fromkeys(
        ("Chunk", "CurrentUsage", "Ended", "Kind", "Limits", "Listing", "Outcome", "Size", "Stream", "Usage"),
        "model",
    ),
    **dict.fromkeys(("EventKind", "ProcessEvent"), "process_events"),
    **dict.fromkeys(("Denial", "Sandbox"), "sandbox"),
}
"""The module of each name, imported when the name is first used: ``import holdfast`` stays quick."""

__all__ = [
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "Chunk",
    "CommandExited",
    "CommandFailed",
    "CommandTimedOut",
    "Completed",
    "CurrentUsage",
    "Denial",
    "Ended",
    "EventKind",
    "Handle",
    "HeadTail",
    "HoldfastError",
    "Host",
    "HostRecording",
    "Inspection",
    "Kind",
    "LimitReached",
    "Limits",
    "LinkFault",
    "LinkLost",
    "Listing",
    "NameAmbiguous",
    "NameTaken",
    "Omitted",
    "OutOfTurn",
    "Outcome",
    "OutcomeUnknown",
    "OutputGap",
    "OutputRange",
    "ProcessEnded",
    "ProcessEvent",
    "ProcessLost",
    "Sandbox",
    "Size",
    "SpawnFailed",
    "StillRunning",
    "Stream",
    "TimedOut",
    "UnknownProcess",
    "Usage",
    "WaitEnd",
    "WaitTimedOut",
    "Waited",
    "__version__",
    "connect",
    "local",
    "run",
    "sync",
]


if not TYPE_CHECKING:  # Otherwise the type checker would accept any name.

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in ("DEVNULL", "PIPE", "STDOUT"):
            value: object = getattr(import_module("subprocess"), name)
        elif name == "sync":
            value = import_module(".sync", __name__)
        elif name in _HOMES:
            value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)


def old_names(module: str, names: dict[str, str]) -> Callable[[str], object]:
    """Return a ``__getattr__`` for a module whose public names were changed.

    An old name goes on working for one version, with a ``DeprecationWarning`` that says the new one.  Type
    checkers must not see the function in the module: they would accept any name then.

    Args:
        module: ``__name__`` of the module.
        names: The new name of each old one.
    """

    def find(name: str) -> object:
        import sys

        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        renamed(f"{module}.{name}", names[name])
        return getattr(sys.modules[module], names[name])

    return find


def renamed(old: str, new: str) -> None:
    """Warn the caller of our caller that something was renamed."""
    import warnings  # Here: ``import holdfast`` stays quick.

    warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=3)
