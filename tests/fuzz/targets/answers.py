"""What a server answers and tells: a hostile one may be wrong, and must not do more than that."""

from __future__ import annotations

import json
import os.path
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.client import files
from holdfast.client.cursor import Closed, Exited, events, number
from holdfast.client.foreign import error_of
from holdfast.config import MIB
from holdfast.dialects.exec.explain import explain
from holdfast.errors import BadRequest, HoldfastError, OutputGap
from holdfast.files import WalkTerms
from holdfast.model import Chunk, Page
from holdfast.protocol.errors import kinds
from holdfast.protocol.events import read_exit, read_listing, read_page
from holdfast.protocol.files import (
    CANONICALIZE,
    GET_METADATA,
    READ_BLOCK,
    READ_DIRECTORY,
    READ_FILE,
    WALK,
)
from holdfast.protocol.inspecting import INSPECT, LIST, read_inspected
from holdfast.protocol.processes import READ, TERMINATE, WAIT, WRITE
from holdfast.protocol.ranges import READ_RANGE, read_range
from holdfast.protocol.session import INITIALIZE, host_info
from holdfast.protocol.shapes import Signature, reader
from holdfast.protocol.start import START
from holdfast.protocol.usage import USAGE, read_usage
from holdfast.protocol.waiting import WAIT_FOR, read_waited
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import ErrorBody

from .draw import Draw, is_tellable, timed

SEEDS = tuple(bytes((index,)) + filler * 30 for index in range(14) for filler in (b"\x05", b"\xa5\x01"))
TERMS = WalkTerms(9, 9, 9, follow=True, prune=True, budget=MIB, spell=str)


READERS: tuple[tuple[Signature[Any, Any], Callable[[Any], Any]], ...] = (
    (INITIALIZE, lambda result: host_info(result.environment_info)),
    (START, lambda result: result),
    (INSPECT, read_inspected),
    (WAIT_FOR, read_waited),
    (READ_RANGE, read_range),
    (LIST, lambda result: [read_listing(each) for each in result.processes]),
    (USAGE, lambda result: [read_usage(each) for each in result.processes]),
    (READ, read_page),
    (WAIT, read_exit),
    (WRITE, lambda result: result),
    (TERMINATE, lambda result: result),
    (READ_FILE, files._read_file),
    (GET_METADATA, files._metadata),
    (CANONICALIZE, files._canonical),
    (READ_DIRECTORY, files._entries),
    (WALK, lambda result: files._walk(result, TERMS)),
    (READ_BLOCK, lambda result: result),
)


def check(data: bytes) -> None:
    """An answer is read, or refused as ``Link.call`` expects it."""
    draw = Draw(data)
    signature, into = draw.pick(READERS)
    text = _text(draw, signature.result)
    try:
        found = into(signature.read(msgspec.Raw(text)))
    except (msgspec.DecodeError, ValueError, OverflowError, BadRequest) as error:
        assert len(str(error)) < 3 * len(text) + 1000
        return
    if signature is READ_DIRECTORY:
        # A copy puts them behind a path of ours.
        assert all(os.path.basename(entry.name) == entry.name not in ("", ".", "..") for entry in found)
    if isinstance(found, Page):
        _check_events(found, draw)


def _text(draw: Draw, kind: type) -> bytes:
    """JSON that is nearly a ``kind``, perhaps with a piece that is none."""
    damage, at, piece = draw.byte() >= 200, draw.below(1000), draw.some(8)
    text = json.dumps(draw.like(kind), ensure_ascii=False).encode()
    if not damage:
        return text
    at %= len(text) + 1
    return text[:at] + piece + text[at + len(piece) :]


def _check_events(page: Page, draw: Draw) -> None:
    """In order, each number once, and nothing after the end, whatever the page says."""
    after = draw.below(64)
    told = list(events(page, after, exit_known=bool(draw.below(2))))
    assert len(told) <= 2 * len(page.chunks) + 4
    assert sum(isinstance(event, Exited) for event in told) <= 1
    assert sum(isinstance(event, Closed) for event in told) <= 1
    for event in told:
        assert isinstance(event, Chunk | Exited | Closed | OutputGap)
        # An exit whose number is lost has the one before.
        assert number(event) > after or isinstance(event, Exited)
        if isinstance(event, OutputGap):
            assert event.first <= event.last


METHODS = ("", "process/start", "fs/readFile", "http/request")
CODES = (-32600, -32601, -32602, -32603, -32004, -32010, -32001, 0)
WORDS = (
    *(
        "unknown process id ",
        "process ",
        " already exists",
        " is starting",
        "file handle `",
        "` already exists",
    ),
    *(
        "http/request header ",
        " requires executor environment variable ",
        "http/request url is invalid: ",
        "x",
    ),
    *(
        "the sandbox cannot be kept on this host: ",
        " is not supported by this server",
        " does not implement `",
    ),
    *(
        "` yet",
        "(os error 2)",
        "(os error 999999999)",
        "http/request failed: ",
        "error sending request for url (",
    ),
    *(
        "fs/readDirectory returned 1 entries; limit is 2",
        "failed to signal process: ",
        "too many redirects",
        ")",
    ),
)
DATA = ("kind", "fault", "subject", "reason", "errno", "limit", "value", "name")
KINDS = tuple(kinds())
ERROR_SEEDS = tuple(bytes((index % 4, index % 8, index, 2, index, index + 1)) for index in range(22))


def check_error(data: bytes) -> None:
    """An error of a server is one of ours, and can be told to the client of a server in between."""
    draw = Draw(data)
    method, code = draw.pick(METHODS), draw.pick(CODES)
    message = "".join(draw.pick(WORDS) if draw.byte() < 200 else draw.text() for _ in range(draw.below(6)))
    if draw.byte() >= 250:
        message *= 20_000
    about = (
        {draw.pick(DATA): draw.value(2) for _ in range(draw.below(5))} if draw.byte() < 200 else draw.value()
    )
    if isinstance(about, dict) and draw.byte() < 128:
        about["kind"] = draw.pick(KINDS)
    text = json.dumps({"code": code, "message": message, "data": about}).encode()
    try:
        body = reader(ErrorBody)(text)
    except msgspec.DecodeError:
        return

    error = timed(lambda: error_of(body, method))

    assert isinstance(error, HoldfastError)
    assert is_tellable(str(error))
    told = explain(error)
    assert jsonrpc.error(1, told.code, told.message, told.data)
