"""Spans of requests about files and HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.dialects.exec.methods import METHODS
from holdfast.dialects.exec.spans import HttpSpan, in_span, span_name
from holdfast.errors import HttpFailed, HttpFault, LimitReached
from holdfast.model import HttpRequest
from tests.fakes.tracing import traced

ASKED = HttpRequest("GET", "https://example.org/x?secret=1")


@pytest.mark.parametrize(
    ("method", "name"),
    [("fs/readFile", "fs.read_file"), ("fs/walk", "fs.walk"), ("fs/getMetadata", "fs.get_metadata")],
)
def test_a_span_has_the_name_of_its_method_in_another_spelling(method: str, name: str) -> None:
    assert span_name(method) == name


async def _work(talk: Any, params: Any) -> str:
    """Does it."""
    if params == "bad":
        raise ValueError("bad params")
    return f"{talk} {params}"


async def test_the_work_of_a_method_is_a_span_if_anybody_traces() -> None:
    handle = in_span("fs/readFile", _work)

    untraced = await handle("talk", "params")
    with traced() as request:
        result = await handle("talk", "params")
        with pytest.raises(ValueError, match="bad params"):
            await handle("talk", "bad")

    assert (untraced, result) == ("talk params", "talk params")
    assert [child.told for child in request.children] == [("fs.read_file", {"sandboxed": False}, 1)] * 2
    assert handle.__doc__ == "Does it."


def test_every_method_about_files_keeps_what_it_says_of_itself() -> None:
    """Reference pages are made of it."""
    assert all(method.handle.__doc__ for name, method in METHODS.items() if name.startswith("fs/"))


def test_an_http_request_tells_whom_it_asks_and_not_what() -> None:
    with traced() as request:
        span = HttpSpan(ASKED)
        span.answered(200)
        span.end()
        HttpSpan(HttpRequest("POST", "http://[::1]:81/")).answered(404)

    known = {"http.request.method": "GET", "server.address": "example.org", "server.port": 443}
    other = {"http.request.method": "POST", "server.address": "::1", "server.port": 81}
    assert [child.told for child in request.children] == [
        ("codex.exec_server.http_request", {**known, "http.response.status_code": 200}, 1),
        (
            "codex.exec_server.http_request",
            {**other, "http.response.status_code": 404, "error.type": "404"},
            0,
        ),
    ]
    assert {child.kind for child in request.children} == {"client"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (HttpFailed(HttpFault.SENDING, "u", "r"), "request"),
        (HttpFailed(HttpFault.TIMEOUT, "u", "r"), "timeout"),
        (HttpFailed(HttpFault.BODY_TIMEOUT, "u", "r"), "timeout"),
        (HttpFailed(HttpFault.REDIRECTS, "u", "r"), "redirects"),
        (LimitReached("HTTP requests", 1), "LimitReached"),
        (asyncio.CancelledError(), None),
    ],
)
def test_a_failure_has_a_kind_and_a_cancellation_is_none(error: BaseException, kind: str | None) -> None:
    with traced() as request:
        HttpSpan(ASKED).failed(error)

    assert request.children[0].attributes.get("error.type") == kind


def test_without_a_tracer_there_is_no_span() -> None:
    span = HttpSpan(ASKED)

    span.answered(500)
    span.failed(LimitReached("x", 1))
    span.end()
