"""A terminal without a window, by libghostty: takes output, and draws what it shows.

The library comes with the extra ``screen``.  It is loaded when the first terminal needs it, which takes a
third of a second; ``load`` may be called in a thread before.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from typing import Any

from holdfast.cursors import CursorShape
from holdfast.model import Size
from holdfast.screens import ScreenSnapshot

from .resets import RESET

MOST_CELLS = 250_000
"""Characters of the largest screen that is kept: four times that of a large monitor."""

_UNFINISHED_MOST = 65_536
"""Bytes of a sequence that is not complete.  What is longer is a picture, which is not drawn anyway."""

_TITLE_MOST = 1024

_ALTERNATE = (1049, 1047, 47)
_TAKEN_APART = re.compile(rb"\x1b\[\?(?:1049|1047|47|2026|6)h")
"""Modes that are set at their own place: other screens, a picture that is held back, another origin."""
_CURSOR = re.compile(rb"\x1b\[(\d+);(\d+)H([^\n]*)\Z")
_REGION = re.compile(rb"\x1b\[(\d+);\d+r")
_STOPS = re.compile(rb"\x1b\[3g(?:\x1b\[\d+G\x1bH)*")
_COLOUR = re.compile(rb"\x1b\[([34])8;5;(\d|1[0-5])m")
_STYLED = re.compile(rb"((?:\x1b\[[\d;:]*m)*)([^\x1b\x00-\x20]+)(?:\x1b\[0m)?")
"""One character with what sets its attributes."""
_USUAL_CHARACTERS = re.compile(rb"\x1b[()]B")
_BLINKING = 12
_BLINK = b"\x1b[?12h"
_LEAVE = b"\x1b[?47l\x1b[?1047l\x1b[?1049l\x1b[?6l"
_CLEAR = b"\x1b[H\x1b[2J"


def is_available() -> bool:
    """Whether the library is installed; does not load it."""
    return importlib.util.find_spec("pyghostty") is not None


@cache
def load() -> Any:
    """Load the library.

    Raises:
        ImportError: It is not installed.
        OSError: It cannot be loaded here.
    """
    import pyghostty

    return pyghostty


def is_loaded() -> bool:
    """Whether the library was loaded already."""
    return "pyghostty" in sys.modules


def _usual_colour(match: re.Match[bytes]) -> bytes:
    """One of the sixteen colours as nearly all programs set it: terminals may show it brighter when bold."""
    number = int(match[2])
    return b"\x1b[%dm" % (10 * int(match[1]) + number if number < 8 else 10 * int(match[1]) + 52 + number)


class EmulatorFailed(Exception):
    """The library refuses; what it was asked for is not to be had."""


class Emulator:
    """One terminal."""

    __slots__ = ("_free", "_handle", "_lib", "size")

    def __init__(self, size: Size, handle: Any = None) -> None:
        """
        Args:
            handle: The terminal of the library that this one takes over.

        Raises:
            EmulatorFailed: There is no memory for it.
        """
        self._lib = load()
        ffi, lib = self._lib.ffi, self._lib.lib
        self.size = size
        if handle is None:
            handle = ffi.new("GhosttyTerminal*")
            self._check(lib.ghostty_terminal_new(ffi.NULL, handle, size.cols, size.rows), "terminal")
        self._free = lib.ghostty_terminal_free
        self._handle = handle
        for name, kind, value in _BOUNDS:
            option = getattr(lib, f"GHOSTTY_TERMINAL_OPT_{name}")
            self._check(lib.ghostty_terminal_set(handle[0], option, ffi.new(f"{kind}*", value)), name)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._free(self._handle[0])

    def feed(self, data: bytes) -> None:
        """Take output."""
        self._lib.lib.ghostty_terminal_vt_write(self._handle[0], data, len(data))

    def resize(self, size: Size) -> None:
        """Give the terminal another size."""
        result = self._lib.lib.ghostty_terminal_resize(self._handle[0], size.cols, size.rows, 8, 16)
        self._check(result, "resize")
        self.size = size

    def snapshot(self, seq: int, *, complete: bool) -> ScreenSnapshot:
        """Return what the terminal shows, as the state behind number ``seq``."""
        shape = self._cursor_shape()
        try:
            data = self._draw(self._unfinished(), shape)
        except EmulatorFailed:
            # In the midst of a sequence that is too long to keep.  What is left of it must not be shown.
            data, complete = self._draw_plain(shape) + b"\x1bX", False
        return ScreenSnapshot(
            seq=seq,
            size=self.size,
            data=data,
            row=self._get("CURSOR_Y", "uint16_t") + 1,
            col=self._get("CURSOR_X", "uint16_t") + 1,
            cursor_visible=bool(self._get("CURSOR_VISIBLE", "bool")),
            title=self._title(),
            alternate=self._get("ACTIVE_SCREEN", "int") != 0,
            complete=complete,
            cursor_shape=shape,
            cursor_blinking=self._mode(_BLINKING),
        )

    def _cursor_shape(self) -> CursorShape:
        """The shape of the cursor.  To find it out takes a copy of the screen: 2 ms, if that is large."""
        ffi, lib = self._lib.ffi, self._lib.lib
        state, shape = ffi.new("GhosttyRenderState*"), ffi.new("GhosttyRenderStateCursorVisualStyle*")
        self._check(lib.ghostty_render_state_new(ffi.NULL, state), "render state")
        try:
            self._check(lib.ghostty_render_state_update(state[0], self._handle[0]), "render state")
            key = lib.GHOSTTY_RENDER_STATE_DATA_CURSOR_VISUAL_STYLE
            self._check(lib.ghostty_render_state_get(state[0], key, shape), "cursor")
        finally:
            lib.ghostty_render_state_free(state[0])
        return _SHAPES[int(shape[0])]

    # Drawing.

    def _draw(self, unfinished: bytes, shape: CursorShape) -> bytes:
        """Everything: the screen below an alternate one, the saved cursor, the screen, what is unfinished."""
        parts = [RESET, _LEAVE, RESET, _CLEAR]
        if title := self._title():
            parts.append(b"\x1b]2;%b\x1b\\" % title.encode())
        parts += self._palette()
        entered = [mode for mode in _ALTERNATE if self._mode(mode)]
        if self._get("ACTIVE_SCREEN", "int") != 0 and entered:
            below = self._copy()
            below.feed(b"\x18\x1b[?%dl" % entered[0])
            parts += [
                below._saved(),
                _CLEAR,
                below._format(),
                below._shape(below._cursor_shape()),  # Some terminals have one for each screen.
                b"\x1b[?%dh\x1b[m\x1b(B\x1b)B\x0f" % entered[0],
                _CLEAR,
            ]
        drawn = self._draw_plain(shape)
        parts += [self._saved(), self._shape(shape), drawn, self._last(drawn), unfinished]
        return b"".join(parts)

    def _draw_plain(self, shape: CursorShape) -> bytes:
        """The screen, its modes and its cursor."""
        drawn = _STOPS.sub(self._stops, self._format(modes=True), count=1)
        late = b""
        if self._mode(6):
            # The origin moves the cursor, and the screen is drawn without it.
            region, cursor = _REGION.findall(drawn), _CURSOR.search(drawn)
            top = int(region[-1]) if region else 1
            if cursor is not None:
                row = max(1, int(cursor[1]) - top + 1)
                late = b"\x1b[?6h\x1b[%d;%bH%b" % (row, cursor[2], cursor[3])
        if shape is not CursorShape.DEFAULT:
            drawn = drawn.replace(_BLINK, b"", 1)  # It belongs to the shape, with which it is chosen.
        return _TAKEN_APART.sub(b"", drawn) + late

    def _shape(self, shape: CursorShape) -> bytes:
        """Choose a shape of the cursor; whether it blinks is known here."""
        if shape is CursorShape.DEFAULT:
            return b"\x1b[0 q"
        return b"\x1b[%d q" % (_NUMBERS[shape] - self._mode(_BLINKING))

    def _saved(self) -> bytes:
        """Save the cursor as it is saved here."""
        saved = self._copy()
        saved.feed(b"\x18\x1b8")
        cursor = _CURSOR.search(saved._format())
        return b"" if cursor is None else cursor[0] + b"\x1b7\x1b[m\x1b(B\x1b)B\x0f"

    def _last(self, drawn: bytes) -> bytes:
        """Draw the character before the cursor once more: an accent may follow, or that it is repeated."""
        x, y = self._get("CURSOR_X", "uint16_t"), self._get("CURSOR_Y", "uint16_t")
        cursor = _CURSOR.search(drawn)
        if cursor is None or not x or self._get("CURSOR_PENDING_WRAP", "bool"):
            return b""
        cell = _STYLED.fullmatch(self._format(place=(x - 1, y)))
        if cell is None or (cell[1] or b"\x1b[0m") != cursor[3]:
            return b""  # With other attributes it was not the last one that was written.
        width = self._lib.lib.ghostty_unicode_codepoint_width(ord(cell[2].decode()[0]))
        return b"\x1b[%dD%b" % (width, cell[2])

    def _stops(self, match: re.Match[bytes]) -> bytes:
        """Nothing, if the tabulators are where they are by default."""
        usual = b"\x1b[3g" + b"".join(b"\x1b[%dG\x1bH" % col for col in range(9, self.size.cols + 1, 8))
        return b"" if match[0] == usual else match[0]

    def _palette(self) -> list[bytes]:
        """The colours that are not the default."""
        ffi = self._lib.ffi
        now, usual = (
            self._read(f"COLOR_PALETTE{which}", "GhosttyColorRgb[256]") for which in ("", "_DEFAULT")
        )
        before, after = bytes(ffi.buffer(usual)), bytes(ffi.buffer(now))
        if before == after:
            return []
        colours = [(index, after[3 * index : 3 * index + 3]) for index in range(256)]
        return [
            b"\x1b]4;%d;rgb:%02x/%02x/%02x\x1b\\" % (index, *colour)
            for index, colour in colours
            if colour != before[3 * index : 3 * index + 3]
        ]

    def _format(self, *, modes: bool = False, place: tuple[int, int] | None = None) -> bytes:
        """The screen as escape sequences, with its cursor at the end; with ``modes`` also its modes.

        With ``place`` only what is there, with its attributes.
        """
        ffi, lib = self._lib.ffi, self._lib.lib
        options = self._lib.core.init_sized("GhosttyFormatterTerminalOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
        extra, screen = options.extra, options.extra.screen
        screen.cursor = screen.style = screen.charsets = place is None
        if modes:
            extra.modes = extra.scrolling_region = extra.tabstops = extra.keyboard = True
            screen.hyperlink = screen.protection = screen.kitty_keyboard = True
        # Without it there would be what has left the screen at the top, as far as the library has it.
        selection = self._lib.core.init_sized("GhosttySelection")
        selection.start = self._cell(*(place or (0, 0)))
        selection.end = self._cell(*(place or (self.size.cols - 1, self.size.rows - 1)))
        options.selection = selection
        formatter, out, size = ffi.new("GhosttyFormatter*"), ffi.new("uint8_t**"), ffi.new("size_t*")
        self._check(
            lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._handle[0], options[0]), "formatter"
        )
        try:
            self._check(lib.ghostty_formatter_format_alloc(formatter[0], ffi.NULL, out, size), "format")
        finally:
            lib.ghostty_formatter_free(formatter[0])
        return _COLOUR.sub(_usual_colour, _USUAL_CHARACTERS.sub(b"", self._take(out, size)))

    def _cell(self, x: int, y: int) -> Any:
        """A reference to a place on the screen."""
        point = self._lib.ffi.new("GhosttyPointS*")
        point.tag = self._lib.lib.GHOSTTY_POINT_TAG_ACTIVE
        point.value.x, point.value.y = x, y
        reference = self._lib.core.init_sized("GhosttyGridRef")
        refer = self._lib.core.union_fn(
            "ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)"
        )
        self._check(refer(self._handle[0], point[0], reference), "cell")
        return reference[0]

    def _copy(self) -> Emulator:
        """Another terminal in the same state."""
        ffi, lib = self._lib.ffi, self._lib.lib
        out, size = ffi.new("uint8_t**"), ffi.new("size_t*")
        self._check(lib.ghostty_snapshot_encode_alloc(self._handle[0], ffi.NULL, out, size), "encode")
        data = self._take(out, size)
        decoder, handle = ffi.new("GhosttySnapshotDecoder*"), ffi.new("GhosttyTerminal*")
        self._check(lib.ghostty_snapshot_decoder_new_buf(ffi.NULL, decoder, data, len(data)), "decoder")
        try:
            self._check(lib.ghostty_snapshot_decoder_decode(decoder[0], handle), "decode")
        finally:
            lib.ghostty_snapshot_decoder_free(decoder[0])
        return Emulator(self.size, handle)

    def _unfinished(self) -> bytes:
        """The beginning of a sequence or character that is not complete."""
        if self._get("VT_GROUND", "bool"):
            return b""
        ffi, lib = self._lib.ffi, self._lib.lib
        out, size = ffi.new("uint8_t**"), ffi.new("size_t*")
        self._check(
            lib.ghostty_terminal_continuation_alloc(self._handle[0], ffi.NULL, out, size), "continuation"
        )
        return self._take(out, size)

    def _title(self) -> str:
        found = self._read("TITLE", "GhosttyString")[0]
        text = bytes(self._lib.ffi.buffer(found.ptr, found.len)) if found.len else b""
        shown = text[:_TITLE_MOST].decode(errors="ignore")
        return "".join(character for character in shown if character.isprintable())

    # The library.

    def _mode(self, number: int) -> bool:
        config = self._lib.ffi.new("GhosttyTerminalModeConfig*")
        config.mode = number
        lib = self._lib.lib
        self._check(lib.ghostty_terminal_get(self._handle[0], lib.GHOSTTY_TERMINAL_DATA_MODE, config), "mode")
        return bool(config.value)

    def _get(self, name: str, kind: str) -> Any:
        return self._read(name, kind)[0]

    def _read(self, name: str, kind: str) -> Any:
        ffi, lib = self._lib.ffi, self._lib.lib
        out = ffi.new(kind if kind.endswith("]") else f"{kind}*")
        key = getattr(lib, f"GHOSTTY_TERMINAL_DATA_{name}")
        self._check(lib.ghostty_terminal_get(self._handle[0], key, out), name)
        return out

    def _take(self, out: Any, size: Any) -> bytes:
        ffi, lib = self._lib.ffi, self._lib.lib
        try:
            return bytes(ffi.buffer(out[0], size[0])) if size[0] else b""
        finally:
            lib.ghostty_free(ffi.NULL, out[0], size[0])

    @staticmethod
    def _check(result: int, what: str) -> None:
        if result:
            raise EmulatorFailed(f"{what}: {result}")


_BOUNDS = (
    ("SCROLLBACK_MAX_LINES", "size_t", 0),
    ("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t", 0),
    ("APC_MAX_BYTES", "size_t", 0),
    ("APC_MAX_BYTES_KITTY", "size_t", 0),
    ("CLIPBOARD_WRITE_MAX_BYTES", "size_t", 0),
    ("CONTINUATION_MAX_BYTES", "size_t", _UNFINISHED_MOST),
    ("DEFAULT_CURSOR_STYLE", "GhosttyTerminalCursorStyle", 3),
)
"""What a terminal may keep beside its screen: no history, no pictures, no clipboard.

And a shape of the cursor that no program can choose: it stands for none.
"""

_SHAPES = (CursorShape.BAR, CursorShape.BLOCK, CursorShape.UNDERLINE, CursorShape.DEFAULT)
"""By the numbers of the library."""
_NUMBERS = {CursorShape.BLOCK: 2, CursorShape.UNDERLINE: 4, CursorShape.BAR: 6}
"""What DECSCUSR is given for a steady cursor of that shape; one less makes it blink."""
