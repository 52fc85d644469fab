"""``http/request`` on the wire: what is asked, answered and told (pure)."""

from __future__ import annotations

from enum import Enum

import msgspec

from .shapes import U64, Base64Text, Params, Shape, Signature, within_u64


class RequestHeader(Params):
    """A header of a request."""

    wire_name = "HttpHeader"

    name: str
    value: str
    value_env_var: str | None = None
    """A variable of the server whose value is put behind ``value``.  Some are refused."""


class RedirectPolicy(Enum):
    FOLLOW = "follow"
    """Up to ten in a row."""
    STOP = "stop"
    """The redirect is the answer."""


class HttpRequestParams(Params):
    wire_name = "HttpRequestParams"

    method: str
    """As it is sent: capitals are the caller's."""
    url: str
    """``http:`` or ``https:``."""
    request_id: str
    """The client's name for the request; one stream at a time goes by it."""
    headers: list[RequestHeader] = msgspec.field(default_factory=list)
    """Sent in this order, repeats included; names in lower case."""
    body_base64: Base64Text | None = None
    """The bytes of the body, in base64."""
    timeout_ms: U64 | None = None
    """For the whole exchange, the body of the response included; null is no limit."""
    redirect_policy: RedirectPolicy = RedirectPolicy.FOLLOW
    stream_response: bool = False
    """Answer with an empty body, and tell the body in notifications."""

    def __post_init__(self) -> None:
        within_u64(self.timeout_ms)


class ResponseHeader(Shape):
    """A header of a response."""

    name: str
    """In lower case."""
    value: str


class HttpRequestResult(Shape):
    status: int
    """Of the last response, when redirects were followed."""
    headers: list[ResponseHeader]
    """As they came, repeats included, without those whose value is no ASCII text."""
    body_base64: Base64Text = ""
    """The bytes of the body as they came, in base64; empty if it is streamed."""


class HttpBodyDelta(Shape):
    """Bytes of a streamed body, or its end."""

    request_id: str
    seq: U64
    """From 1, without gaps."""
    delta_base64: Base64Text
    """The bytes, in base64; at most 1 MiB of them, none in the last one."""
    done: bool
    """True in the last one."""
    error: str | None = None
    """Why the body is incomplete; null if it is not."""


HTTP_REQUEST = Signature("http/request", HttpRequestParams, HttpRequestResult)
