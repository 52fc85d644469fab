"""The tables of a reference page."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from docs.message_tables import Reference, anchor
from holdfast.cli.schema import CATALOGS
from holdfast.dialects.dialect import Notice
from tests.fakes.catalog import CATALOG

DRAW = """\
| param | type | default | |
|---|---|---|---|
| `name` | text | required | Either `a\\|b` or */ whatever. |
| `path` | text | required | |
| `form` | [Round](#round), [Square](#square) or null | `null` | |
| `colour` | `red` or `blue` | `"red"` | |
| `fills` | array of texts and nulls | `[]` | |
| `labels` | object of texts or null | `null` | |
| `data` | text (base64) or null | `null` | |
| `count` | u64 or null | optional | Ten if absent. |

| result | type | |
|---|---|---|
| `size` | u64 | |
| `parts` | array of `red` or `blue` | |
| `done` | boolean | |
| `note` | text, may be absent | |
| `hole` | [Hole](#hole) or null, may be absent | Told if there is one. |
| `keepers` | object of texts, may be absent | |
| `main` | `red` or `blue`, may be absent | |
"""

STOP = """\
Params: none, null or `{}`.

Result: `{}`.
"""

DRAWN = """\
### drawn

Something was drawn.

| param | type | |
|---|---|---|
| `data` | text (base64) | |
"""

SQUARE = """\
### Square

Four equal sides.

| member | type | default | |
|---|---|---|---|
| `type` | `square` | required | |
| `side` | i64 | `1` | |
"""


def test_each_method_has_its_tables() -> None:
    """A page with prose of its own puts them where they belong."""
    parts = Reference(CATALOG).parts()

    assert list(parts) == ["draw", "draw/stop", "notifications", "types"]
    assert parts["draw"] == DRAW
    assert parts["draw/stop"] == STOP
    assert parts["notifications"] == DRAWN


def test_a_notification_without_params_has_no_table() -> None:
    """An empty table looks like a mistake."""
    catalog = replace(CATALOG, server_notifications=(Notice("gone", None, "Nothing is left."),))

    assert Reference(catalog).parts()["notifications"] == "### gone\n\nNothing is left.\n"


def test_types_are_shown_once_and_only_if_there_is_something_to_show() -> None:
    """Params and results are in the section of their method."""
    types = Reference(CATALOG).parts()["types"]

    assert SQUARE in types
    assert re.findall(r"^### (\w+)$", types, re.MULTILINE) == [
        "Round",
        "Square",
        "Hole",
        "TraceContext",
        "ErrorBody",
    ]


@pytest.mark.parametrize("name", CATALOGS)
def test_every_link_of_a_page_leads_to_a_heading_that_is_there_once(name: str) -> None:
    """A type may be shown under its own name, or under that of a method."""
    page = Reference(CATALOGS[name]).page()
    headings = [anchor(heading) for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)]

    links = set(re.findall(r"\]\(#([^)]+)\)", page))
    assert links
    assert all(headings.count(link) == 1 for link in links)
