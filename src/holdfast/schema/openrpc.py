"""An endpoint as an OpenRPC document (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast import __version__
from holdfast.dialects.dialect import Catalog, ListedMethod, Notice
from holdfast.protocol.shapes import Shape

from .json_schema import definitions, dump, member_schema
from .outline import Outline, plain, published

_OPENRPC = "1.3.2"
_HERE = "#/components/schemas/"

Document = dict[str, Any]

_ABOUT = (
    "Messages are those of JSON-RPC 2.0 without the `jsonrpc` member, which is accepted and ignored. "
    "Params are given by name. Batches are not supported. "
    "What the server tells by itself is in `x-notifications`."
)
_STAMPED = " Its notifications carry `emittedAtMs`, in milliseconds since 1970."


def write(catalogs: Sequence[Catalog]) -> str:
    """One endpoint's document, or an object with a document for each: method names repeat."""
    if len(catalogs) == 1:
        return dump(_endpoint(catalogs[0]))
    return dump({catalog.name: _endpoint(catalog) for catalog in catalogs})


def _endpoint(catalog: Catalog) -> Document:
    outline = Outline(catalog)
    return {
        "openrpc": _OPENRPC,
        "info": {
            "title": catalog.title,
            "description": _ABOUT + (_STAMPED if catalog.stamped else ""),
            "version": __version__,
        },
        "methods": [
            *(_call(call, outline) for call in catalog.calls),
            # Without a result: that is how a notification is told from a call.
            *(_notice(notice, outline) for notice in catalog.client_notifications),
        ],
        "x-notifications": [_notice(notice, outline) for notice in catalog.server_notifications],
        "components": {"schemas": definitions(outline, _HERE)},
    }


def _call(call: ListedMethod, outline: Outline) -> Document:
    name = published(call.result)
    return {**_notice(call, outline), "result": {"name": name, "schema": {"$ref": _HERE + name}}}


def _notice(each: ListedMethod | Notice, outline: Outline) -> Document:
    return {
        "name": each.name,
        "summary": plain(each.summary),
        "paramStructure": "by-name",
        "params": _params(each.params, outline),
    }


def _params(cls: type[Shape] | None, outline: Outline) -> list[Document]:
    if cls is None:
        return []
    params = []
    for member in outline.record(cls).members:
        schema = member_schema(member, _HERE)
        param: Document = {"name": member.name, "required": member.required}
        if "description" in schema:
            param["description"] = schema.pop("description")
        params.append(param | {"schema": schema})
    return params
