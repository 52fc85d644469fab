"""An endpoint as JSON Schema, draft 2020-12 (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import NODEFAULT

from holdfast.dialects.dialect import Catalog, ListedMethod, Notice

from . import outline as types
from .outline import RANGES, Outline, plain, published

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_HERE = "#/$defs/"

_ABOUT = (
    "Every message of either side: JSON-RPC 2.0 without the `jsonrpc` member. "
    "Members that are not named here are ignored."
)

NO_PARAMS: Schema = {"anyOf": [{"type": "null"}, {"type": "object", "maxProperties": 0}]}
"""What may stand for params where there are none; absent is the third way."""


def write(catalogs: Sequence[Catalog]) -> str:
    """One endpoint's schema, or one document that holds the schema of each."""
    if len(catalogs) == 1:
        return dump({"$schema": _DRAFT, **_endpoint(catalogs[0])})
    # Each has an identifier of its own, so that references stay inside it.
    return dump(
        {
            "$schema": _DRAFT,
            "$id": "urn:holdfast",
            "title": "Every message of holdfast, per endpoint",
            "anyOf": [{"$ref": _urn(catalog)} for catalog in catalogs],
            "$defs": {catalog.name: _endpoint(catalog) for catalog in catalogs},
        }
    )


def dump(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _urn(catalog: Catalog) -> str:
    return f"urn:holdfast:{catalog.name}"


def _endpoint(catalog: Catalog) -> Schema:
    outline = Outline(catalog)
    messages = _messages(catalog)
    return {
        "$id": _urn(catalog),
        "title": catalog.title,
        "description": _ABOUT,
        "anyOf": [_ref(_HERE, name) for name in messages],
        "$defs": {"RequestId": _REQUEST_ID, **messages, **definitions(outline, _HERE)},
    }


# Messages.

_REQUEST_ID: Schema = {
    "description": "Chosen by the client.",
    "anyOf": [
        {"type": "string"},
        {"type": "integer", "minimum": RANGES["i64"][0], "maximum": RANGES["i64"][1]},
    ],
}


def _messages(catalog: Catalog) -> dict[str, Schema]:
    key = {"id": _ref(_HERE, "RequestId")}
    results = dict.fromkeys(published(call.result) for call in catalog.calls)
    return {
        "Request": {"anyOf": [_request(call, key) for call in catalog.calls]},
        "Answer": _object(key | {"result": {"anyOf": [_ref(_HERE, name) for name in results]}}),
        "ErrorAnswer": _object(key | {"error": _ref(_HERE, "ErrorBody")}),
        "ClientNotification": {"anyOf": [_notification(each, {}) for each in catalog.client_notifications]},
        "ServerNotification": {
            "anyOf": [_notification(each, _stamp(catalog)) for each in catalog.server_notifications]
        },
    }


def _request(call: ListedMethod, key: Schema) -> Schema:
    trace = {"anyOf": [_ref(_HERE, "TraceContext"), {"type": "null"}]}
    params = NO_PARAMS if call.params is None else _ref(_HERE, published(call.params))
    members = key | {"method": {"const": call.name}, "params": params, "trace": trace}
    optional = {"trace"} if call.params else {"trace", "params"}
    return {
        "title": call.name,
        "description": f"{plain(call.summary)} Result: {published(call.result)}.",
        **_object(members, optional),
    }


def _notification(notice: Notice, more: Schema) -> Schema:
    members = {"method": {"const": notice.name}}
    if notice.params is not None:
        members["params"] = _ref(_HERE, published(notice.params))
    return {"title": notice.name, "description": plain(notice.summary), **_object(members | more)}


def _stamp(catalog: Catalog) -> Schema:
    when = {"type": "integer", "description": "Milliseconds since 1970."}
    return {"emittedAtMs": when} if catalog.stamped else {}


def _object(members: Schema, optional: frozenset[str] | set[str] = frozenset()) -> Schema:
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": members, "required": required}


# Types.


def definitions(outline: Outline, place: str) -> dict[str, Schema]:
    """Every type; references begin with ``place``."""
    return {name: _definition(each, place) for name, each in outline.types.items()}


def _definition(each: types.RecordType | types.Choice, place: str) -> Schema:
    schema: Schema = {"title": each.name}
    if each.words:
        schema["description"] = each.words
    if isinstance(each, types.Choice):
        return schema | {"enum": list(each.values)}
    members = {member.name: member_schema(member, place) for member in each.members}
    return schema | _object(members, {member.name for member in each.members if not member.required})


def member_schema(member: types.Member, place: str) -> Schema:
    """What a member may be, what it means, what it is if it is left out."""
    schema = _kind(member.kind, place)
    if member.words:
        schema["description"] = member.words
    if member.default is not NODEFAULT:
        schema["default"] = member.default
    return schema


def _kind(kind: types.Kind, place: str) -> Schema:
    match kind:
        case types.Text(pattern=str(pattern)):
            return {"type": "string", "pattern": pattern}
        case types.Text(base64=True):
            return {"type": "string", "contentEncoding": "base64"}
        case types.Text():
            return {"type": "string"}
        case types.Integer(name=str(name)):
            low, high = RANGES[name]
            return {"type": "integer", "minimum": low, "maximum": high}
        case types.Integer():
            return {"type": "integer"}
        case types.Constant(value=value):
            return {"const": value}
        case types.NamedType(name=name):
            return _ref(place, name)
        case types.Items(item=item):
            return {"type": "array", "items": _kind(item, place)}
        case types.Entries(value=value):
            return {"type": "object", "additionalProperties": _kind(value, place)}
        case types.Either(kinds=kinds):
            return {"anyOf": [_kind(each, place) for each in kinds]}
        case types.Simple.ANYTHING:
            return {}
        case types.Simple():
            return {"type": kind.value}


def _ref(place: str, name: str) -> Schema:
    return {"$ref": place + name}
