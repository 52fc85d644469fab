"""What ``holdfast fetch`` sends and shows of a head; the rest: ``tests/system/test_cli_fetch.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.api.http import MOST_SENT, WebResponse
from holdfast.cli.fetch import _body, _head
from holdfast.cli.report import Failure


class Head:
    """A response of which only the head is looked at.  Implements ``backend.HttpResponse``."""

    def __init__(self, status: int, *headers: tuple[str, str]) -> None:
        self.status = status
        self.headers = headers

    async def read(self) -> bytes:
        return b""

    async def aclose(self) -> None:
        pass


def test_what_to_send_is_a_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "question"
    file.write_bytes(b"\x00\xff")

    assert (_body(None), _body("a=ä"), _body(f"@{file}")) == (b"", "a=ä".encode(), b"\x00\xff")


def test_what_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    """A device without end must not fill the memory."""
    with pytest.raises(Failure, match=f"no more than {MOST_SENT} bytes"):
        _body("@/dev/zero")
    with pytest.raises(Failure, match=r"cannot read .*: No such file"):
        _body(f"@{tmp_path}/none")
    with pytest.raises(Failure, match="needs the name of a file"):
        _body("@")


def test_a_head_is_shown_as_lines_that_are_safe_to_show() -> None:
    """A server chose the headers."""
    head = WebResponse(Head(404, ("a", "1"), ("b", "\x1b[2J\n\nx: y")))

    assert _head(head) == b"HTTP 404 Not Found\na: 1\nb: \\x1b[2J\\n\\nx: y\n\n"
    assert _head(WebResponse(Head(799))) == b"HTTP 799\n\n"
