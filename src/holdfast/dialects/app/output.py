"""The output of a process: each stream up to its cap, as text, and when it is complete (pure)."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache

from holdfast.model import Stream


class OutputRoom:
    """Bytes that all output which is kept for results shares."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size


class Capped:
    """The output of one stream up to its cap, the number of bytes that an app client wants."""

    __slots__ = ("_cap", "_data", "_room", "_size", "crowded", "full")

    def __init__(self, cap: int | None, room: OutputRoom) -> None:
        """Without a cap nothing is cut that is not kept."""
        self._cap = cap
        self._room = room
        self._size = 0
        self._data = bytearray()  # Not a list of pieces: a child may write one byte at a time.
        self.full = False
        """Whether the cap is reached; also when the output ended right there."""
        self.crowded = False
        """Whether it was cut below its cap because others took the room."""

    def cut(self, data: bytes) -> tuple[bytes, bool]:
        """As much of ``data`` as fits, and whether the cap is reached with it."""
        if self._cap is not None and len(data) >= self._cap - self._size:
            data = data[: self._cap - self._size]
            self.full = True
        self._size += len(data)
        return data, self.full

    def keep(self, data: bytes) -> bool:
        """Keep as much of ``data`` as fits; say whether no more does."""
        data, _ = self.cut(data)
        if len(data) > self._room.left:
            data = data[: self._room.left]
            self.full = self.crowded = True
        self._room.left -= len(data)
        self._data += data
        return self.full

    @property
    def data(self) -> bytes | bytearray:
        """Everything that was kept.  Not to be changed."""
        return self._data

    def give_back(self) -> None:
        """Leave the room to others; the result is made, and nothing is kept any more."""
        self._room.left += len(self._data)
        self._data = bytearray()


# As text.

_SLICE = 32_768
"""Bytes that are decoded without a pause: half a millisecond, or ten where each needs a call of its own."""

# The detector takes 0.1 to 0.2 us per byte and holds everybody up meanwhile: 14 ms for this much, 220 ms for
# the usual cap.  What this much text does not tell, more of it seldom does.
_LOOK = 65_536

# What the detector calls an encoding, and what Python calls it.  Others have one byte per character.
_MULTIBYTE = {
    "Big5": "big5hkscs",
    "EUC-JP": "euc_jp",
    "EUC-KR": "cp949",
    "GBK": "gb18030",
    "gb18030": "gb18030",
    "Shift_JIS": "cp932",
}
# Names that Python does not know.
_ALIASES = {"ISO-8859-8-I": "ISO-8859-8", "windows-874": "cp874"}

# The names mean the tables of the Encoding Standard.  Where Python's tables say something else:
_OTHERWISE = {
    "KOI8-U": {0xAE: "\u045e", 0xBE: "\u040e"},
    "windows-1255": {0xCA: "\u05ba"},
}
_REPLACED = {
    "big5hkscs": (
        "\u2022\uff64\u203e\u223c\u2641\u2609\u00a5\u00a2\u00a3",
        "\u2027\ufe51\u00af\uff5e\u2295\u2299\uffe5\uffe0\uffe1",
    ),
    "euc_jp": ("\u301c\u2016\u2212\u00a2\u00a3\u00ac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2"),
    "gb18030": (
        "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue7c7"
        "\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
        "\u3000\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19\u1e3f"
        "\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb",
    ),
}
# Bytes that may begin a character which Python does not know there, and how many of them are looked after:
# each costs a call, and without a bound a flood of them would hold everybody up for a minute.
_MISSING = {"big5hkscs": b"\xa3", "euc_jp": b"\xad\xf9\xfa\xfb\xfc", "gb18030": b"\x80"}
_MISSING_LIMIT = 65_536

_ASCII = bytes(range(0x80))
_QUOTES_AND_DASHES = b"\x91\x92\x93\x94\x95\x96\x97\x99"
_LETTER = re.compile(rb"[A-Za-z]")


def decode(data: bytes | bytearray, *, cut: bool) -> str:
    """The text that ``data`` most likely is.  Never raises.

    ``cut`` says that more followed and was dropped.  Then a character of which only the beginning is left is
    dropped too: it says nothing, and it must not make the rest look like another encoding.
    """
    return "".join(pieces(data, cut=cut))


def pieces(data: bytes | bytearray, *, cut: bool) -> Iterator[str]:
    """Decode text in pieces, each made in a millisecond or so: others should have their turn in between.

    Before the first one come empty ones, while it is found out what all of ``data`` is.
    """
    final = not cut
    try:
        yield from _all(_incremental("utf-8"), data, final=final)
        return
    except _Unfit as unfit:
        foreign = unfit.at
    try:
        yield from _legacy(data, foreign, final=final)
    except (_Unfit, LookupError):
        yield from _all(_incremental("utf-8", "replace"), data, final=final)


_Step = Callable[[bytes | bytearray, bool], str]
"""Decodes the next bytes; says whether they are the last."""


