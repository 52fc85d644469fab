"""What the shapes of all dialects on the wire have in common (pure)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from holdfast.errors import BadRequest
from holdfast.wire.complaint import Misfit, Words, fit

U64 = Annotated[int, Meta(ge=0, title="u64")]
Usize = Annotated[int, Meta(ge=0, title="usize")]
U16 = Annotated[int, Meta(ge=0, le=2**16 - 1, title="u16")]
I64 = Annotated[int, Meta(title="i64")]

T = TypeVar("T")


class Shape(msgspec.Struct, rename="camel"):
    """Something on the wire."""

    wire_name: ClassVar[str]


class Nothing(Shape):
    """``{}``."""


class Undecodable(BadRequest):
    """Params that do not have the type of their method."""


def decoded(value: Any, kind: type[T], words: Words = Words.TERSE) -> T:
    """``value`` as a ``kind``.

    Raises:
        Undecodable: It is none, in the reference's words.
    """
    try:
        return fit(value, kind, words)
    except Misfit as misfit:
        raise Undecodable(str(misfit)) from None


def camel(name: str) -> str:
    """A field's name as it is on the wire."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def utf8_size(text: str) -> int:
    """Bytes of a text on the wire, without the escapes of JSON."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def printable(text: str) -> str:
    """Bytes that are not UTF-8 cannot be told in JSON; everything else can."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
