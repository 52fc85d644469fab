"""Takes out of a terminal's output what a terminal would answer, so that it can be shown again (pure).

A program asks its terminal for the position of the cursor, its colours or its kind, and reads the answer
from its input.  Whoever shows old output once more has these questions answered once more, and the shell
that runs by then takes the answers for keys.
"""

from __future__ import annotations

import re

from .sequences import Sequences

_CSI = re.compile(rb"\x1b\[([<-?]?)([0-9:;]*)([ -/]*)([@-~])")
_CONTROLS = re.compile(rb"[\x00-\x17\x19\x1c-\x1f]")

_ANSWERED = {
    (b"", b"", b"c"),  # What kind of terminal: DA1, DA2, DA3.
    (b">", b"", b"c"),
    (b"=", b"", b"c"),
    (b"", b"", b"n"),  # Its state, where the cursor is: DSR, CPR, and those of DEC.
    (b"?", b"", b"n"),
    (b"", b"", b"x"),  # DECREQTPARM.
    (b"", b"$", b"p"),  # Whether a mode is set: DECRQM.
    (b"?", b"$", b"p"),
    (b">", b"", b"q"),  # Name and version: XTVERSION.
    (b"?", b"", b"u"),  # The keyboard protocol of kitty.
    (b"?", b"", b"m"),  # How modified keys are sent: XTQMODKEYS.
    (b"?", b"", b"g"),  # XTQFMTKEYS.
    (b"?", b"", b"S"),  # Size and colours of graphics: XTSMGRAPHICS.
    (b"", b"$", b"u"),  # DECRQTSR.
    (b"", b"$", b"w"),  # DECRQPSR.
    (b"", b"&", b"u"),  # DECRQUPSS.
    (b"", b"*", b"y"),  # Checksum of a rectangle: DECRQCRA.
    (b"", b'"', b"v"),  # DECRQDE.
    (b"", b"'", b"|"),  # DECRQLP.
    (b"", b"#", b"|"),  # XTREPORTSGR.
    (b"", b"#", b"R"),  # XTREPORTCOLORS.
    (b"", b"#", b"S"),  # XTTITLEPOS.
}
_WINDOW_REPORTS = range(11, 22)
"""``CSI Ps t`` with one of these asks; others move the window, or keep its title."""

_OSC_ASKING = {4, 5, *range(10, 20), 21, 22, 50, 52, 60, 61, 99, 702, 708, 5522}
"""OSC commands in which a question mark stands for a question, and not for text."""

_ITERM_ASKING = (b"ReportCellSize", b"ReportVariable=", b"RequestUpload=", b"Capabilities")

_ENQUIRY = b"\x05"

_STRINGS = (b"]", b"P", b"X", b"^", b"_")
_ENDED = re.compile(rb".*(?:\x1b\\|[\x07\x18\x1a])", re.DOTALL).fullmatch
_FINAL = re.compile(rb"\x1b(?:\[.*[@-~]|[ -/].*[0-~]|[^\[ -/])", re.DOTALL).fullmatch
"""Whether a sequence that is no string was not broken off by another one."""


def is_query(sequence: bytes) -> bool:
    """Whether a terminal would answer this control sequence."""
    kind = sequence[1:2]
    if kind == b"[":
        return _is_csi_query(sequence)
    if kind == b"]":
        return _is_osc_query(_body(sequence))
    if kind == b"P":
        # DECRQSS, XTGETTCAP, XTGETXRES.
        return _body(sequence).startswith((b"$q", b"+q", b"+Q"))
    if kind == b"_":
        # Graphics of kitty: nearly all of its commands are answered, and parts of one cannot be told apart.
        return _body(sequence).startswith(b"G")
    return sequence == b"\x1bZ"  # DECID.


def _body(sequence: bytes) -> bytes:
    """What is between the introducer of a string and its end."""
    return sequence[2:].removesuffix(b"\x1b\\").rstrip(b"\x07\x18\x1a")


def _is_csi_query(sequence: bytes) -> bool:
    match = _CSI.fullmatch(_CONTROLS.sub(b"", sequence))
    if match is None:
        return False
    prefix, params, between, final = match.groups()
    if final == b"t" and not prefix and not between:
        first = params.split(b";")[0]
        return first.isdigit() and int(first[:9]) in _WINDOW_REPORTS
    return (prefix, between, final) in _ANSWERED


def _is_osc_query(body: bytes) -> bool:
    number, _, rest = body.partition(b";")
    if number == b"1337":
        return rest.startswith(_ITERM_ASKING)
    if not number.isdigit() or int(number[:9]) not in _OSC_ASKING:
        return False
    if number == b"99":
        return b"p=?" in rest.partition(b";")[0].split(b":")
    return any(part == b"?" or part.endswith(b"=?") for part in rest.split(b";"))


class QueryFilter:
    """Passes output on without the queries in it.

    What must hold: the result does not depend on how the output was cut, nothing is taken out but queries and
    sequences that broke off, and no more is held back than the beginning of one sequence.
    """

    def __init__(self) -> None:
        self._sequences = Sequences()

    def feed(self, data: bytes) -> bytes:
        """Return what can be passed on."""
        passed = []
        for is_sequence, piece in self._sequences.feed(data):
            if not is_sequence:
                passed.append(piece.replace(_ENQUIRY, b""))
            elif piece[1:2] in _STRINGS:
                if not is_query(piece):
                    # What broke it off may be taken out: it must not go on with what follows that.
                    passed.append(piece if _ENDED(piece) else piece + b"\x1b\\")
            elif _FINAL(piece) and not is_query(piece):
                passed.append(piece)
            else:
                # A terminal acts on control characters within a sequence before it is complete.
                passed += _CONTROLS.findall(piece[1:].replace(_ENQUIRY, b""))
        return b"".join(passed)

    def rest(self) -> bytes:
        """Return the beginning of a sequence that is held back: what follows it is shown as it comes."""
        return self._sequences.rest()