class _Unfit(Exception):
    """The bytes are not in this encoding."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _incremental(codec: str, errors: str = "strict") -> Callable[[], _Step]:
    # Unlike bytes.decode, an incremental decoder can be told that the end is not the end.
    return lambda: codecs.getincrementaldecoder(codec)(errors).decode


def _all(make: Callable[[], _Step], data: bytes | bytearray, *, final: bool) -> Iterator[str]:
    """All of the text; raises ``_Unfit`` before any of it is given."""
    if len(data) > _SLICE:
        for _ in _steps(make(), data, final=final):
            yield ""
    yield from _steps(make(), data, final=final)


def _steps(step: _Step, data: bytes | bytearray, *, final: bool) -> Iterator[str]:
    for at in range(0, len(data), _SLICE):
        part = data[at : at + _SLICE]
        try:
            yield step(part, final and at + _SLICE >= len(data))
        except UnicodeDecodeError as error:
            # It speaks of what was left of the part before, too.
            raise _Unfit(at + len(part) - len(error.object) + error.start) from error


def _legacy(data: bytes | bytearray, foreign: int, *, final: bool) -> Iterator[str]:
    """Raises _Unfit if ``data`` is not what it looks like, LookupError if that is no encoding."""
    # A mark is a statement, not a guess.
    if data.startswith(codecs.BOM_UTF8):
        raise LookupError("UTF-8")
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            yield from _all(_incremental(codec), data[2:], final=final)
            return
    name = _guess(data, foreign, final=final)
    if name == "IBM866" and (yield from _is_quoted_ascii(data)):
        name = "windows-1252"
    if name in _MULTIBYTE:
        yield from _multibyte(data, _MULTIBYTE[name], final=final)
        return
    table = _table(name)
    yield from _all(
        lambda: lambda part, last: codecs.charmap_decode(part, "strict", table)[0], data, final=final
    )


def _guess(data: bytes | bytearray, foreign: int, *, final: bool) -> str:
    """The name of the encoding that the text around the byte at ``foreign`` seems to have."""
    try:
        # Most servers never meet a byte that is not UTF-8, and need not wait for this nor keep it in memory.
        from chardetng_py.detector import EncodingDetector  # type: ignore[import-untyped]
    except ImportError as error:
        raise LookupError("no detector on this platform") from error
    start = max(0, min(foreign - _LOOK // 4, len(data) - _LOOK))
    if start:
        # No encoding has a line feed inside a character, so nothing is torn there.
        start = data.find(b"\n", start, foreign) + 1 or start
    end = start + _LOOK
    detector = EncodingDetector()
    detector.feed(bytes(data[start:end]), last=final and end >= len(data))
    name: str = detector.guess(tld=None, allow_utf8=True)
    return name


def _is_quoted_ascii(data: bytes | bytearray) -> Generator[str, None, bool]:
    """ASCII words with typographic quotes and dashes, which the detector takes for Cyrillic letters."""
    words = False
    for at in range(0, len(data), _SLICE):
        part = data[at : at + _SLICE]
        if part.translate(None, _ASCII + _QUOTES_AND_DASHES):
            return False
        words = words or _LETTER.search(part) is not None
        yield ""
    return words


def _multibyte(data: bytes | bytearray, codec: str, *, final: bool) -> Iterator[str]:
    suspects = 0
    for at in range(0, len(data), _SLICE):
        part = data[at : at + _SLICE]
        suspects += len(part) - len(part.translate(None, _MISSING.get(codec, b"")))
        yield ""
    errors = "holdfast.missing" if 0 < suspects <= _MISSING_LIMIT else "strict"
    for text in _all(_incremental(codec, errors), data, final=final):
        for old, new in zip(*_REPLACED.get(codec, ("", "")), strict=True):
            # Nearly always there is nothing to replace, and then this is far faster than translate.
            text = text.replace(old, new)
        yield text


def _missing(error: UnicodeError) -> tuple[str, int]:
    """A character that Python's table lacks, and where to go on; what has none is raised again."""
    assert isinstance(error, UnicodeDecodeError)
    after = error.start + 2
    match error.encoding, error.object[error.start : after]:
        case "gb18030", pair if pair[:1] == b"\x80":
            return "\u20ac", error.start + 1
        case "big5hkscs", b"\xa3\xe1":
            return "\u20ac", after
        case "euc_jp", pair if len(pair) == 2 and min(pair) > 0xA0:
            # Vendors' characters: the same square of 94 by 94 that Shift_JIS has in rows of 188.
            row, column = divmod((pair[0] - 0xA1) * 94 + pair[1] - 0xA1, 188)
            lead = row + (0x81 if row < 0x1F else 0xC1)
            trail = column + (0x40 if column < 0x3F else 0x41)
            return bytes((lead, trail)).decode("cp932"), after
    raise error


codecs.register_error("holdfast.missing", _missing)


