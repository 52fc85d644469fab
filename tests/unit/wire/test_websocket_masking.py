"""Masking: every payload byte is combined with one of four bytes, in turn."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.wire import websocket as frames

MASK = b"\x12\xab\x00\xff"


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 511, 512, 513, 1000])
def test_unmasking_combines_each_byte_with_its_byte_of_the_mask(size: int) -> None:
    """There are two ways, for small and large payloads, and they work on blocks: all edges are tried."""
    payload = bytes(index * 7 % 256 for index in range(size))
    expected = bytes(byte ^ MASK[index % 4] for index, byte in enumerate(payload))

    at_first = frames._with_integers(memoryview(payload), MASK)
    frames.load()
    later = frames.unmask(memoryview(payload), MASK)

    assert at_first == later == expected


def test_unmasking_takes_a_view_and_gives_bytes() -> None:
    """The reader hands out views of its buffer, and must not keep the buffer alive."""
    view = memoryview(b"..MJ..")[2:4]

    for unmask in (frames._with_integers, frames.unmask):
        plain = unmask(view, b"\x05\x05\x05\x05")
        assert (type(plain), plain) == (bytes, b"HO")


@pytest.mark.slow
def test_the_compiled_routine_comes_when_it_is_wanted_and_without_its_package() -> None:
    """The package imports fifty modules, which take as much time and memory as half our own code."""
    script = """
import sys
from holdfast.wire import websocket as frames
frames.unmask(memoryview(b"x" * 512), b"abcd")
small = frames.unmask is frames._with_integers
frames.unmask(memoryview(b"x" * 513), b"abcd")
print(small, frames.unmask is frames._with_integers, "websockets" in sys.modules)
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "True False False\n"


def test_a_package_that_has_no_compiled_routine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "find_spec", lambda _: None)

    with pytest.raises(ModuleNotFoundError, match=r"websockets\.speedups"):
        frames.load()
