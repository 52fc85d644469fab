"""An endpoint as declarations in TypeScript (pure)."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from msgspec import NODEFAULT

from holdfast.dialects.dialect import Catalog, ListedMethod, Notice

from .outline import (
    Choice,
    Constant,
    Either,
    Entries,
    Integer,
    Items,
    Kind,
    Member,
    NamedType,
    Outline,
    RecordType,
    Simple,
    Text,
    plain,
    published,
)

_HEAD = """\
// Written by `holdfast schema --format typescript`.
// Integers are numbers, exact up to 2^53.  Text in base64 is a string.
"""

_MESSAGES = """\
/** Chosen by the client. */
export type RequestId = string | number;

export type Method = keyof Calls;

export type Params<M extends Method> = Calls[M]["params"];

export type Result<M extends Method> = Calls[M]["result"];

export type Request<M extends Method = Method> = {
  [N in M]: { id: RequestId; method: N; trace?: TraceContext | null } & Pick<Calls[N], "params">;
}[M];

export interface Answer<M extends Method = Method> {
  id: RequestId;
  result: Result<M>;
}

export interface ErrorAnswer {
  id: RequestId;
  error: ErrorBody;
}

export type ClientNotification = {
  [N in keyof ClientNotifications]: { method: N; params?: ClientNotifications[N] };
}[keyof ClientNotifications];

export type ServerNotification = {
  [N in keyof ServerNotifications]: { method: N; params: ServerNotifications[N]%s };
}[keyof ServerNotifications];
"""

_STAMP = "; emittedAtMs: number"


def write(catalogs: Sequence[Catalog]) -> str:
    """One endpoint's declarations, or a namespace with those of each."""
    if len(catalogs) == 1:
        return f"{_HEAD}\n{_endpoint(catalogs[0])}"
    spaces = [
        f"/** {catalog.title}. */\nexport declare namespace {catalog.name} {{\n"
        f"{textwrap.indent(_endpoint(catalog), '  ')}}}\n"
        for catalog in catalogs
    ]
    return "\n".join([_HEAD, *spaces])


def _endpoint(catalog: Catalog) -> str:
    parts = [
        _map("Calls", "Every method, with what it takes and gives.", map(_call, catalog.calls)),
        _map("ClientNotifications", "What the client may tell.", map(_notice, catalog.client_notifications)),
        _map("ServerNotifications", "What the server tells.", map(_notice, catalog.server_notifications)),
        _MESSAGES % (_STAMP if catalog.stamped else ""),
        *map(_declaration, Outline(catalog).types.values()),
    ]
    return "\n".join(parts)


# Methods and notifications.


def _map(name: str, words: str, lines: Iterator[str]) -> str:
    return f"/** {words} */\nexport interface {name} {{\n{''.join(lines)}}}\n"


def _call(call: ListedMethod) -> str:
    # A method without params takes nothing, null or an empty object.
    params = f"params: {published(call.params)}" if call.params else "params?: Record<string, never> | null"
    body = f"{json.dumps(call.name)}: {{ {params}; result: {published(call.result)} }};"
    return _comment(plain(call.summary), "  ") + f"  {body}\n"


def _notice(notice: Notice) -> str:
    kind = published(notice.params) if notice.params else "unknown"
    return _comment(plain(notice.summary), "  ") + f"  {json.dumps(notice.name)}: {kind};\n"


# Types.


def _declaration(each: RecordType | Choice) -> str:
    comment = _comment(each.words)
    if isinstance(each, Choice):
        return f"{comment}export type {each.name} = {' | '.join(map(json.dumps, each.values))};\n"
    members = "".join(map(_member, each.members))
    body = f"{{\n{members}}}" if members else "{}"
    return f"{comment}export interface {each.name} {body}\n"


def _member(member: Member) -> str:
    words = [member.words] if member.words else []
    if not member.required and member.default not in (NODEFAULT, None):
        words.append(f"Default: `{json.dumps(member.default)}`.")
    mark = "" if member.required else "?"
    return _comment(" ".join(words), "  ") + f"  {member.name}{mark}: {_kind(member.kind)};\n"


def _comment(words: str, margin: str = "") -> str:
    # What would end the comment may stand in the words.
    safe = words.replace("*/", "*\\/")
    return f"{margin}/** {safe} */\n" if words else ""


def _kind(kind: Kind) -> str:
    match kind:
        case Text():
            return "string"
        case Integer():
            return "number"
        case Constant(value=value):
            return json.dumps(value)
        case NamedType(name=name):
            return name
        case Items(item=Either() as item):
            return f"({_kind(item)})[]"
        case Items(item=item):
            return f"{_kind(item)}[]"
        case Entries(value=value):
            return f"Record<string, {_kind(value)}>"
        case Either(kinds=kinds):
            return " | ".join(map(_kind, kinds))
        case Simple.ANYTHING:
            return "unknown"
        case Simple():
            return str(kind.value)