@cache
def _table(name: str) -> str:
    """What each byte stands for in a single-byte encoding, U+FFFE where it stands for nothing.

    Raises:
        LookupError: It is no single-byte encoding that is known.
    """
    table = list(bytes(range(0x100)).decode(_ALIASES.get(name, name), "replace").replace("\ufffd", "\ufffe"))
    if name == "UTF-8" or len(table) != 0x100:
        raise LookupError(name)
    for byte in range(0x80, 0xA0):
        # The Encoding Standard leaves no holes among the control characters, Python does.
        if table[byte] == "\ufffe":
            table[byte] = chr(byte)
    for byte, character in _OTHERWISE.get(name, {}).items():
        table[byte] = character
    return "".join(table)


# When the output of a process that has exited is complete; clock and verdicts are passed in.

_LOOKS_IN_QUIET = 5
"""Looks in a quiet window.  The more there are the less is waited for who fell asleep in its midst."""

_PACE = 0.01
"""Seconds between two looks at the least."""


class Drain:
    """The wait of one process for the rest of its output.

    Children that a process left behind may hold its output open, and go on talking.
    On a busy host one that is about to talk may have to wait for a processor: silence
    means something only if nobody who could break it has anything to do.  So the owner
    looks at them from time to time.  What must hold:

    1. It is over when every stream has ended, when the quiet window is over and a look
       after it has found nobody at work, or at the hard deadline; never before the exit.
    2. Every byte heard starts the quiet window anew, and so does every look that finds
       somebody at work, up to the hard deadline.
    3. What is ready wins over a deadline: the owner takes in what is there before it
       asks whether a deadline has ended the wait.
    4. At most one look is under way, and a verdict that is late delays nothing beyond
       the hard deadline.
    """

    __slots__ = (
        "_asked_at",
        "_hard",
        "_hard_at",
        "_look_at",
        "_open",
        "_quiet",
        "_quiet_at",
        "_silent",
        "timed_out",
    )

    def __init__(self, streams: Iterable[Stream], *, quiet: float | None, hard: float) -> None:
        """
        Args:
            quiet: Seconds of silence that end the wait; None waits for the end of the streams.
            hard: Seconds after the exit at which the wait is over in any case.
        """
        self._open = set(streams)
        self._quiet = quiet
        self._hard = hard
        self._hard_at: float | None = None
        self._quiet_at: float | None = None
        self._look_at: float | None = None
        self._asked_at = 0.0
        self._silent = False
        self.timed_out = False
        """Whether it was the hard deadline that ended the wait."""

    def exited(self, now: float) -> None:
        """Start the wait: the process has exited."""
        self._hard_at = now + self._hard
        self.on_output(now)
        if self._quiet is not None:
            self._look_at = now  # What later looks find is compared with this.

    def on_output(self, now: float) -> None:
        """Something came that belongs to the output."""
        if self._hard_at is None or self._quiet is None:
            return
        self._quiet_at = now + self._quiet
        self._silent = False
        if self._look_at is not None:
            self._look_at = self._next_look(now)  # Who talks is at work.

    def _next_look(self, now: float) -> float:
        assert self._quiet is not None
        assert self._quiet_at is not None
        return min(self._quiet_at, now + max(self._quiet / _LOOKS_IN_QUIET, _PACE))

    # Looks at those who hold the output open.

    def is_to_look(self, now: float) -> bool:
        """Whether it is time to look; then ``looked`` is called once, when it is known what they do."""
        if self._look_at is None or now < self._look_at:
            return False
        self._look_at, self._asked_at = None, now
        return True

    def looked(self, now: float, *, at_work: bool) -> None:
        """What the look has found: whether one of them is at work, or was since the look before."""
        assert self._quiet_at is not None
        if at_work:
            self.on_output(now)
        elif self._asked_at >= self._quiet_at:
            self._silent = True
        self._look_at = self._next_look(now)

    def ended(self, stream: Stream) -> None:
        """Wait no longer for this stream: it has ended, or its cap is reached."""
        self._open.discard(stream)

    def all_ended(self) -> None:
        """End the wait, because every stream has ended."""
        self._open.clear()
        self.timed_out = False

    @property
    def unfinished(self) -> bool:
        """Whether more output may come that the client wants."""
        return bool(self._open)

    @property
    def deadline(self) -> float:
        """When to look again, if nothing happens before; only after the exit."""
        assert self._hard_at is not None
        return self._hard_at if self._look_at is None else min(self._look_at, self._hard_at)

    def is_over(self, now: float) -> bool:
        """Whether the output is as complete as it gets."""
        if self._hard_at is None:
            return False
        # The earlier of two deadlines counts, also if both have passed when somebody looks.
        hard_first = self._quiet_at is None or self._hard_at <= self._quiet_at
        self.timed_out = bool(self._open) and hard_first and now >= self._hard_at
        return not self._open or self._silent or now >= self._hard_at
