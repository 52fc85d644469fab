"""Base64 as the protocol has it: padded, no blanks, nothing left over (pure)."""

from __future__ import annotations

import re
from binascii import a2b_base64
from string import ascii_lowercase, ascii_uppercase, digits

import pybase64

from holdfast.errors import BadRequest

encode = pybase64.b64encode
_decode = pybase64.b64decode

_SHORT = 128
_FOREIGN = re.compile(rb"[^A-Za-z0-9+/]")
_DIGITS = ascii_uppercase + ascii_lowercase + digits + "+/"
_LAST = frozenset(
    [f"{last}==" for last in _DIGITS[::16]]
    + [f"{first}{last}=" for first in _DIGITS for last in _DIGITS[::4]]
)
"""The ends of texts with padding, in which no bit is set that stands for nothing."""


def decode(text: str | bytes) -> bytes:
    """The bytes that ``text`` stands for.  Bytes are what a long text was decoded to with its message.

    Raises:
        BadRequest: It is not base64; the words say where.
    """
    if type(text) is bytes:
        return text
    assert isinstance(text, str)
    try:
        # For a line or two the standard library is faster, for the rest by far the other.
        data = a2b_base64(text, strict_mode=True) if len(text) < _SHORT else _decode(text, None, True)
    except ValueError:
        raise BadRequest(_complaint(text.encode())) from None
    # The decoders pass over bits behind the last byte, and over padding where none is needed.
    if text[-1:] == "=" and (len(text) % 4 or text[-3:] not in _LAST):
        raise BadRequest(_complaint(text.encode()))
    return data


def decode_bytes(text: bytes | memoryview) -> bytes:
    """The bytes that ``text`` stands for, without a word about what is wrong.

    Raises:
        ValueError: It is not base64.
    """
    data = a2b_base64(text, strict_mode=True) if len(text) < _SHORT else _decode(text, None, True)
    if (len(data) + 2) // 3 * 4 != len(text):
        raise ValueError("padding that stands for nothing")  # The standard library passes over it.
    return data


def _complaint(text: bytes) -> str:
    """What is wrong with ``text``, in the order in which the reference looks."""
    size = len(text)
    if size % 4 == 1 and _FOREIGN.match(text, size - 1) and text[-1:] != b"=":
        return _symbol(text, size - 1)
    foreign = _FOREIGN.search(text)
    if foreign is None:
        return f"Invalid input length: {size}" if size % 4 == 1 else "Invalid padding"
    at = foreign.start()
    padding = text[at:]
    if at % 4 < 2 or padding.strip(b"="):
        return _symbol(text, at)
    if at + len(padding) != at + (-at % 4):
        return "Invalid padding" if len(padding) < -at % 4 else _symbol(text, at)
    return f"Invalid last symbol {text[at - 1]}, offset {at - 1}."


def _symbol(text: bytes, at: int) -> str:
    return f"Invalid symbol {text[at]}, offset {at}."
