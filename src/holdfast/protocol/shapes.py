"""What all shapes have in common: bases, numbers, checked texts, signatures of methods (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from holdfast.errors import BadRequest
from holdfast.wire.jsonrpc import Uploaded
from holdfast.wire.serde import Misfit, Words, fit

from . import base64, paths

U64 = Annotated[int, Meta(ge=0, title="u64")]
Usize = Annotated[int, Meta(ge=0, title="usize")]
U16 = Annotated[int, Meta(ge=0, le=2**16 - 1, title="u16")]
I64 = Annotated[int, Meta(title="i64")]

T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")


class Shape(msgspec.Struct, rename="camel"):
    """A value on the wire.  An answer or a notification has all of its members, unless one is ``UNSET``.

    Members that only our own servers send have defaults, so that a client can read the answers of others.
    """

    wire_name: ClassVar[str]
    """The reference's name for it, which its error texts use."""


class Params(Shape, omit_defaults=True):
    """What a client asks, or a part of it.  A member that has its default value is left out."""


class Nothing(Shape):
    """``{}``."""


# Methods.


class Signature(Generic[P, R]):
    """The name of a method, what it takes and what it answers.

    The server has a handler for each, the client calls them, and the reference pages list them.
    """

    __slots__ = ("_read", "name", "params", "result")

    def __init__(self, name: str, params: type[P] | None, result: type[R]) -> None:
        self.name = name
        self.params = params
        """None for a method that takes none."""
        self.result = result
        self._read: Callable[[bytes | msgspec.Raw], R] | None = None

    def read(self, text: bytes | msgspec.Raw) -> R:
        """The answer of a server, of which nothing is believed.

        Raises:
            msgspec.DecodeError: It does not have the shape.
        """
        if self._read is None:
            # Not when the module is imported: most programs use few of them.
            self._read = reader(self.result)
        return self._read(text)


def reader(kind: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """A decoder of what a server sent; all it raises is ``msgspec.DecodeError``.

    The library's decoder raises other errors for texts that are not UTF-8 and for what is nested too
    deeply, and sees either only in the parts that it does not pass over.
    """
    if kind is Nothing:
        # Who expects nothing is content with anything.
        return lambda text: kind()
    decode = msgspec.json.Decoder(kind).decode

    def read(text: bytes | msgspec.Raw) -> T:
        try:
            return decode(text)
        except (UnicodeDecodeError, RecursionError) as error:
            raise msgspec.DecodeError(str(error)) from None

    return read


class Undecodable(BadRequest):
    """Params that do not have the type of their method."""


def decoded(value: Any, kind: type[T], words: Words = Words.TERSE) -> T:
    """``value`` as a ``kind``.

    Raises:
        Undecodable: It is none, in the reference's words.
    """
    if type(value) is Uploaded:
        return _with_bytes(value, kind, words)  # type: ignore[no-any-return]  # A ``kind``.
    try:
        return fit(value, kind, words)
    except Misfit as misfit:
        raise Undecodable(str(misfit)) from None


def _with_bytes(params: Uploaded, kind: type, words: Words) -> Any:
    """Params with bytes in place of their base64 text, if that is what is expected there."""
    field = _base64_fields(kind).get(params.member)
    if field is None:
        return decoded(params.as_sent(), kind, words)
    shape: Any = decoded(dict(params), kind, words)
    setattr(shape, field, params.data)
    return shape


@cache
def _base64_fields(kind: type) -> dict[str, str]:
    """The members of a shape that are base64, by their names on the wire, with those of their fields."""
    types = get_type_hints(kind, include_extras=True)
    return {
        field.encode_name: field.name
        for field in msgspec.structs.fields(kind)
        if Base64Text in (types[field.name], *get_args(types[field.name]))
    }


# Texts that must make sense beyond being texts, and numbers of 64 bits.


def checked(read: Callable[[str], Any]) -> Meta:
    """Metadata of a text that ``read`` must accept; an error text quotes its complaint."""

    def complain(text: str) -> str | None:
        try:
            read(text)
        except BadRequest as bad:
            return str(bad)
        return None

    return Meta(extra={"complain": complain})


_FOREIGN = re.compile(r"[^0-9a-fA-F-]", re.DOTALL)


def _read_uuid(text: str) -> None:
    body = text.removeprefix("urn:uuid:")
    if (foreign := _FOREIGN.search(body)) is not None:
        raise BadRequest(
            "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], "
            f"found `{foreign[0]}` at {foreign.start() + 1}"
        )
    groups = body.split("-")
    if len(groups) == 1:
        if len(body) != 32:
            raise BadRequest(f"invalid length: expected length 32 for simple format, found {len(body)}")
        return
    if len(groups) != 5:
        raise BadRequest(f"invalid group count: expected 5, found {len(groups)}")
    for index, (group, length) in enumerate(zip(groups, (8, 4, 4, 4, 12), strict=True)):
        if len(group) != length:
            raise BadRequest(f"invalid group length in group {index}: expected {length}, found {len(group)}")


def check_uuid(text: str | None) -> None:
    """Raises ``ValueError``, as the decoder wants it."""
    if text is not None:
        try:
            _read_uuid(text)
        except BadRequest as bad:
            raise ValueError(str(bad)) from None


def within_u64(*counts: int | None) -> None:
    """Raises ``ValueError`` for a number of more than 64 bits: the decoder's own bounds end at 63."""
    for count in counts:
        if count is not None and count >= 2**64:
            raise ValueError("invalid number")


PathText = Annotated[str, checked(paths.parse)]
Base64Text = Annotated[str, checked(base64.decode)]
"""Bytes as a text.  In params a long one may be bytes already: ``base64.decode`` takes both."""
UuidText = Annotated[str, checked(_read_uuid)]


def open_choice(words: type) -> Meta:
    """Metadata of a text that is one of an enum's words, or a word that only a newer server knows."""
    return Meta(extra={"choice": words})


def camel(name: str) -> str:
    """A field's name as it is on the wire."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
