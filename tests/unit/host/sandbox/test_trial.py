"""Programs that are run to see whether they can be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.host.sandbox.trial import Trial
from tests.fakes.process import nothing_left_open


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left_open():
        yield


@pytest.mark.parametrize(
    ("argv", "failure"),
    [
        (["/bin/true"], ""),
        (["/bin/sh", "-c", "echo ' why '>&2; echo no"], ""),
        (["/bin/sh", "-c", "echo ' why '>&2; echo no; exit 1"], "why"),
        (["/bin/sh", "-c", "printf '\\377' >&2; exit 1"], "\ufffd"),
        (["/bin/false"], "/bin/false ended with 1"),
        (["/bin/sh", "-c", "kill -9 $$"], "/bin/sh ended with -9"),
        (["/none/such"], "/none/such: No such file or directory"),
        (["/etc/passwd"], "/etc/passwd: Permission denied"),
    ],
)
def test_a_trial_runs_at_once_and_is_asked_later(argv: list[str], failure: str) -> None:
    """As often as one likes: what was found stays."""
    trial = Trial(argv)

    assert [trial.failure(), trial.failure()] == [failure, failure]


def test_a_long_story_is_cut_short() -> None:
    assert Trial(["/bin/sh", "-c", "head -c 9999 /dev/zero | tr '\\0' x >&2; exit 1"]).failure() == "x" * 500


def test_it_has_no_variables_and_nothing_to_read() -> None:
    assert Trial(["/bin/sh", "-c", 'test -z "$HOME" && ! read line']).failure() == ""
