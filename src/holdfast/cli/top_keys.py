"""The keys of a terminal, found in the bytes that it sends (pure)."""

from __future__ import annotations

_SEQUENCES = {
    b"[A": "up",
    b"[B": "down",
    b"OA": "up",
    b"OB": "down",
    b"[5~": "page up",
    b"[6~": "page down",
    b"[H": "home",
    b"OH": "home",
    b"[1~": "home",
    b"[F": "end",
    b"OF": "end",
    b"[4~": "end",
}
"""What follows an escape character, as xterm and those who imitate it send it."""

_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\x03": "interrupt",
    "\x0c": "redraw",
    "\x7f": "delete",
    "\x08": "delete",
    "\x15": "delete all",
}

_LONGEST = 32
"""Bytes after an escape character in which its sequence has to end."""


def keys_in(data: bytes) -> list[str]:
    """Return the keys that were pressed: characters as they are, others by their names.

    A terminal sends a sequence in one piece, so an escape character that nothing follows is a key of its own.
    Sequences that stand for no key of ours are left out, and so are bytes that are no text.
    """
    keys = []
    while data:
        if data[:1] == b"\x1b":
            size = _size_of_sequence(data[1 : 1 + _LONGEST])
            sequence, data = data[1 : 1 + size], data[1 + size :]
            keys.append(_SEQUENCES.get(sequence, "" if sequence else "escape"))
            continue
        text, mark, rest = data.partition(b"\x1b")
        keys += [_CONTROLS.get(char, char) for char in text.decode(errors="ignore")]
        data = mark + rest
    return [key for key in keys if key and (len(key) > 1 or key.isprintable())]


def _size_of_sequence(data: bytes) -> int:
    """Return how many bytes behind an escape character belong to it."""
    if data[:1] == b"O":
        return min(2, len(data))
    if data[:1] != b"[":
        return 0
    for index in range(1, len(data)):
        if 0x40 <= data[index] <= 0x7E:
            return index + 1
    return len(data)
