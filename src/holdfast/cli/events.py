"""The command ``events``: what happens to the processes of a server, line by line."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from holdfast.api.host import Host
from holdfast.model import Listing, Outcome
from holdfast.process_events import EventKind, ProcessEvent
from holdfast.wording import counted

from .explain import code_of, state_of
from .options import wants_json
from .report import ExitCode, Failure, cut, plain, tell
from .show import is_live, listing_document, outcome_document, tell_json, usage_document
from .target import perform

_LONGEST_COMMAND = 120
"""Characters of a command line; ``-o json`` has more."""

_KIND_WIDTH = max(map(len, EventKind))


def events(arguments: argparse.Namespace) -> int:
    """Print events until the user leaves, or a process has ended; return its exit code."""

    async def work(host: Host) -> int:
        async with host.events() as following:
            awaited = None
            if arguments.until_exit is not None:
                # Behind the subscription: an end that comes now is told.
                found = await host.place.describe(arguments.until_exit)
                if not is_live(found):
                    return _code(found.outcome, found.exit_code)
                awaited = found.identifier
            async for event in following:
                if _is_wanted(event, arguments.names):
                    _print(event, json=wants_json(arguments))
                code = None if awaited is None else _end_of(awaited, event, arguments.until_exit)
                if code is not None:
                    return code
        raise Failure("the server tells no more events")

    return perform(arguments, work)


def _is_wanted(event: ProcessEvent, names: Collection[str] | None) -> bool:
    is_named = names is None or event.name in names or event.identifier in names
    return is_named or event.kind is EventKind.GAP


def _end_of(identifier: str, event: ProcessEvent, name: str) -> int | None:
    """Return the exit code of a process, if an event says that it has ended.

    Raises:
        Failure: It has ended, and nobody knows how.
    """
    if event.kind is EventKind.GAP and event.processes is not None:
        for listing in event.processes:
            if listing.identifier == identifier:
                return None if is_live(listing) else _code(listing.outcome, listing.exit_code)
    elif event.identifier != identifier or event.kind not in (EventKind.EXITED, EventKind.FORGOTTEN):
        return None
    elif event.kind is EventKind.EXITED:
        return _code(event.outcome, event.exit_code)
    raise Failure(f"{plain(name)} has ended; how it ended is no longer known")


def _code(outcome: Outcome | None, exit_code: int | None) -> int:
    if outcome is not None:
        return code_of(outcome)
    return ExitCode.FAILED if exit_code is None else exit_code


# Lines and documents.


def _print(event: ProcessEvent, *, json: bool) -> None:
    if json:
        tell_json(event_document(event))
    else:
        tell(event_line(event))
        sys.stdout.flush()


def event_line(event: ProcessEvent) -> str:
    """Describe an event for people."""
    clock = time.strftime("%H:%M:%S", time.localtime(event.time))
    words = [clock, event.kind.value.ljust(_KIND_WIDTH)]
    if event.kind is EventKind.GAP:
        words.append(_gap(event.lost, event.processes))
    else:
        words += [plain(event.name), *_more(event)]
    return "  ".join(words).rstrip()


def _more(event: ProcessEvent) -> Sequence[str]:
    if event.kind is EventKind.STARTED:
        return [f"pid {event.pid}", cut(plain(shlex.join(event.argv)), _LONGEST_COMMAND)]
    if event.kind is EventKind.EXITED:
        return [state_of("exited", event.outcome, event.exit_code)]
    return []


def _gap(lost: int | None, processes: Sequence[Listing] | None) -> str:
    missing = "events are missing" if lost is None else f"{counted(lost, 'event')} missing"
    if processes is None:
        return missing
    live = sum(map(is_live, processes))
    return f"{missing}; processes that run now: {live}"


def event_document(event: ProcessEvent) -> Mapping[str, Any]:
    """Describe an event for ``events -o json``, with the members that its kind has."""
    document: dict[str, Any] = {"seq": event.seq, "kind": event.kind.value, "atMs": round(event.time * 1000)}
    if event.kind is EventKind.GAP:
        known = event.processes
        listed = None if known is None else [listing_document(each) for each in known]
        return document | {"lost": event.lost, "processes": listed}
    document |= {"id": event.identifier, "name": event.name, "pid": event.pid}
    if event.kind is EventKind.STARTED:
        argv = [word.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for word in event.argv]
        document |= {"argv": argv, "tty": event.terminal, "kept": event.kept}
    elif event.kind is EventKind.EXITED:
        document |= {
            "exitCode": event.exit_code,
            "outcome": outcome_document(event.outcome),
            "usage": usage_document(event.usage),
        }
    return document
