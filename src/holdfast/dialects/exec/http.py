"""HTTP requests from this host: answered with the whole body, or with the head and the body behind it.

What must hold:

1. The answer comes before the first piece of a streamed body, and the last piece says that it is the last.
2. While the client is behind, no body is received for it.
3. Whatever ends a request, also the end of the connection, closes its response and frees its name.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec

from holdfast.config import HttpLimits
from holdfast.dialects.dialect import Pause, Sequel
from holdfast.errors import BadRequest, HttpFailed, LimitReached
from holdfast.model import HttpHeader, HttpRequest, utf8_size
from holdfast.protocol import base64
from holdfast.protocol.http import HttpRequestParams, RedirectPolicy, ResponseHeader
from holdfast.web import HttpResponse, check_header, is_token, parse_url, scheme_of
from holdfast.wire.jsonrpc import JsonParts

from .conversation import ExecConversation
from .decoding import DecodedHttpRequest
from .explain import body_text
from .spans import HttpSpan

_encode = msgspec.json.Encoder().encode

_LONGEST_MS = 365 * 24 * 3600 * 1000
"""Milliseconds; longer times are legal and mean the same, but clocks overflow."""


def request(talk: ExecConversation, asked: DecodedHttpRequest) -> Coroutine[Any, Any, JsonParts | Sequel]:
    """Make an HTTP request from this host."""
    stream = asked.params.request_id if asked.params.stream_response else None
    # The name is taken before anything else can be asked under it.
    talk.exchanges.begin(stream)
    try:
        request = _request(asked, talk.endpoint.http_limits)
    except BaseException:
        talk.exchanges.end(stream)
        raise
    return _exchange(talk, request, stream)


def _request(asked: DecodedHttpRequest, limits: HttpLimits) -> HttpRequest:
    params = asked.params
    _check_size(params, limits)
    if not is_token(params.method):
        raise BadRequest("http/request method is invalid: invalid HTTP method", field="method")
    scheme = scheme_of(params.url)
    if scheme not in ("http", "https"):
        raise BadRequest(f"http/request only supports http and https URLs, got {scheme}", field="url")
    url = parse_url(params.url)
    headers = tuple(HttpHeader(each.name, each.value, each.value_env_var) for each in params.headers)
    for header in headers:
        check_header(header)
    milliseconds = params.timeout_ms
    return HttpRequest(
        method=params.method,
        url=url,
        headers=headers,
        body=asked.body,
        timeout=None if milliseconds is None else min(milliseconds, _LONGEST_MS) / 1000,
        follow=params.redirect_policy is RedirectPolicy.FOLLOW,
    )


def _check_size(params: HttpRequestParams, limits: HttpLimits) -> None:
    """Look at how much there is before any of it is looked at closely, on the loop."""
    if utf8_size(params.url) > limits.url_bytes:
        raise LimitReached("bytes of a URL", limits.url_bytes, name="http.url_bytes")
    if len(params.headers) > limits.headers:
        raise LimitReached("HTTP headers", limits.headers, name="http.headers")
    if sum(len(each.name) + len(each.value) for each in params.headers) > limits.header_bytes:
        raise LimitReached("bytes of HTTP headers", limits.header_bytes, name="http.header_bytes")


async def _exchange(talk: ExecConversation, request: HttpRequest, stream: str | None) -> JsonParts | Sequel:
    streams = False
    span = HttpSpan(request)
    try:
        await Pause()  # Before that there is no task, and timeouts need one.
        response = await talk.backend.http.request(request)
        span.answered(response.status)
        if stream is not None:
            streams = True
            return Sequel(_result(response, b""), _tell(talk, response, stream, span))
        return await _whole(talk, response)
    except BaseException as error:
        span.failed(error)
        raise
    finally:
        if not streams:
            span.end()
            talk.exchanges.end(stream)


async def _whole(talk: ExecConversation, response: HttpResponse) -> JsonParts:
    """The answer with the body in it."""
    most, room = talk.endpoint.http_limits.buffered_bytes, talk.endpoint.http_room
    body = bytearray()
    try:
        while True:
            await talk.exchanges.flow()
            piece = await response.read()
            if not piece:
                break
            if len(body) + len(piece) > most:
                raise LimitReached("bytes of a buffered HTTP response", most, name="http.buffered_bytes")
            room.take(len(piece))
            body += piece
        # One large answer at a time: the next one waits until the client has taken this.
        await talk.exchanges.flow()
        return _result(response, base64.encode(body))
    finally:
        room.give(len(body))
        await response.aclose()


def _result(response: HttpResponse, body: bytes) -> JsonParts:
    headers = [ResponseHeader(name, value) for name, value in response.headers]
    head = b'{"status":%d,"headers":%b,"bodyBase64":"' % (response.status, _encode(headers))
    return JsonParts((head, body, b'"}'))


async def _tell(talk: ExecConversation, response: HttpResponse, stream: str, span: HttpSpan) -> None:
    """Send the body, piece by piece, and its end."""
    send, most = talk.client.send, talk.endpoint.http_limits.delta_bytes
    name, seq, failure = _encode(stream), 0, None
    try:
        while True:
            await talk.exchanges.flow()
            piece = await response.read()
            if not piece:
                break
            for start in range(0, len(piece), most):
                seq += 1
                send(
                    b'{"method":"http/request/bodyDelta","params":{"requestId":%b,"seq":%d,"deltaBase64":"'
                    % (name, seq),
                    base64.encode(piece[start : start + most]),
                    b'","done":false,"error":null}}',
                )
    except HttpFailed as failed:
        failure = body_text(failed)
        span.failed(failed)
    finally:
        span.end()
        # The name is free before the client can read of the end.
        talk.exchanges.end(stream)
        await response.aclose()
    send(
        b'{"method":"http/request/bodyDelta","params":{"requestId":%b,"seq":%d,"deltaBase64":"","done":true,'
        b'"error":%b}}' % (name, seq + 1, _encode(failure))
    )
