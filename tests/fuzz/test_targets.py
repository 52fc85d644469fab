"""The targets of ``make fuzz`` with the cases that it has found worth keeping, and a few new ones."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.dialects.app import methods as app_methods
from holdfast.dialects.dialect import Method
from holdfast.dialects.exec import methods as exec_methods
from holdfast.errors import BadRequest
from holdfast.protocol.shapes import Shape
from holdfast.wire import jsonrpc
from tests.fakes.effort import effort
from tests.fuzz.targets import params
from tests.fuzz.targets.draw import Draw
from tests.fuzz.targets.table import CORPUS, TARGETS, kept

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TARGETS)
def test_cases_that_were_worth_keeping_still_pass(name: str) -> None:
    for case in [*TARGETS[name].seeds, *kept(name)]:
        TARGETS[name].check(case)


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_decoded_or_refused(name: str) -> None:
    @effort(100)
    @given(data=st.binary(max_size=150))
    def holds(data: bytes) -> None:
        TARGETS[name].check(data)

    holds()


def test_the_cases_belong_to_targets_and_are_few() -> None:
    """A file of another name would be read by nobody."""
    for path in CORPUS.iterdir():
        assert path.stem in TARGETS
        assert path.stat().st_size <= 64 * 1024


def test_every_method_is_a_target_with_the_shape_of_its_params() -> None:
    """A method that is added is fuzzed without anybody thinking of it."""
    assert {name for name, _ in params.EXEC} == set(exec_methods.METHODS)
    assert {name for name, _ in params.APP} == set(app_methods.METHODS)
    shaped = {name for name, kind in params.EXEC if kind is not None}
    assert shaped >= {"process/start", "process/write", "fs/copy", "http/request"}


@pytest.mark.parametrize(
    ("table", "methods"),
    [(params.EXEC, exec_methods.METHODS), (params.APP, app_methods.METHODS)],
    ids=["exec", "app"],
)
def test_what_is_drawn_for_a_method_is_often_accepted(
    table: list[tuple[str, type[Shape] | None]], methods: dict[str, Method]
) -> None:
    """Params that are all refused for the first reason there is would show nothing of the rest."""
    for name, kind in table:
        if kind is not None:
            source = random.Random(name)  # noqa: S311  (no secret)
            drawn = (Draw(source.randbytes(300)).like(kind) for _ in range(2000))
            assert any(_is_taken(methods[name], value) for value in drawn), name


def _is_taken(method: Method, value: object) -> bool:
    text = json.dumps({"id": 1, "method": "m", "params": value}).encode()
    try:
        method.decode(getattr(jsonrpc.decode(text), "params", None))
    except (BadRequest, jsonrpc.Malformed, msgspec.DecodeError):
        return False
    return True


def test_a_broken_rule_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets that could not fail would pass for ever."""
    monkeypatch.setattr("holdfast.wire.http._MOST_DIGITS", 10_000)
    long = bytes((1, 5, 0, 40)) + b"POST / HTTP/1.1\r\na: x\r\ncontent-length: 1\r\n\r\n"

    with pytest.raises(ValueError, match="digits"):
        TARGETS["http_request"].check(long)
