"""Files on the wire.  How their params are decoded is in ``dialects/exec/test_decoding``."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.protocol import files as f
from holdfast.protocol.shapes import Params, Shape, Signature


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (f.ReadFileParams("file:///x"), b'{"path":"file:///x"}'),
        (f.WriteFileParams("/x", ""), b'{"path":"/x","dataBase64":""}'),
        (f.RemoveParams("/x", recursive=False, force=True), b'{"path":"/x","recursive":false,"force":true}'),
        (f.OpenFileParams("h", "/x"), b'{"handleId":"h","path":"/x"}'),
        (f.OpenFileParams("h", "/x", f.OpenMode.REPLACE), b'{"handleId":"h","path":"/x","mode":"replace"}'),
        (f.WatchMissingParams(1, []), b'{"watchId":1,"missing":[]}'),
    ],
)
def test_a_request_has_what_is_not_understood_by_itself(params: Params, text: bytes) -> None:
    assert msgspec.json.encode(params) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (f.ReadFileResult("aGk="), b'{"dataBase64":"aGk="}'),
        (
            f.GetMetadataResult(True, False, False, 4096, 1, 2),
            b'{"isDirectory":true,"isFile":false,"isSymlink":false,"size":4096,'
            b'"createdAtMs":1,"modifiedAtMs":2}',
        ),
        (
            f.ReadDirectoryResult([f.DirectoryEntry("a", is_directory=False, is_file=True)]),
            b'{"entries":[{"fileName":"a","isDirectory":false,"isFile":true}]}',
        ),
        (
            f.WalkResult(
                [f.FoundEntry("file:///a", f.WalkKind.FILE)], [f.FoundError("file:///b", "m")], False
            ),
            b'{"entries":[{"path":"file:///a","kind":"file"}],'
            b'"errors":[{"path":"file:///b","message":"m"}],"truncated":false}',
        ),
        (f.OpenFileResult("h"), b'{"handleId":"h"}'),
        (f.ReadBlockResult("", eof=True), b'{"chunk":"","eof":true}'),
        (f.WatchMissingResult(watching=False), b'{"watching":false}'),
    ],
)
def test_an_answer_has_all_its_members_in_the_order_of_the_reference(result: Shape, text: bytes) -> None:
    assert msgspec.json.encode(result) == text


SIGNATURES: list[Any] = [each for each in vars(f).values() if isinstance(each, Signature)]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda each: each.name)
def test_every_method_about_files_is_called_so(signature: Any) -> None:
    assert signature.name.startswith("fs/")
    assert issubclass(signature.params, Params)
