"""OpenRPC: methods, notifications and types of an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from holdfast import __version__
from holdfast.cli.schema import CATALOGS
from holdfast.schema.openrpc import write
from tests.fakes.catalog import CATALOG


def references(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "$ref":
                yield value
            yield from references(value)
    elif isinstance(document, list):
        for value in document:
            yield from references(value)


def test_a_document_says_what_is_unusual_about_its_messages() -> None:
    """Tools send a ``jsonrpc`` member and may miss it in the answer."""
    info = json.loads(write([CATALOG]))["info"]

    assert (info["title"], info["version"]) == ("A sample", __version__)
    assert "without the `jsonrpc` member" in info["description"]
    assert "`emittedAtMs`" in info["description"]


def test_a_method_takes_params_by_name_and_a_notification_has_no_result() -> None:
    document = json.loads(write([CATALOG]))

    draw, stop, seen = document["methods"]
    assert draw["params"][0] == {
        "name": "name",
        "required": True,
        "description": "Either `a|b` or */ whatever.",
        "schema": {"type": "string"},
    }
    assert draw["params"][3] == {
        "name": "colour",
        "required": False,
        "schema": {"$ref": "#/components/schemas/Colour", "default": "red"},
    }
    assert draw["result"] == {"name": "DrawResult", "schema": {"$ref": "#/components/schemas/DrawResult"}}
    assert stop == {
        "name": "draw/stop",
        "summary": "Draw no more.",
        "paramStructure": "by-name",
        "params": [],
        "result": {"name": "Nothing", "schema": {"$ref": "#/components/schemas/Nothing"}},
    }
    assert seen == {"name": "seen", "summary": "It was seen.", "paramStructure": "by-name", "params": []}
    assert [notice["name"] for notice in document["x-notifications"]] == ["drawn"]


@pytest.mark.parametrize("name", CATALOGS)
def test_required_params_come_before_optional_ones(name: str) -> None:
    """The format asks for it."""
    for method in json.loads(write([CATALOGS[name]]))["methods"]:
        required = [param["required"] for param in method["params"]]
        assert required == sorted(required, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGS)
def test_every_reference_leads_to_a_schema(name: str) -> None:
    """Schemas of this format are those of draft 7."""
    document = json.loads(write([CATALOGS[name]]))
    schemas = document["components"]["schemas"]

    found = set(references(document))
    assert found
    assert found <= {f"#/components/schemas/{each}" for each in schemas}
    for schema in schemas.values():
        Draft7Validator.check_schema(schema)


def test_both_endpoints_are_a_document_each() -> None:
    """In one, the name of a method may not occur twice."""
    both = json.loads(write(list(CATALOGS.values())))

    assert both == {name: json.loads(write([catalog])) for name, catalog in CATALOGS.items()}
