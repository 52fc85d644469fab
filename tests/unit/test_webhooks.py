"""Where a server may tell ends to, and how that is signed."""

from __future__ import annotations

import pytest

from docs.examples.webhook import is_genuine
from holdfast.errors import BadRequest, BadUrl
from holdfast.webhooks import WebhookPolicy, prefix, signed

SECRET = b"s" * 32
POLICY = WebhookPolicy((prefix("https://ci.example.com/hooks"), prefix("http://127.0.0.1:8080")), SECRET)


@pytest.mark.parametrize(
    "url",
    [
        "https://ci.example.com/hooks",
        "https://ci.example.com/hooks/17?x=y",
        "https://CI.example.com:443/hooks/17",
        "http://127.0.0.1:8080/",
        "http://127.0.0.1:8080/anything/below",
    ],
)
def test_what_is_at_or_below_an_allowed_url_may_be_notified(url: str) -> None:
    assert POLICY.check(url).startswith(("https://ci.example.com/hooks", "http://127.0.0.1:8080/"))


@pytest.mark.parametrize(
    "url",
    [
        "https://ci.example.com/hooksandmore",
        "https://ci.example.com/",
        "https://ci.example.com.evil.com/hooks/",
        "https://ci.example.com:8443/hooks/",
        "http://ci.example.com/hooks/",
        "http://127.0.0.1:80801/",
        "http://127.0.0.1/",
    ],
)
def test_any_other_url_is_refused_with_the_option_that_allows_it(url: str) -> None:
    with pytest.raises(BadRequest, match=r"--webhook-allow|no URL") as caught:
        POLICY.check(url)

    assert caught.value.field == "notifyUrl"


@pytest.mark.parametrize(
    "url",
    [
        "https://ci.example.com/hooks/../admin",
        "https://ci.example.com/hooks/%2E%2e/admin",
        "https://ci.example.com/hooks\\..\\admin",
        "https://ci.example.com/hooks/./..",
        "https://user@ci.example.com/hooks/",
        "https://ci.example.com@evil.com/hooks/",
        "https://ci.example.com/hooks/#x",
        "ftp://ci.example.com/hooks/",
        "/hooks/",
        "",
    ],
)
def test_what_reads_otherwise_than_it_looks_is_no_url_to_notify(url: str) -> None:
    """Whoever sends the request might read it differently from whoever has allowed it."""
    with pytest.raises(BadRequest):
        POLICY.check(url)


@pytest.mark.parametrize(
    "text", ["ci.example.com", "https://h/?a=b", "https://u:p@h/", "file:///x", "https:///"]
)
def test_an_operator_allows_a_scheme_a_host_and_a_path(text: str) -> None:
    with pytest.raises(BadUrl):
        prefix(text)


def test_a_long_url_is_cut_in_the_refusal() -> None:
    with pytest.raises(BadRequest) as caught:
        POLICY.check("https://example.org/" + "x" * 10_000)

    assert len(str(caught.value)) < 500


def test_a_receiver_finds_the_signature_genuine_and_any_change_not() -> None:
    """By the code that the documents show."""
    header = signed(SECRET, 1000, b"body")

    assert is_genuine(SECRET, header, b"body", now=1100)
    assert not is_genuine(SECRET, header, b"body ", now=1100)
    assert not is_genuine(SECRET, header.replace("t=1000", "t=1001"), b"body", now=1100)
    assert not is_genuine(b"other" * 8, header, b"body", now=1100)
    assert not is_genuine(SECRET, header, b"body", now=1400)
