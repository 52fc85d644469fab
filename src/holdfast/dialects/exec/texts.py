"""Texts that must make sense beyond being texts, and numbers of 64 bits (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta

from holdfast.dialects import base64, paths
from holdfast.errors import BadRequest


def checked(read: Callable[[str], Any]) -> Meta:
    """Text that must also make sense to ``read``; what it says is a matter of order, too."""

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
    """The decoder's own bounds end at 63 bits."""
    for count in counts:
        if count is not None and count >= 2**64:
            raise ValueError("invalid number")


PathText = Annotated[str, checked(paths.parse)]
Base64Text = Annotated[str, checked(base64.decode)]
UuidText = Annotated[str, checked(_read_uuid)]
