"""The options of commands about processes, as they are read."""

from __future__ import annotations

import argparse
import signal

import pytest

from holdfast.cli.process_options import signal_number


@pytest.mark.parametrize("text", ["TERM", "term", "SIGTERM", "sigterm", "15"])
def test_a_signal_has_many_names(text: str) -> None:
    assert signal_number(text) == signal.SIGTERM


@pytest.mark.parametrize(
    ("text", "words"), [("TREM", "did you mean SIGTERM"), ("0", "kill -l"), ("99", "kill -l")]
)
def test_what_is_no_signal_is_refused_with_what_is_close(text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=words):
        signal_number(text)
