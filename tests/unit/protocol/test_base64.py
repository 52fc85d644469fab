"""Base64 with the errors that clients of the reference know."""

from __future__ import annotations

import base64 as standard

import pytest

from holdfast.errors import BadRequest
from holdfast.protocol import base64

LONG = "YWJj" * 100


def complaint(text: str) -> str:
    with pytest.raises(BadRequest) as caught:
        base64.decode(text)
    return str(caught.value)


COMPLAINTS = [
    ("!!", "Invalid symbol 33, offset 0."),
    ("!!!!", "Invalid symbol 33, offset 0."),
    ("YQ", "Invalid padding"),
    ("YQ==YQ==", "Invalid symbol 61, offset 2."),
    ("YQ==\n", "Invalid symbol 10, offset 4."),
    ("\nYQ==", "Invalid symbol 10, offset 0."),
    ("_-8=", "Invalid symbol 95, offset 0."),
    ("-_8=", "Invalid symbol 45, offset 0."),
    ("YR==", "Invalid last symbol 82, offset 1."),
    ("YWK=", "Invalid last symbol 75, offset 2."),
    ("Y", "Invalid input length: 1"),
    ("YWJj=", "Invalid symbol 61, offset 4."),
    ("YWJY=", "Invalid symbol 61, offset 4."),
    ("YWJQ==", "Invalid symbol 61, offset 4."),
    ("====", "Invalid symbol 61, offset 0."),
    ("=", "Invalid symbol 61, offset 0."),
    ("==", "Invalid symbol 61, offset 0."),
    ("YQ=", "Invalid padding"),
    ("YQ=a", "Invalid symbol 61, offset 2."),
    ("YQ=aYQ==", "Invalid symbol 61, offset 2."),
    ("é", "Invalid symbol 195, offset 0."),
    ("éé", "Invalid symbol 195, offset 0."),
    ("YWJé", "Invalid symbol 169, offset 4."),
    ("YWJj YWJj", "Invalid symbol 32, offset 4."),
    ("YWJj\nYWJj", "Invalid symbol 10, offset 4."),
    ("YWJjY", "Invalid input length: 5"),
    ("YWJjYQ", "Invalid padding"),
    ("YWJjYQ=", "Invalid padding"),
    ("YWJjYR==", "Invalid last symbol 82, offset 5."),
    ("YWJj====", "Invalid symbol 61, offset 4."),
    ("Y===", "Invalid symbol 61, offset 1."),
    ("Y=Q=", "Invalid symbol 61, offset 1."),
    ("YQ==Y", "Invalid symbol 61, offset 2."),
    ("YWJjYWJj!WJj", "Invalid symbol 33, offset 8."),
    ("YWJj" * 1000 + "!", "Invalid symbol 33, offset 4000."),
    ("YWJj" * 10 + "Y!==", "Invalid symbol 33, offset 41."),
    ("A===", "Invalid symbol 61, offset 1."),
    ("AB==", "Invalid last symbol 66, offset 1."),
    ("AAB=", "Invalid last symbol 66, offset 2."),
    ("YWJj" * 8 + "YW-j", "Invalid symbol 45, offset 34."),
    ("\0AAA", "Invalid symbol 0, offset 0."),
    ("Y\0==", "Invalid symbol 0, offset 1."),
]


@pytest.mark.parametrize(("text", "words"), COMPLAINTS)
def test_what_is_no_base64_is_told_where(text: str, words: str) -> None:
    assert complaint(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LONG + "YR==", "Invalid last symbol 82, offset 401."),
        (LONG + "AAB=", "Invalid last symbol 66, offset 402."),
        (LONG + "YQ", "Invalid padding"),
        (LONG + "YQ=", "Invalid padding"),
        (LONG + "Y", "Invalid input length: 401"),
        (LONG + "Y===", "Invalid symbol 61, offset 401."),
        (LONG + "é", "Invalid symbol 195, offset 400."),
        (LONG + "YQ==" + LONG, "Invalid symbol 61, offset 402."),
        ("YQ==\n" + LONG, "Invalid symbol 61, offset 2."),
        (LONG + "\n" + LONG, "Invalid symbol 10, offset 400."),
        (LONG + "_-8=", "Invalid symbol 95, offset 400."),
    ],
)
def test_a_long_text_is_judged_like_a_short_one(text: str, words: str) -> None:
    """Long texts take another decoder, which knows other rules of its own."""
    assert complaint(text) == words


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("AA==", b"\0"),
        ("AAA=", b"\0\0"),
        ("/+8=", b"\xff\xef"),
        ("aGkK", b"hi\n"),
        (LONG, b"abc" * 100),
    ],
)
def test_good_base64_is_decoded(text: str, data: bytes) -> None:
    assert base64.decode(text) == data


@pytest.mark.parametrize("size", [*range(8), 93, 94, 95, 96, 97, 98, 1000, 1001, 1002])
def test_every_length_comes_back_as_it_went(size: int) -> None:
    data = bytes(index * 37 % 256 for index in range(size))
    text = base64.encode(data)

    assert text == standard.b64encode(data)
    assert base64.decode(text.decode()) == data
