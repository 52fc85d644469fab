"""Text that stands for the bytes of paths, arguments and variables (pure).

The locale of the server must not change what a child sees, so this is always
UTF-8, with bytes that are not UTF-8 carried as lone surrogates.
"""

from __future__ import annotations


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
