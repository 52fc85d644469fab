"""A child that gives up its rights by itself, without any fork server, and then tries things."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

_ENTER = """if True:
    import ctypes, errno, json, os, socket, struct, sys
    libc = ctypes.CDLL(None, use_errno=True)
    instructions, ruleset = bytes.fromhex(sys.argv[1]), int(sys.argv[2])
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    if ruleset >= 0:
        assert libc.syscall(446, ruleset, 0) == 0, ctypes.get_errno()
    if instructions:
        kept = ctypes.create_string_buffer(instructions, len(instructions))
        program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(kept))
        assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
    told = {}

    def tried(name, function, *arguments):
        try:
            result = function(*arguments)
            told[name] = "done"
            return result
        except OSError as error:
            told[name] = errno.errorcode[error.errno]

    def call(name, number, *arguments):
        ctypes.set_errno(0)
        result = libc.syscall(number, *arguments)
        told[name] = "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
        return result
"""
_TELL = """
print(json.dumps(told))
"""


def confined(source: str, *arguments: str, instructions: bytes = b"", ruleset: int = -1) -> dict[str, Any]:
    """Run this source behind a filter and a ruleset; gives what became of everything it ``tried``.

    Its own arguments begin with ``sys.argv[3]``.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            _ENTER + source + _TELL,
            instructions.hex(),
            str(ruleset),
            *arguments,
        ],
        pass_fds=[] if ruleset < 0 else [ruleset],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told
