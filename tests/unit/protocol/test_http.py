"""``http/request`` on the wire: what fits, and the words for what does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.dialects.exec.decoding import DecodedHttpRequest, decode_http_request
from holdfast.errors import BadRequest
from holdfast.protocol.http import (
    HttpBodyDelta,
    HttpRequestParams,
    HttpRequestResult,
    RedirectPolicy,
    RequestHeader,
    ResponseHeader,
)
from tests.fakes.exec_params import FOUND

LEAST = {"method": "GET", "url": "http://h/", "requestId": "r"}


def complaint(value: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        decode_http_request(value)
    return str(caught.value)


def test_the_least_that_can_be_asked() -> None:
    asked = decode_http_request(LEAST)

    assert asked == DecodedHttpRequest(HttpRequestParams("GET", "http://h/", "r"), b"")
    assert asked.params.redirect_policy is RedirectPolicy.FOLLOW
    assert not asked.params.stream_response


def test_everything_that_can_be_asked() -> None:
    asked = decode_http_request(
        {
            **LEAST,
            "headers": [{"name": "a", "value": "b", "valueEnvVar": "C"}, {"name": "a", "value": "b"}],
            "bodyBase64": "aGk=",
            "timeoutMs": 2**64 - 1,
            "redirectPolicy": "stop",
            "streamResponse": True,
            "other": 1,
        }
    )

    headers = [RequestHeader("a", "b", "C"), RequestHeader("a", "b")]
    expected = HttpRequestParams(
        "GET", "http://h/", "r", headers, None, 2**64 - 1, RedirectPolicy.STOP, stream_response=True
    )
    assert asked == DecodedHttpRequest(expected, b"hi")


@pytest.mark.parametrize("missing", ["method", "url", "requestId"])
def test_what_must_be_there_is_named(missing: str) -> None:
    assert complaint({name: value for name, value in LEAST.items() if name != missing}) == (
        f"missing field `{missing}`"
    )


@pytest.mark.parametrize("value", [None, 1, "x", True])
def test_params_that_are_no_object(value: Any) -> None:
    assert complaint(value).endswith("expected struct HttpRequestParams")


EXPECTED = {
    "method": ("a string", {"x"}),
    "url": ("a string", {"x"}),
    "requestId": ("a string", {"x"}),
    "headers": ("a sequence", {"[]"}),
    "bodyBase64": ("a string", {"null", "x"}),
    "timeoutMs": ("u64", {"null", "1", "18446744073709551616", "-1", "1.5", "1e2"}),
    "redirectPolicy": ("string or map", {"x"}),
    "streamResponse": ("a boolean", {"true", "false"}),
}
"""What each member wants, and which values are dealt with elsewhere."""

WRONG = [
    (name, text, f"invalid type: {found}, expected {wanted}")
    for name, (wanted, fine) in EXPECTED.items()
    for text, found in FOUND.items()
    if text.strip('"') not in fine
]


@pytest.mark.parametrize(("name", "text", "words"), WRONG)
def test_each_member_says_what_it_wants(name: str, text: str, words: str) -> None:
    """A wrong type is never an internal error."""
    assert complaint({**LEAST, name: msgspec.json.decode(text)}) == words


@pytest.mark.parametrize(
    ("member", "words"),
    [
        ({"timeoutMs": -1}, "invalid number"),
        ({"timeoutMs": 1.5}, "invalid number"),
        ({"timeoutMs": 2**64}, "invalid number"),
        ({"redirectPolicy": "x"}, "unknown variant `x`, expected `follow` or `stop`"),
        ({"bodyBase64": "*"}, "Invalid symbol 42, offset 0."),
        ({"bodyBase64": "a"}, "Invalid input length: 1"),
        ({"bodyBase64": "aGk"}, "Invalid padding"),
        ({"bodyBase64": "aGl="}, "Invalid last symbol 108, offset 2."),
        ({"headers": [1]}, "invalid type: number, expected struct HttpHeader"),
        ({"headers": [{}]}, "missing field `name`"),
        ({"headers": [{"name": "a"}]}, "missing field `value`"),
        ({"headers": [{"name": 1, "value": "b"}]}, "invalid type: number, expected a string"),
        ({"headers": [{"name": "a", "value": None}]}, "invalid type: null, expected a string"),
        (
            {"headers": [{"name": "a", "value": "b", "valueEnvVar": 1}]},
            "invalid type: number, expected a string",
        ),
    ],
)
def test_a_value_that_does_not_fit(member: dict[str, Any], words: str) -> None:
    assert complaint({**LEAST, **member}) == words


def test_what_is_told_is_spelled_as_on_the_wire() -> None:
    delta = HttpBodyDelta("r", 1, "", done=True, error=None)
    result = HttpRequestResult(200, [ResponseHeader("a", "b")], "aGk=")

    assert msgspec.to_builtins(delta) == {
        "requestId": "r",
        "seq": 1,
        "deltaBase64": "",
        "done": True,
        "error": None,
    }
    assert msgspec.to_builtins(result) == {
        "status": 200,
        "headers": [{"name": "a", "value": "b"}],
        "bodyBase64": "aGk=",
    }
