"""Output by place, there and back."""

from __future__ import annotations

import pytest

from holdfast.model import Stream
from holdfast.protocol.ranges import READ_RANGE, range_result, read_range
from holdfast.ranges import OutputRange
from holdfast.wire.jsonrpc import encode

FOUND = OutputRange(Stream.STDERR, 3, b"\x00\xffhi", 7, 9, 1, ended=False)


def test_a_range_gets_to_the_client_as_it_is() -> None:
    assert read_range(READ_RANGE.read(encode(range_result(FOUND)))) == FOUND


def test_what_is_not_base64_is_no_range() -> None:
    told = range_result(FOUND)
    told.data = "!"

    with pytest.raises(ValueError, match="symbol"):
        read_range(told)
