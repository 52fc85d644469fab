"""Paths as URIs and back, byte for byte."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadRequest
from holdfast.protocol import paths
from holdfast.protocol.paths import path_of, uri_of

NAMES = st.binary(min_size=1, max_size=8).filter(lambda name: not set(name) & {0, 47} and name.strip(b"."))
PATHS = st.lists(NAMES, max_size=4).map(lambda names: os.fsdecode(b"/" + b"/".join(names)))


@given(path=PATHS)
def test_every_path_comes_back_and_means_the_same_to_a_server(path: str) -> None:
    assert path_of(uri_of(path)) == path
    assert paths.parse(uri_of(path)).path == path


@pytest.mark.parametrize("path", ["/c:", "/c:/x", "/c:name", "/C:/x", "/c:\udcff", "/x/c:/y"])
def test_a_name_with_a_colon_is_no_drive_of_another_system(path: str) -> None:
    """The rules for URLs would make another path of it, or none."""
    assert paths.parse(uri_of(path)).path == path


@pytest.mark.parametrize("path", ["", "x", "./x", "/a/../b", "/a/.", "/..", "/a\0b", "/\ud800"])
def test_what_has_no_uri_is_refused(path: str) -> None:
    """A server would read something else out of it."""
    with pytest.raises(BadRequest):
        uri_of(path)


@pytest.mark.parametrize("path", ["/", "/.hidden", "/...", "/a..b", "//", "/a/"])
def test_what_only_looks_odd_is_fine(path: str) -> None:
    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize("uri", ["", "/x", "http://x/y", "file://host/x", "file:"])
def test_what_is_no_path_of_the_host_is_refused(uri: str) -> None:
    with pytest.raises(BadRequest):
        path_of(uri)
