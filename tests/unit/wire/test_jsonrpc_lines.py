"""Lines out of a stream of bytes, however it is cut."""

from __future__ import annotations

import pytest

from holdfast.wire.jsonrpc import Lines, LineTooLong

STREAM = b'{"id":1}\n\n{"id":2}\r\n \r\r\nrest'
WHOLE = [b'{"id":1}', b"", b'{"id":2}', b" \r"]


def test_lines_come_without_their_ends() -> None:
    """One carriage return before the line end belongs to it; another one is the client's."""
    lines = Lines(limit=100)

    assert list(lines.feed(STREAM)) == WHOLE
    assert lines.rest() == b"rest"


def test_lines_are_the_same_byte_by_byte() -> None:
    lines = Lines(limit=100)

    found = [line for byte in STREAM for line in lines.feed(bytes([byte]))]

    assert found == WHOLE
    assert lines.rest() == b"rest"


def test_a_stream_that_ends_with_a_line_has_no_rest() -> None:
    lines = Lines(limit=100)

    assert list(lines.feed(b"a\n")) == [b"a"]
    assert lines.rest() == b""


def test_the_rest_loses_its_carriage_return_too() -> None:
    lines = Lines(limit=100)

    assert list(lines.feed(b"a\r")) == []
    assert lines.rest() == b"a"


def test_the_rest_is_given_once() -> None:
    lines = Lines(limit=100)
    list(lines.feed(b"tail"))

    assert [lines.rest(), lines.rest()] == [b"tail", b""]


def test_a_line_of_exactly_the_limit_passes() -> None:
    lines = Lines(limit=4)

    assert list(lines.feed(b"ab")) == []
    assert list(lines.feed(b"cd\nabcd")) == [b"abcd"]
    assert lines.rest() == b"abcd"


def test_a_line_over_the_limit_is_refused_before_it_is_complete() -> None:
    """A client must not make us collect what we will refuse."""
    lines = Lines(limit=4)
    list(lines.feed(b"abc"))

    with pytest.raises(LineTooLong):
        list(lines.feed(b"de"))


def test_a_complete_line_over_the_limit_is_refused_after_those_before_it() -> None:
    lines = Lines(limit=4).feed(b"ab\nabcde\nx\n")

    assert next(lines) == b"ab"
    with pytest.raises(LineTooLong):
        next(lines)
