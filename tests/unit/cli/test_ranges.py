"""``holdfast logs --bytes`` and ``--stderr``."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from tests.fakes.terminal import Call

pytestmark = pytest.mark.slow


@pytest.fixture
def said(far: Call, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a process that has written to both outputs."""
    name = f"ranges-{abs(hash(request.node.name))}"
    far("run", "-d", "--name", name, "--", "sh", "-c", "printf 0123456789; printf abcdef >&2")
    far("wait", "-q", name)
    yield name
    far("rm", name)


@pytest.mark.parametrize(
    ("asked", "printed"),
    [("0-3", "0123"), ("8-", "89"), ("-3", "789"), ("-30", "0123456789"), ("3-99", "3456789"), ("10-", "")],
)
def test_a_part_is_printed(far: Call, said: str, asked: str, printed: str) -> None:
    assert far("logs", said, "--bytes", asked) == (0, printed, "")


def test_standard_error_has_places_of_its_own(far: Call, said: str) -> None:
    assert far("logs", said, "--bytes", "2-3", "--stderr") == (0, "cd", "")
    assert far("logs", said, "--stderr") == (0, "abcdef", "")


def test_json_has_all_that_is_known_of_it(far: Call, said: str) -> None:
    assert json.loads(far("logs", said, "--bytes", "-4", "-o", "json").out) == {
        "stream": "stdout",
        "offset": 6,
        "data": base64.b64encode(b"6789").decode(),
        "text": "6789",
        "next": 10,
        "total": 10,
        "firstOffset": 0,
        "ended": True,
    }


def test_what_is_no_longer_kept_is_told(forgetful: Call) -> None:
    forgetful("run", "-d", "--name", "ranges-gone", "--", "head", "-c", "30000000", "/dev/zero")
    forgetful("wait", "-q", "ranges-gone")

    lost = forgetful("logs", "ranges-gone", "--bytes", "10-19")
    quiet = forgetful("logs", "ranges-gone", "--bytes", "10-19", "-q")
    kept = forgetful("logs", "ranges-gone", "--bytes", "-10")

    assert (lost.code, lost.out) == (0, "")
    assert lost.err == "holdfast: not kept any more: 10 bytes from byte 10 on; a larger --retain keeps more\n"
    assert quiet == (0, "", "")
    assert kept == (0, "\0" * 10, "")


@pytest.mark.parametrize("other", [["-f"], ["--tail", "1"], ["--since-seq", "1"]])
def test_two_ways_to_choose_exclude_each_other(far: Call, other: list[str]) -> None:
    refused = far("logs", "whoever", "--bytes", "0-1", *other)

    assert refused.code == 2
    assert f"--bytes and {other[0]} exclude each other" in refused.err


def test_what_is_no_range_is_refused_with_examples(far: Call) -> None:
    refused = far("logs", "whoever", "--bytes", "five")

    assert refused.code == 2
    assert "0-99" in refused.err
