"""What can be waited for, and what makes no sense."""

from __future__ import annotations

import pytest

from holdfast.conditions import Condition, is_loopback, prepared
from holdfast.errors import BadRequest, BadUrl

# What makes no sense.


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Condition(), "exactly one"),
        (Condition(port=1, file="/x"), "exactly one"),
        (Condition(port=0), "is no port"),
        (Condition(port=65536), "is no port"),
        (Condition(url="ftp://localhost/"), "only http and https"),
        (Condition(url="http://" + "x" * 9000), "only http and https"),
        (Condition(file="relative"), "absolute"),
        (Condition(output="("), "cannot be waited for"),
        (Condition(output="a*"), "found in every output"),
    ],
)
def test_what_makes_no_sense_is_refused(condition: Condition, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        prepared(condition)


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(BadUrl):
        prepared(Condition(url="localhost"))


@pytest.mark.parametrize(
    ("url", "is_ours"),
    [
        ("http://localhost:1/", True),
        ("http://127.0.0.1/", True),
        ("https://127.9.9.9:1/x", True),
        ("http://[::1]:1/", True),
        ("http://127.0.0.1.example.org/", False),
        ("http://127.example.org/", False),
        ("http://localhost@example.org/", False),
        ("http://10.0.0.1/", False),
        ("http://[::2]/", False),
    ],
)
def test_only_this_host_is_this_host(url: str, is_ours: bool) -> None:  # noqa: FBT001
    """A client whose token allows no requests must not make any elsewhere."""
    assert is_loopback(url) is is_ours


def test_a_condition_is_told_in_words() -> None:
    assert str(Condition(port=80)) == "port 80"
    assert str(Condition(url="http://h/")) == "URL 'http://h/'"
