"""The log: its forms, and that it is never in the way."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
from collections.abc import Iterator

import pytest

from holdfast.observe.logs import JsonLines, NonBlockingHandler, Sparse, set_up


def record(message: str = "hello", **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "holdfast.x", "levelno": 20, "levelname": "INFO", "msg": message})
    vars(made).update(extra)
    return made


@contextlib.contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    source, sink = os.pipe()
    os.set_blocking(source, False)
    try:
        yield source, sink
    finally:
        for fd in (source, sink):
            with contextlib.suppress(OSError):
                os.close(fd)


@pytest.fixture
def kept_logging() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("holdfast")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level, ours.level = before
    root.setLevel(before[1])
    ours.setLevel(before[2])


# Forms.


def test_a_line_of_json_has_what_was_said_and_what_was_added() -> None:
    told = json.loads(JsonLines().format(record("to %s", args=("you",), created=0.25, peer="p", level="no")))

    assert told == {
        "timestamp": "1970-01-01T00:00:00.250Z",
        "level": "info",
        "logger": "holdfast.x",
        "message": "to you",
        "peer": "p",
    }


def test_a_failure_is_one_line_too_and_everything_can_be_shown() -> None:
    try:
        raise ValueError("bad")
    except ValueError as error:
        facts = (ValueError, error, error.__traceback__)
    line = JsonLines().format(record(exc_info=facts, stack_info="stack", odd={1, 2}.__class__, half="\udc80"))

    told = json.loads(line)
    assert "\n" not in line
    assert told["exception"].endswith("ValueError: bad")
    assert (told["stack"], told["odd"], told["half"]) == ("stack", "<class 'set'>", "\udc80")


@pytest.mark.usefixtures("kept_logging")
@pytest.mark.parametrize(
    ("level", "ours", "theirs"),
    [
        ("debug", ["debug", "info", "warning", "error"], ["warning", "error"]),
        ("info", ["info", "warning", "error"], ["warning", "error"]),
        ("warning", ["warning", "error"], ["warning", "error"]),
        ("error", ["error"], ["error"]),
    ],
)
def test_libraries_are_heard_only_when_they_warn(level: str, ours: list[str], theirs: list[str]) -> None:
    """They would tell URLs and headers."""
    with pipe() as (source, sink):
        set_up(level, "json", fd=sink)
        for name in ("holdfast.x", "httpx"):
            for each in ("debug", "info", "warning", "error"):
                getattr(logging.getLogger(name), each)(each)
        lines = [json.loads(line) for line in os.read(source, 65_536).splitlines()]

    told = {
        name: [line["message"] for line in lines if line["logger"] == name]
        for name in ("holdfast.x", "httpx")
    }
    assert told == {"holdfast.x": ours, "httpx": theirs}


@pytest.mark.usefixtures("kept_logging")
def test_text_is_what_it_always_was() -> None:
    with pipe() as (source, sink):
        set_up("info", "text", fd=sink)
        logging.getLogger("holdfast.x").info("hello", extra={"peer": "p"})

        assert os.read(source, 100) == b"INFO holdfast.x: hello\n"


# Never in the way.


def test_a_pipe_that_nobody_reads_makes_nobody_wait() -> None:
    """What is lost is counted, and said as soon as there is room."""
    with pipe() as (source, sink):
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 4096)
        outlet = NonBlockingHandler(sink)
        for number in range(100):
            outlet.emit(record(f"{number:0100}"))
        first = os.read(source, 65_536).split(b"\n")
        outlet.emit(record("again"))
        rest = os.read(source, 65_536).decode()

    kept = [line for line in first if len(line) == 100]
    assert [int(line) for line in kept] == list(range(len(kept)))
    assert 0 < len(kept) < 100
    lost = 100 - len(kept)
    assert rest.lstrip("\n") == f"{lost} lines of this log were lost\nagain\n"


def test_a_line_that_was_cut_off_is_ended_before_the_next() -> None:
    with pipe() as (source, sink):
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 4096)
        outlet = NonBlockingHandler(sink)
        outlet.emit(record("x" * 10_000))
        cut = os.read(source, 65_536)
        outlet.emit(record("next"))
        rest = os.read(source, 65_536)

    assert cut == b"x" * 4096
    assert rest == b"\n1 lines of this log were lost\nnext\n"


def test_a_descriptor_that_is_closed_or_full_is_no_failure() -> None:
    with pipe() as (source, sink):
        os.close(source)
        NonBlockingHandler(sink).emit(record())
        os.close(sink)
        NonBlockingHandler(sink).emit(record())
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        NonBlockingHandler(full).emit(record())
    finally:
        os.close(full)


def test_a_record_that_does_not_fit_together_is_shown_as_it_is() -> None:
    with pipe() as (source, sink):
        NonBlockingHandler(sink).emit(record("%d", args=("no number",)))

        assert os.read(source, 100) == b"INFO holdfast.x: '%d' (with arguments that do not fit)\n"


def test_the_same_complaint_is_let_through_once_a_minute() -> None:
    now = [0.0]
    sparse = Sparse(lambda: now[0])

    def passes(message: str) -> bool:
        return sparse.filter(logging.makeLogRecord({"msg": message}))

    first = [passes("a"), passes("a"), passes("b")]
    now[0] = 59.0
    later = passes("a")
    now[0] = 60.0

    assert (first, later, passes("a")) == ([True, False, True], False, True)
