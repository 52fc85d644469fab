"""The shapes of what a server says of files: also those of servers that say less.

That they have the names our server uses is in ``test_answers``.
"""

from __future__ import annotations

import msgspec
import pytest

from holdfast.client import file_answers as a


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            b'{"entries":[{"fileName":"x","isDirectory":false,"isFile":true,"new":1}]}',
            a.ReadDirectoryResult([a.DirectoryEntry("x", is_directory=False, is_file=True)]),
        ),
        (
            b'{"entries":[{"path":"file:///x","kind":"socket"}],"errors":[],"truncated":false}',
            a.WalkResult([a.FoundEntry("file:///x", "socket")], [], truncated=False),
        ),
        (b'{"chunk":"","eof":true}', a.ReadBlockResult("", eof=True)),
    ],
)
def test_what_is_not_known_is_passed_over(text: bytes, value: object) -> None:
    assert msgspec.json.decode(text, type=type(value)) == value
