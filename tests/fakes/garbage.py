"""What only the collector would free: objects of ours that know each other in a circle."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CoroutineType, FrameType, GeneratorType

import holdfast

_OURS = str(Path(holdfast.__file__).parent)


def _name(found: object) -> str | None:
    """What an object is called here; None if it is not ours."""
    code = None
    if isinstance(found, FrameType):
        code = found.f_code
    elif isinstance(found, CoroutineType):
        code = found.cr_code
    elif isinstance(found, GeneratorType):
        code = found.gi_code
    if code is not None:
        return f"{type(found).__name__} {code.co_qualname}" if code.co_filename.startswith(_OURS) else None
    kind = type(found)
    return kind.__qualname__ if kind.__module__.startswith("holdfast.") else None


@contextlib.contextmanager
def garbage() -> Iterator[Counter[str]]:
    """Run the block without the collector; afterwards the names of what it would have had to free, counted.

    What the test and its client leave does not count.
    """
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(name for one in gc.garbage if (name := _name(one)) is not None)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.collect()
