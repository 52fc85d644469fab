"""``holdfast serve``, with two signals by which the soak asks what nobody can see from outside.

    python -m bench.soaking.launcher FD serve ...

SIGUSR1 writes a line with the number of asyncio tasks to the descriptor.  SIGUSR2 lets the collector run and
gives free memory back first, and adds how many objects there are of each class of ours.  The product has no
such way in, and needs none: this is the same program, called by another.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import signal
import sys
from collections import Counter
from enum import Enum
from types import FrameType

from holdfast.cli.main import main

_OURS = ("holdfast", "asyncio", "_asyncio", "httpx", "httpcore")


def census() -> dict[str, int]:
    """Objects by class, of the classes that are the server's own or the loop's; free memory is given back."""
    gc.collect()
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    kinds = Counter(type(each) for each in gc.get_objects())
    return {
        f"{kind.__module__}.{kind.__qualname__}": count
        for kind, count in kinds.items()
        if kind.__module__.partition(".")[0] in _OURS and not issubclass(kind, Enum)
    }


def serve(fd: int) -> int:
    """Be the server."""
    os.set_inheritable(fd, False)

    def tell(number: int, frame: FrameType | None) -> None:
        answer = {
            "tasks": len(asyncio.all_tasks()),
            "objects": census() if number == signal.SIGUSR2 else {},
        }
        os.write(fd, json.dumps(answer).encode() + b"\n")

    signal.signal(signal.SIGUSR1, tell)
    signal.signal(signal.SIGUSR2, tell)
    return main()


if __name__ == "__main__":
    sys.exit(serve(int(sys.argv.pop(1))))
