"""The keys that leave a process without ending it: how they are written, and how they are found (pure).

What must hold:

1. Without the keys, what goes in comes out, in order, each byte once.
2. Bytes that may be the beginning of the keys are held back, and no others.
3. Nothing is held back by a scan that only listens.
"""

from __future__ import annotations

import argparse

DEFAULT = "ctrl-p,ctrl-q"

_PUNCTUATION = {"@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31}


def detach_keys(text: str) -> bytes:
    """The bytes of keys such as ``ctrl-p,ctrl-q``; nothing for no keys at all.

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
        f" for example {DEFAULT}"
    )


class Scan:
    """Looks for a sequence of keys in what is typed."""

    __slots__ = ("_held", "_keys", "_listens")

    def __init__(self, keys: bytes, *, listens: bool = False) -> None:
        """With ``listens`` everything passes at once, also the keys; they are only noticed."""
        self._keys = keys
        self._listens = listens
        self._held = 0  # How many of the keys have come.

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """What is to be passed on, and whether the keys have come; what was typed after them is dropped.

        A scan that listens goes on after the keys, and drops nothing.
        """
        keys = self._keys
        if not keys:
            return data, False
        passed = bytearray()
        found = False
        for byte in data:
            kept = keys[: self._held] + bytes((byte,))
            fits = _longest(kept, keys)
            passed += kept[: len(kept) - fits]
            self._held = fits
            if fits == len(keys):
                self._held = 0
                found = True
                if not self._listens:
                    return bytes(passed), True
        return (data, found) if self._listens else (bytes(passed), found)

    def rest(self) -> bytes:
        """What is held back, at the end of what is typed."""
        held, self._held = self._held, 0
        return b"" if self._listens else self._keys[:held]


def _longest(text: bytes, keys: bytes) -> int:
    """How many of the keys the end of the text has: the most that fit."""
    return next(size for size in range(min(len(text), len(keys)), -1, -1) if text.endswith(keys[:size]))
