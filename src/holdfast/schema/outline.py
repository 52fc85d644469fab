"""The types of an endpoint, as every format needs them (pure).

The decoder's own schema writer does not do for this: it takes a member that may be
left out of a result for a required one, one with a default that is always sent for
an optional one, and knows no bounds beyond 63 bits.
"""

from __future__ import annotations

import ast
import sys
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from inspect import getsource
from typing import Any

import msgspec
from msgspec import NODEFAULT, UnsetType, inspect

from holdfast.dialects.dialect import Catalog
from holdfast.value import value
from holdfast.wire.jsonrpc import ErrorBody, TraceContext

RANGES = {
    "u16": (0, 2**16 - 1),
    "u64": (0, 2**64 - 1),
    "usize": (0, 2**64 - 1),
    "i64": (-(2**63), 2**63 - 1),
}
"""The least and the greatest value of the integers that have a name."""


# What a member can be.


@value
class Text:
    pattern: str | None = None
    base64: bool = False


@value
class Integer:
    name: str | None = None
    """One of ``RANGES``."""


@value
class Constant:
    """One text and no other."""

    value: str


@value
class NamedType:
    """A record or a choice of the outline."""

    name: str


@value
class Items:
    """An array."""

    item: Kind


@value
class Entries:
    """An object whose keys are any texts."""

    value: Kind


@value
class Either:
    kinds: tuple[Kind, ...]


class Simple(Enum):
    BOOLEAN = "boolean"
    NULL = "null"
    ANYTHING = "anything"


Kind = Text | Integer | Constant | NamedType | Items | Entries | Either | Simple


# What has a name.


@value
class Member:
    name: str
    kind: Kind
    required: bool
    default: Any = NODEFAULT
    """What a member that is left out stands for, if that can be said with a value; else ``NODEFAULT``."""
    words: str = ""


@value
class RecordType:
    name: str
    members: tuple[Member, ...]
    words: str


@value
class Choice:
    name: str
    values: tuple[str, ...]
    words: str


class Outline:
    """Every type that a catalog leads to, in the order in which they are met."""

    def __init__(self, catalog: Catalog) -> None:
        self.types: dict[str, RecordType | Choice] = {}
        self._base64 = catalog.base64
        self._origins: dict[str, tuple[type[msgspec.Struct], bool]] = {}
        received = [each.params for each in catalog.calls] + [
            each.params for each in catalog.client_notifications
        ]
        sent = [each.result for each in catalog.calls] + [
            each.params for each in catalog.server_notifications
        ]
        for cls in filter(None, received):
            self._add(cls, sent=False)
        for cls in filter(None, sent):
            self._add(cls, sent=True)
        self._add(TraceContext, sent=False)
        # Both ways, in truth; but we, too, leave out data where there is none.
        self._add(ErrorBody, sent=False)

    def record(self, cls: type) -> RecordType:
        found = self.types[published(cls)]
        assert isinstance(found, RecordType)
        return found

    def _add(self, cls: type[msgspec.Struct], *, sent: bool) -> NamedType:
        """``sent`` says whose move it is: we send every member, a client leaves out what has a default."""
        name = published(cls)
        if name not in self._origins:
            self._origins[name] = (cls, sent)
            # Takes its place before what it leads to.
            self.types[name] = RecordType(name, (), "")
            self.types[name] = self._read(cls, sent=sent)
        elif self._origins[name] != (cls, sent) and cls.__struct_fields__:
            raise ValueError(f"{name} stands for two types, or goes both ways")
        return NamedType(name)

    def _add_choice(self, cls: type[Enum]) -> NamedType:
        self.types[published(cls)] = Choice(
            published(cls), tuple(str(member.value) for member in cls), words(cls).own
        )
        return NamedType(published(cls))

    def _read(self, cls: type, *, sent: bool) -> RecordType:
        shape = inspect.type_info(cls)
        assert isinstance(shape, inspect.StructType)
        said = words(cls)
        optional = set(_optional(cls))
        members = []
        if shape.tag_field is not None:
            members.append(Member(shape.tag_field, Constant(str(shape.tag)), required=True))
        for field in shape.fields:
            kind = self._kind(field.type, sent=sent)
            if field.encode_name in self._base64:
                kind = _in_base64(kind)
            members.append(
                Member(
                    field.encode_name,
                    kind,
                    required=field.name not in optional and (sent or field.required),
                    default=NODEFAULT if sent else _default(field),
                    words=said.members.get(field.name, ""),
                )
            )
        return RecordType(published(cls), tuple(members), said.own)

    def _kind(self, shape: inspect.Type, *, sent: bool) -> Kind:
        match shape:
            case inspect.Metadata(extra_json_schema={"title": title}):
                return Integer(title)
            case inspect.Metadata(extra={"choice": words}):
                return self._add_choice(words)
            case inspect.Metadata(type=inner):
                return self._kind(inner, sent=sent)
            case inspect.StrType(pattern=pattern):
                return Text(pattern)
            case inspect.IntType():
                return Integer()
            case inspect.BoolType():
                return Simple.BOOLEAN
            case inspect.NoneType():
                return Simple.NULL
            case inspect.AnyType():
                return Simple.ANYTHING
            case inspect.EnumType(cls=cls):
                return self._add_choice(cls)
            case inspect.ListType(item_type=item):
                return Items(self._kind(item, sent=sent))
            case inspect.DictType(value_type=value):
                return Entries(self._kind(value, sent=sent))
            case inspect.UnionType(types=shapes):
                return Either(tuple(self._kind(each, sent=sent) for each in shapes))
            case inspect.StructType(cls=cls):
                return self._add(cls, sent=sent)
        raise TypeError(f"no words for {shape}")


def published(cls: type) -> str:
    """The name of a type in schemas.

    In the source a name means one thing.  Where both endpoints, or a shape and a value of ``holdfast.model``,
    would have the same one, the shape's begins with ``App`` or ``Wire``.
    """
    return cls.__name__.removeprefix("App").removeprefix("Wire")


def _optional(cls: type) -> Iterator[str]:
    """The members that may be absent on their own account."""
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        if UnsetType in typing.get_args(hint):
            yield name


def _default(field: inspect.Field) -> Any:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return msgspec.to_builtins(field.default) if field.default is not NODEFAULT else NODEFAULT


def _in_base64(kind: Kind) -> Kind:
    match kind:
        case Text():
            return Text(base64=True)
        case Either(kinds=kinds):
            return Either(tuple(map(_in_base64, kinds)))
    return kind


# What a class says of itself and of its members, read off its source.

_NONE: Mapping[str, str] = {}


@value
class ClassDocs:
    """Texts on one line each, in Markdown."""

    own: str = ""
    members: Mapping[str, str] = _NONE
    """Those below a member; members without one are missing."""


def words(cls: type) -> ClassDocs:
    """The docstring of a class at the top of a module, and the strings below its members.

    The interpreter does not keep those of members, hence the source; where it is
    not installed there are no words.
    """
    node = _classes(cls.__module__).get(cls.__qualname__)
    if node is None:
        return ClassDocs()
    members: dict[str, str] = {}
    name = ""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                continue
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                members[name] = plain(text)
        name = ""
    return ClassDocs(plain(ast.get_docstring(node) or ""), members)


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    try:
        source = getsource(sys.modules[module])
    except OSError:
        return {}
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def plain(text: str) -> str:
    """A docstring on one line, with code marked as in Markdown."""
    return " ".join(text.split()).replace("``", "`")
