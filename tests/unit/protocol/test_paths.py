"""Paths as clients send them: what is a path here, what is one elsewhere, what is none."""

from __future__ import annotations

import pytest

from holdfast.errors import BadRequest, LimitReached
from holdfast.protocol.paths import LONGEST, PathUri, parse, to_uri


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///tmp", "/tmp"),
        ("file://localhost/tmp", "/tmp"),
        ("file://LOCALHOST/tmp", "/tmp"),
        ("file:tmp", "/tmp"),
        ("file:/tmp", "/tmp"),
        ("file:", "/"),
        ("file://", "/"),
        ("file:///", "/"),
        ("file:////tmp", "//tmp"),
        (" file:///tmp", "/tmp"),
        ("file:///tmp ", "/tmp"),
        ("FILE:///tmp", "/tmp"),
        ("file:///tmp/../tmp", "/tmp"),
        ("file:///tmp/%2e%2E/tmp", "/tmp"),
        ("file:///a/./b/%2e/c", "/a/b/c"),
        ("file:///a/b/..", "/a/"),
        ("file:///a/.", "/a/"),
        ("file:///../..", "/"),
        ("file:///tmp%2F", "/tmp/"),
        ("file:///a%2F..%2Fb", "/a/../b"),
        ("file:///C|/x", "/C|/x"),
        ("file:///C:x", "/C:x"),
        ("file:///tmp/%zz", "/tmp/%zz"),
        ("file:///tmp/%", "/tmp/%"),
        ("file:///tmp/é", "/tmp/é"),
        ("file:///tmp/%C3%A9", "/tmp/é"),
        ("file:///%ff", "/\udcff"),
        ("file:///tmp/\ttab\r\n", "/tmp/tab"),
        ("file:///tmp/\0", "/tmp/"),
        ("file:///a b", "/a b"),
        ("file:\\tmp\\x", "/tmp/x"),
        ("file:///a&b+c;d=[e]~", "/a&b+c;d=[e]~"),
    ],
)
def test_a_uri_names_a_path_of_this_host(uri: str, path: str) -> None:
    """As leniently as a browser reads an address."""
    assert parse(uri).path == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/", "/"),
        ("/tmp", "/tmp"),
        ("//tmp", "//tmp"),
        ("/tmp/", "/tmp/"),
        ("/a b%20c#?\u00e9", "/a b%20c#?\u00e9"),
        ("/a\\b", "/a\\b"),
        ("/C:/x", "/C:/x"),
        ("/tmp ", "/tmp "),
        ("/tmp/\t\n", "/tmp/\t\n"),
        ("/file:///etc", "/file:///etc"),
        ("/a/./b/../c", "/a/c"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("/../..", "/"),
        ("/a/...", "/a/..."),
        ("/a/%2e%2e/b", "/a/%2e%2e/b"),
        ("/a%2F..", "/a%2F.."),
    ],
)
def test_a_native_path_is_taken_as_it_stands(text: str, path: str) -> None:
    """Older clients send these.  Nothing is decoded, and only dot segments are removed."""
    assert parse(text) == PathUri(to_uri(path), path)


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("file://host/tmp", "file://host/tmp"),
        ("file://HOST/a/../b", "file://host/b"),
        ("file:///C:/x", "file:///C:/x"),
        ("file:///c:/x", "file:///C:/x"),
        ("file:///c:", "file:///C:"),
        ("file:\\\\tmp", "file://tmp/"),
        ("file://[::1]/x", "file://[::1]/x"),
        ("file://127.0.0.1/tmp", "file://127.0.0.1/tmp"),
    ],
)
def test_a_uri_of_another_host_is_read_but_names_no_path(uri: str, normal: str) -> None:
    """Whether that is an error is for the caller to say, in its own words."""
    assert parse(uri) == PathUri(normal, None)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("", "invalid URI: relative URL without a base"),
        (" /tmp", "invalid URI: relative URL without a base"),
        ("tmp", "invalid URI: relative URL without a base"),
        ("./x", "invalid URI: relative URL without a base"),
        ("://", "invalid URI: relative URL without a base"),
        ("1:2", "invalid URI: relative URL without a base"),
        ("ht!tp://x", "invalid URI: relative URL without a base"),
        ("http://x/", "unsupported path URI scheme `http`"),
        ("HTTP://x/", "unsupported path URI scheme `http`"),
        ("http://x/?a", "unsupported path URI scheme `http`"),
        ("https://x", "unsupported path URI scheme `https`"),
        ("data:x", "unsupported path URI scheme `data`"),
        ("unix:///tmp", "unsupported path URI scheme `unix`"),
        ("c:/tmp", "unsupported path URI scheme `c`"),
        ("C:\\tmp", "unsupported path URI scheme `c`"),
        ("file:///tmp?x=1", "query parameters are not allowed in path URIs"),
        ("file:///tmp?", "query parameters are not allowed in path URIs"),
        ("file:///tmp?a#b", "query parameters are not allowed in path URIs"),
        ("file:///tmp#f", "fragments are not allowed in path URIs"),
        ("file:///tmp#", "fragments are not allowed in path URIs"),
        ("file:///tmp#a?b", "fragments are not allowed in path URIs"),
        ("file:///tmp%00", "'file:///tmp%00' is invalid on 'linux'"),
        ("file:///%00", "'file:///%00' is invalid on 'linux'"),
        ("/tmp\0", "'file:///tmp%00' is invalid on 'linux'"),
        ("file://h ost/x", "invalid URI: invalid international domain name"),
        ("file://user@localhost/tmp", "invalid URI: invalid international domain name"),
        ("file://localhost:80/tmp", "invalid URI: invalid international domain name"),
    ],
)
def test_what_is_no_path_is_told_why(uri: str, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse(uri)

    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/", "file:///"),
        ("/opt/sp ace/é#%", "file:///opt/sp%20ace/%C3%A9%23%25"),
        ('/"?\\', "file:///%22%3F%5C"),
        ("/a&b+c;d:e[f]~", "file:///a&b+c;d:e[f]~"),
        ("/\n\x7f\udcff", "file:///%0A%7F%FF"),
    ],
)
def test_a_path_is_written_as_a_uri_that_reads_the_same(path: str, uri: str) -> None:
    assert to_uri(path) == uri
    assert parse(uri).path == path


@pytest.mark.parametrize("first", ["/", "file:///"])
@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600"])
def test_a_path_that_is_longer_than_any_can_be_is_not_read(first: str, letter: str) -> None:
    """Reading takes time for each byte, on the loop, and a message may be 64 MiB long."""
    fits = first + letter * ((LONGEST - len(first)) // len(letter.encode()))

    assert parse(fits).path == "/" + fits.removeprefix(first)
    with pytest.raises(LimitReached, match="bytes of a path"):
        parse(fits + letter)


@pytest.mark.parametrize("path", ["/c:", "/C:/x", "/f:x", "/c:/\u00e9", "/a/c:/x", "//c:/x"])
def test_a_directory_that_looks_like_a_drive_is_found_again(path: str) -> None:
    """Whoever sends back the URI that we sent means the same path."""
    found = parse(path)

    assert (found.path, parse(found.uri)) == (path, found)
