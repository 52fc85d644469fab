"""The screen of a terminal, against another emulator: cell by cell, for programs that people use."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.model import Size
from holdfast.terminal.emulator import Emulator
from tests.fakes import cells

pytestmark = [
    pytest.mark.skipif(cells.MISSING, reason=cells.WHY),
    pytest.mark.slow,
    # It starts Node for each of them.
    pytest.mark.timeout(300),
]

SIZES = [Size(24, 80), Size(8, 20), Size(12, 40), Size(43, 132), Size(60, 211)]

BAR = r"""
import sys
for done in range(0, 101, 5):
    bar = "\x1b[32m" + "█" * (done // 10) + "\x1b[0m"
    sys.stdout.write("\r\x1b[K" + bar + f" {done:3}% \x1b[1mbuilding\x1b[0m")
    sys.stdout.flush()
print()
"""

WIDE = r"""
for row in range(30):
    print("漢字かな交じり文 " * 3 + "한국어", end=" ")
    print("e\u0301a\u0308 \uff57\uff49\uff44\uff45 \x1b[7m\uff21\x1b[27m", row)
print("x" * 300, end="")
"""

SHELL = ["bash", "--norc", "--noprofile", "-i"]

SESSION = rb"""PS1='\[\e[1;32m\]$ \[\e[0m\]'
echo 'a  b'
ls --color=always /
printf '\e[31mred'
exit
"""

EDITING = (
    b"PS1='> '\recho "
    + b"0123456789" * 9
    + b"\x01\x1bf\x1bfX\x05\r\x10\x12echo\x07\recho a\x01b\x05c\rexit\r"
)

VIM = ["vim", "-u", "NONE", "-N", "-n", "-c", "set number hlsearch", "-c", "syntax on", "PAGE"]

PROGRAMS = {
    "bash": (SHELL, SESSION.replace(b"\n", b"\r")),
    "editing a line": (SHELL, EDITING),
    "vim": (VIM, b"ihello \x1bggO# top\x1b/line\r\x06\x05:split\r:q\r:q!\r"),
    "less": (["less", "-N", "PAGE"], b" jjG/line 1\rng\x20q"),
    "top": (["top", "-n", "2", "-d", "0.1"], b"zxc"),
    "a progress bar": (["python3", "-c", BAR], b""),
    "wide characters": (["python3", "-c", WIDE], b""),
}


async def said(argv: list[str], keys: bytes, size: Size, page: Path) -> bytes:
    """All that a program writes to its terminal when these keys are typed."""
    argv = [str(page) if each == "PAGE" else each for each in argv]
    async with holdfast.local() as host:
        env = {"TERM": "xterm-256color", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HISTFILE": ""}
        env["HOME"] = str(page.parent)
        handle = await host.start(argv, terminal=size, env=env, cwd=page.parent, timeout=30)
        assert handle.stdin is not None
        handle.stdin.write(keys)
        return b"".join([piece async for piece in handle])


def comparable(state: dict[str, Any], name: str) -> dict[str, Any]:
    """A state without what two good emulators differ in."""
    if name == "top":
        state["cursor"][0] = min(state["cursor"][0], len(state["cells"][0]) - 1)
    for row in state["cells"]:
        if name == "top":
            # It erases to the end of the line behind a character in the last column.  xterm.js then erases
            # nothing; xterm, and the emulator here, the last column.
            del row[-1]
        for cell in row:
            # One of the sixteen colours is the same, whichever of the two ways it was set.
            mode_fg, fg, mode_bg, bg, *rest = cell[2]
            cell[2] = [fg < 16 or mode_fg, fg, bg < 16 or mode_bg, bg, *rest]
    return state


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size.cols}x{size.rows}")
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_snapshot_and_what_follows_show_what_the_whole_output_shows(
    name: str, size: Size, tmp_path: Path
) -> None:
    """Wherever the snapshot is taken: between sequences, within one, within a character."""
    argv, keys = PROGRAMS[name]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"no {argv[0]}")
    page = tmp_path / "page.py"
    page.write_text("".join(f"def line_{number}(): return 'line {number}'  # 漢\n" for number in range(200)))
    whole = await said(argv, keys, size, page)
    step = max(1, len(whole) // 23)
    cuts = [*range(0, len(whole), step), len(whole)]
    emulator, snapshots, at = Emulator(size), [], 0
    for cut in cuts:
        emulator.feed(whole[at:cut])
        at = cut
        snapshots.append(emulator.snapshot(0, complete=True))

    asked = [(size, [whole[:cut]]) for cut in cuts]
    asked += [(size, [snapshot.data]) for snapshot in snapshots]
    asked += [(size, [whole])]
    asked += [(size, [snapshot.data, whole[cut:]]) for cut, snapshot in zip(cuts, snapshots, strict=True)]
    found = [comparable(each, name) for each in cells.shown(asked)]

    count = len(cuts)
    (final,) = found[2 * count : 2 * count + 1]
    assert len(whole) > 100
    for index, (cut, snapshot) in enumerate(zip(cuts, snapshots, strict=True)):
        then, drawn, after = found[index], found[count + index], found[2 * count + 1 + index]
        assert drawn == then, f"at {cut} of {len(whole)}"
        assert after == final, f"behind {cut} of {len(whole)}"
        col, row = then["cursor"]  # Behind the last column, if the next character wraps.
        assert (snapshot.col - 1, snapshot.row - 1) == (min(col, size.cols - 1), row)
        assert snapshot.alternate == (then["type"] == "alternate")
