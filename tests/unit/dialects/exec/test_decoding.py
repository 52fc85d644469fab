"""What clients say about files."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dialects.exec.decoding import (
    DecodedWatch,
    decode_watch_missing,
    decode_write_block,
    local,
    located,
)
from holdfast.errors import BadRequest, FileRefused
from holdfast.files import MOST_MISSING, MOST_MISSING_BYTES
from holdfast.protocol import paths
from holdfast.protocol.files import CopyParams, OpenFileParams, ReadFileParams, WalkParams


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file:///a/b/", "/a/b"),
        ("file:", "/"),
        ("file:////a//b", "/a/b"),
        ("file:///a%2F..%2Fb", "/b"),
        ("file:///%2F%2Fa", "/a"),
        ("file:///%FF", "/\udcff"),
    ],
)
def test_a_uri_means_one_path(uri: str, path: str) -> None:
    """Whatever dots and slashes are in it, encoded or not."""
    assert local(paths.parse(uri)) == path


def test_a_path_of_another_host_is_refused() -> None:
    with pytest.raises(FileRefused, match="'file://h/x' is invalid on 'linux'"):
        local(paths.parse("file://h/x"))


def test_uris_are_read_when_params_are() -> None:
    """So that what is wrong with them is said in the same order as everything else."""
    decode = located(CopyParams, "source_path", "destination_path")
    found = decode({"sourcePath": "file:///a", "destinationPath": "file:///b", "recursive": True})

    assert [local(uri) for uri in found.uris] == ["/a", "/b"]
    assert found.path == "/a"
    with pytest.raises(BadRequest, match="relative URL without a base"):
        decode({"sourcePath": "file:///a", "destinationPath": "b", "recursive": True})


@pytest.mark.parametrize(
    ("decode", "params", "words"),
    [
        (located(ReadFileParams), {}, "missing field `path`"),
        (located(ReadFileParams), None, "invalid type: null, expected struct WireFsReadFileParams"),
        (located(ReadFileParams), {"path": 1}, "invalid type: number, expected a string"),
        (
            located(ReadFileParams),
            {"path": "file:///a", "followSymlinks": "x"},
            'invalid type: string "x", expected a boolean',
        ),
        (located(WalkParams), {"path": "file:///a"}, "missing field `options`"),
        (
            located(WalkParams),
            {"path": "file:///", "options": {"maxDepth": 2**64}},
            "invalid number",
        ),
        (
            located(OpenFileParams),
            {"handleId": "h", "path": "file:///", "mode": "x"},
            "unknown variant `x`, expected `read` or `replace`",
        ),
        (decode_write_block, {"handleId": "h", "offset": 2**64, "chunk": ""}, "invalid number"),
        (decode_write_block, {"handleId": "h", "offset": 0, "chunk": "*"}, "Invalid symbol 42, offset 0."),
        (decode_watch_missing, {"watchId": 2**64, "missing": []}, "invalid number"),
        (
            decode_watch_missing,
            {"watchId": 1, "missing": ["x"]},
            "invalid URI: relative URL without a base",
        ),
        (decode_watch_missing, {"watchId": 1, "missing": 5}, "invalid type: number, expected a sequence"),
    ],
)
def test_what_does_not_fit_is_said_in_the_words_of_the_reference(
    decode: Any, params: Any, words: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        decode(params)

    assert str(refused.value) == words


def test_bytes_of_a_block_are_decoded() -> None:
    block = decode_write_block({"handleId": "h", "offset": 3, "chunk": "aGk="})

    assert (block.handle_id, block.offset, block.data) == ("h", 3, b"hi")


def test_paths_of_a_watch_are_read() -> None:
    watch = {"watchId": 1, "missing": ["file:///a/"], "present": "file:///b"}

    assert decode_watch_missing(watch) == DecodedWatch(1, ["/a"], "/b")
    for foreign in ({"missing": ["file://h/a"]}, {"present": "file://h/a"}):
        assert decode_watch_missing({**watch, **foreign}) == DecodedWatch(1, None, None)


def test_too_many_paths_of_a_watch_are_not_read() -> None:
    """Nothing is watched for them anyway, and to read them all would hold up everybody."""
    asked = {"watchId": 1, "missing": ["file:///x"] * MOST_MISSING}

    assert decode_watch_missing(asked).missing == ["/x"] * MOST_MISSING
    for many in (["no path"] * (MOST_MISSING + 1), ["x" * (MOST_MISSING_BYTES // 60)] * 61):
        asked["missing"] = many
        assert decode_watch_missing(asked) == DecodedWatch(1, None, None)
