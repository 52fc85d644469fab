"""Turns a recording of a terminal into the moving picture of the README: picture.py CAST SVG.

The recording is an asciicast of plain lines: text, ends of lines and colours, and nothing that moves the
cursor.  Everything is on the picture from the beginning, and hidden until its time has come.  Where
animations are not shown, or not wanted, the last moment is seen.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

CELL, LINE, EDGE = 8.4, 20, 16
"""Pixels: the width of a character, the height of a line, and what is left free around the text."""

STYLES = {"": "", "0": "", "1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow"}
"""The class for each colour that may be in a recording."""

LONGEST_WAIT = 0.5
"""Seconds.  Who watches waits less than who has recorded."""

PART = re.compile(r"\x1b\[([0-9;]*)m|(\r?\n)|([^\x1b\r\n]+)")

CSS = """
.screen{fill:#14191f;stroke:#4b5661}
text{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#dbe2e8;white-space:pre}
.bold{font-weight:700}.dim{fill:#9aa7b3}.red{fill:#ff8f85}.green{fill:#7ee08a}.yellow{fill:#e8c66b}
.later{animation-name:hidden}
@keyframes hidden{from,to{visibility:hidden}}
@media (prefers-reduced-motion:reduce){.later{animation-name:none}}
"""


@dataclass
class Run:
    """Text of one style on one line, and when it appears, in seconds."""

    row: int
    column: int
    style: str
    text: str
    time: float


def events(cast: str) -> Iterator[tuple[float, str]]:
    """Give the output of a recording, with the time since its beginning, long waits cut short."""
    time = 0.0
    header, *lines = cast.splitlines()
    if json.loads(header)["version"] != 3:
        raise ValueError("only version 3 of asciicast has been considered")
    for line in lines:
        wait, kind, data = json.loads(line)
        time += min(wait, LONGEST_WAIT)
        if kind == "o":
            yield time, data


def runs_of(cast: str) -> list[Run]:
    """Return what the terminal shows in the end, in the order in which it has appeared."""
    runs: list[Run] = []
    row = column = 0
    style = ""
    for time, data in events(cast):
        end = 0
        for part in PART.finditer(data):
            if part.start() != end:
                break
            end = part.end()
            colour, is_end, text = part.groups()
            if colour is not None:
                style = STYLES[colour]
            elif is_end:
                row, column = row + 1, 0
            else:
                runs.append(Run(row, column, style, text, round(time, 2)))
                column += len(text)
        if end != len(data):
            raise ValueError(f"not a plain line: {data[end:]!r}")
    return [run for run in runs if run.text.strip()]


def svg(cast: str, title: str) -> str:
    """Return the picture of a recording."""
    runs = runs_of(cast)
    width = round(max(run.column + len(run.text.rstrip()) for run in runs) * CELL + 2 * EDGE)
    height = (runs[-1].row + 1) * LINE + 2 * EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{CSS}</style>",
        f'<rect class="screen" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
    ]
    for run in runs:
        text, kind = run.text.rstrip(), f"later {run.style}".strip()
        left, base = EDGE + run.column * CELL, EDGE + run.row * LINE + 15
        lines.append(
            f'<text class="{kind}" style="animation-duration:{run.time}s" x="{left:.1f}"'
            f' y="{base}" textLength="{len(text) * CELL:.1f}" xml:space="preserve">{escape(text)}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


TITLE = "A terminal: a process is started, its server is killed with -9, and process and output go on"

if __name__ == "__main__":
    recording, picture = map(Path, sys.argv[1:])
    picture.write_text(svg(recording.read_text(encoding="utf-8"), TITLE), encoding="utf-8")
