"""The detach keys: how they are written, and how they are found in what is typed (pure).

What must hold:

1. Without the keys, what goes in comes out, in order, each byte once.
2. Only bytes that may be the beginning of the keys are held back.
3. A scanner that passes the keys holds nothing back.
"""

from __future__ import annotations

import argparse

DEFAULT_DETACH_KEYS = "ctrl-p,ctrl-q"

_PUNCTUATION = {"@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31}


def detach_keys(text: str) -> bytes:
    """Parse keys such as ``ctrl-p,ctrl-q``; return their bytes, none for the empty text.

    Raises:
        argparse.ArgumentTypeError: There is no such key.
    """
    if not text:
        return b""
    return bytes(_key(name) for name in text.split(","))


def _key(name: str) -> int:
    if len(name) == 1 and name.isascii() and name.isprintable():
        return ord(name)
    letter = name.lower().removeprefix("ctrl-")
    if len(letter) == 1 and len(name) > 1:
        if "a" <= letter <= "z":
            return ord(letter) - ord("a") + 1
        if letter in _PUNCTUATION:
            return _PUNCTUATION[letter]
    raise argparse.ArgumentTypeError(
        f"{name!r} is not a key; write single characters and ctrl-LETTER with commas between,"
        f" for example {DEFAULT_DETACH_KEYS}"
    )


class KeyScanner:
    """Finds a sequence of keys in the bytes that are typed."""

    def __init__(self, keys: bytes, *, passes_keys: bool = False) -> None:
        """
        Args:
            keys: The sequence; empty to find nothing.
            passes_keys: Pass on everything at once, the keys too, and only report them.
        """
        self._keys = keys
        self._passes_keys = passes_keys
        self._held = 0  # How many of the keys were typed so far.

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Return the bytes to pass on, and whether the keys were found.

        Bytes behind the keys are dropped, unless the scanner passes the keys.
        """
        keys = self._keys
        if not keys:
            return data, False
        passed = bytearray()
        found = False
        for byte in data:
            typed = keys[: self._held] + bytes((byte,))
            fits = _longest_match(typed, keys)
            passed += typed[: len(typed) - fits]
            self._held = fits
            if fits == len(keys):
                self._held = 0
                found = True
                if not self._passes_keys:
                    return bytes(passed), True
        return (data, found) if self._passes_keys else (bytes(passed), found)

    def rest(self) -> bytes:
        """Return the bytes that are held back, at the end of the input."""
        held, self._held = self._held, 0
        return b"" if self._passes_keys else self._keys[:held]


def _longest_match(text: bytes, keys: bytes) -> int:
    """Return the largest number of keys that ``text`` ends with."""
    return next(size for size in range(min(len(text), len(keys)), -1, -1) if text.endswith(keys[:size]))
