"""The words of this project: each is defined by the first sentence of what it names in the source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docs.source_map import SOURCE, first_line

WORDS = {
    "spec": "model.py Spec",
    "process": "backend.py Process",
    "pending start": "engine/children.py PendingStart",
    "ended process": "engine/ended.py EndedProcess",
    "hosted process": "backend.py HostedProcess",
    "terms": "model.py ProcessTerms",
    "watchdog": "engine/watchdog.py",
    "outcome": "model.py Outcome",
    "leftovers": "model.py Leftovers",
    "backend": "backend.py Backend",
    "chunk": "model.py Chunk",
    "ring": "engine/ring.py Ring",
    "watcher": "backend.py Watcher",
    "valve": "backend.py Valve",
    "tree": "engine/tree.py Tree",
    "shim": "host/native/shim.c",
    "fork server": "host/native/fork_server.c",
    "keeper": "host/native/keeper.c",
    "spare": "host/native/spare.c",
    "hand-over": "host/keeper.py Handover",
    "arena": "host/arena.py",
    "account": "engine/account.py Account",
    "snapshot": "dialects/exec/state.py EndpointSnapshot",
    "envelope": "wire/jsonrpc.py Envelope",
    "signature": "protocol/shapes.py Signature",
    "endpoint": "dialects/dialect.py Endpoint",
    "conversation": "dialects/dialect.py Conversation",
    "catalog": "dialects/dialect.py Catalog",
    "scope": "dialects/scope.py Scope",
    "strays": "dialects/scope.py Strays",
    "announcer": "announcing.py Announcer",
    "tenant": "dialects/exec/scopes.py Tenant",
    "session": "dialects/exec/scopes.py Session",
    "shared processes": "dialects/exec/scopes.py SharedProcesses",
    "entry": "dialects/exec/entries.py Entry",
    "notifier": "dialects/exec/entries.py Notifier",
    "window": "dialects/exec/window.py Window",
    "retention": "dialects/exec/window.py Retention",
    "path lock": "dialects/exec/path_locks.py PathLock",
    "run": "dialects/app/conversation.py Run",
    "order": "dialects/app/order.py Order",
    "cap": "dialects/app/output.py Capped",
    "drain": "dialects/app/output.py Drain",
    "family": "dialects/app/order.py Family",
    "connection": "server/connection.py Connection",
    "channel": "server/channel.py Channel",
    "send queue": "server/channel.py SendQueue",
    "HTTP phase": "server/http_phase.py HttpPhase",
    "route": "server/routes.py Route",
    "call": "server/calls.py Call",
    "poller": "poller.py Poller",
    "source": "poller.py Source",
    "stall": "stalls.py Stalls",
    "principal": "principal.py Principal",
    "grant": "principal.py Grant",
    "link": "client/link.py Link",
    "cursor": "client/cursor.py Cursor",
    "allowance": "allowance.py Allowance",
    "host": "api/host.py Host",
    "handle": "api/handle.py Handle",
    "sandbox": "sandbox.py Sandbox",
    "rules": "sandbox.py Rules",
    "sandbox backend": "host/sandbox/backends.py SandboxBackend",
    "confinement": "host/sandbox/confinement.py Confinement",
    "filter": "host/sandbox/filter.py",
    "witness": "host/native/witness.c",
    "guard": "host/native/guard.c",
    "mask": "host/native/mask.c",
    "denial": "sandbox.py Denial",
    "resolver": "host/files/resolver.py Resolver",
}


def definition(place: str) -> str:
    """The first sentence of a class, or of a module, without what it implements."""
    file, _, name = place.partition(" ")
    path = SOURCE / file
    text = class_docstring(path, name) if name else first_line(path)
    text = " ".join(text.partition("\n\n")[0].split())
    text = re.sub(r" (Implements|Made by) ``.*", "", text).replace("``", "`")
    # Some files in C begin with their own word, which the table has beside this.
    text = re.sub(rf"^((a|the) )?{path.stem.replace('_', ' ')}s?: ", "", text, flags=re.IGNORECASE)
    return text[:1].upper() + text[1:]


def class_docstring(path: Path, name: str) -> str:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node) or ""
    raise ValueError(f"{path} has no class {name}")


def table() -> str:
    """The words, what they mean and where that is."""
    rows = ["| word | meaning | where |", "|---|---|---|"]
    for word, place in WORDS.items():
        rows.append(f"| {word} | {definition(place)} | `{place.partition(' ')[0]}` |")
    return "\n".join(rows) + "\n"
