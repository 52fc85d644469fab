"""An endpoint as the tables of its reference page, in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from msgspec import NODEFAULT

from holdfast.dialects.dialect import Catalog, ListedMethod, Notice
from holdfast.schema.outline import (
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

_PLURALS = {"text": "texts", "boolean": "booleans", "integer": "integers", "null": "nulls"}

_WIDTHS = {"usize": "u64"}
"""A word of error texts, and what it means."""


class Reference:
    """The parts of a page.  A page may show them one by one, or as a whole."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._outline = Outline(catalog)
        self._headings = dict(self._shown())

    def _shown(self) -> Iterable[tuple[str, str]]:
        """Type and heading: where the members of a type are."""
        for name, each in self._outline.types.items():
            if isinstance(each, RecordType):
                yield name, name
        for notice in self._catalog.server_notifications:
            if notice.params is not None:
                yield published(notice.params), notice.name
        for call in self._catalog.calls:
            yield published(call.result), call.name
            if call.params is not None:
                yield published(call.params), call.name

    def parts(self) -> dict[str, str]:
        """Each method by its name, then ``notifications`` and ``types``."""
        calls = {call.name: self._call(call) for call in self._catalog.calls}
        return calls | {"notifications": self._notices(), "types": self._types()}

    def page(self) -> str:
        """Everything, with headings."""
        sections = []
        for call in self._catalog.calls:
            sections += [f"## {call.name}\n", f"{plain(call.summary)}\n", self._call(call)]
        sections += [
            "## Notifications of the client\n",
            *map(_client_notification, self._catalog.client_notifications),
        ]
        sections += ["## Notifications of the server\n", self._notices()]
        sections += ["## Types\n", self._types()]
        return "\n".join(sections)

    def _call(self, call: ListedMethod) -> str:
        if call.params is None:
            params = "Params: none, null or `{}`.\n"
        else:
            params = self._table("param", self._outline.record(call.params).members, defaults=True)
        result = self._outline.record(call.result)
        if result.members:
            return f"{params}\n{self._table('result', result.members)}"
        return f"{params}\nResult: `{{}}`.\n"

    def _notices(self) -> str:
        return "\n".join(map(self._notice, self._catalog.server_notifications))

    def _notice(self, notice: Notice) -> str:
        words = f"### {notice.name}\n\n{plain(notice.summary)}\n"
        if notice.params is None:
            return words
        return f"{words}\n{self._table('param', self._outline.record(notice.params).members)}"

    def _types(self) -> str:
        """The types that no method and no notification shows."""
        parts = []
        for name, each in self._outline.types.items():
            if not isinstance(each, RecordType) or not each.members or self._headings[name] != name:
                continue
            parts.append(f"### {name}\n")
            if each.words:
                parts.append(f"{each.words}\n")
            given = any(not member.required for member in each.members)
            parts.append(self._table("member", each.members, defaults=given))
        return "\n".join(parts)

    def _table(self, head: str, members: Iterable[Member], *, defaults: bool = False) -> str:
        rows = [f"| {head} | type | default | |", "|---|---|---|---|"]
        if not defaults:
            rows = [f"| {head} | type | |", "|---|---|---|"]
        for member in members:
            kind = self._kind(member.kind)
            if not defaults and not member.required:
                kind += ", may be absent"
            cells = [f"`{member.name}`", kind, *([_default(member)] if defaults else []), member.words]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(row.replace("|  |", "| |") for row in rows) + "\n"

    def _kind(self, kind: Kind) -> str:
        match kind:
            case Text(base64=True):
                return "text (base64)"
            case Text():
                return "text"
            case Integer(name=name):
                return _WIDTHS.get(name, name) if name else "integer"
            case Constant(value=value):
                return f"`{value}`"
            case NamedType(name=name):
                return self._named(self._outline.types[name])
            case Items(item=item):
                return f"array of {self._many(item)}"
            case Entries(value=value):
                return f"object of {self._many(value)}"
            case Either(kinds=kinds):
                return _listed([self._kind(each) for each in kinds])
            case Simple():
                return str(kind.value)

    def _many(self, kind: Kind) -> str:
        if isinstance(kind, Either):
            return " and ".join(self._many(each) for each in kind.kinds)
        words = self._kind(kind)
        return _PLURALS.get(words, words)

    def _named(self, each: RecordType | Choice) -> str:
        if isinstance(each, Choice):
            return _listed([f"`{value}`" for value in each.values])
        if not each.members:
            return "object"
        return f"[{each.name}](#{anchor(self._headings[each.name])})"


def anchor(heading: str) -> str:
    """By what name a heading can be linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _client_notification(notice: Notice) -> str:
    return f"### {notice.name}\n\n{plain(notice.summary)}\n"


def _default(member: Member) -> str:
    if member.required:
        return "required"
    return "optional" if member.default is NODEFAULT else f"`{json.dumps(member.default)}`"


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
